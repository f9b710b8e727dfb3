-- Dates are compared with instants beyond the instants' range.
SET TimeZone = 'UTC-2';
SELECT date '4714-11-24 BC' < timestamptz '2020-10-05', timestamptz '2020-10-05' >= date '4714-11-24 BC', timestamp '4714-11-24 BC' < timestamptz '2020-10-05';
SELECT date '2202020-10-05' > timestamptz '2020-10-05', timestamptz 'infinity' > date '2202020-10-05', date '-infinity' = timestamptz '-infinity';
SELECT date '2202020-10-05' < timestamp 'infinity', date '2202020-10-05' IN (timestamptz '2020-10-05', timestamptz 'infinity');
SELECT date '2202020-10-05' BETWEEN timestamptz '2020-10-05' AND timestamptz 'infinity';
SELECT date '4714-11-24 BC'::timestamptz;
SELECT date '2202020-10-05'::timestamptz;
CREATE TABLE instants (z timestamptz PRIMARY KEY);
INSERT INTO instants VALUES ('-infinity'), ('2020-10-05'), ('infinity');
SELECT * FROM instants WHERE z > date '2202020-10-05';
SELECT * FROM instants WHERE z < date '4714-11-24 BC';
