-- Intervals from text: words, clocks, SQL's year-month and ISO 8601. Every text is a statement of its own.
CREATE TABLE texts (n int PRIMARY KEY, t text);
INSERT INTO texts SELECT row_number() OVER (), t FROM unnest(ARRAY[
  '@ 1 hour @ 42 minutes @ 20 seconds', '1 month - 1 second', '2 days - 12:34:56', '+ 3 days', '3 millenniums 2 centuries',
  '1 microsecond 2 milliseconds', '5.5 seconds 3 milliseconds', '5 seconds 3 milliseconds', '1:20:05 5 microseconds', '7 mm', '7 on', '7 at ago',
  '7 qtr', '7 quarter', '1-2 qtr', '1 dow', '1-2 dow', '1 2 days', '1 2 hours', '1 12:00', '1.5 days 1:00', '1:00 1.5 days', '1 hour 2 hours',
  '1:00 2:00', 'days 1', '1 days ago', 'ago 1 day', '1 day ago ago', '1 ago', '1:00 ago', '-1:00 ago', '1-2 ago', '1-12', '1--2', '-1-2', '-1 -2:00',
  '-1 2:00', '- 1 day 2:00', '-1 day +2:00', '1 day -2:00', 'infinity', '-infinity', '+infinity', 'infinity ago', '1 infinity', 'infinity 1', '@ infinity',
  '', '@', '1', '.5', '-.5', '1.', '1. day', '1e3 days', '0.5 months', '0.5 years', '0.05 centuries', '1.999999999 days', '2147483647 days',
  '2147483648 days', '178956970 years 7 months', '178956970 years 8 months', '178956971 years', '9223372036854775807 us', '9223372036854775808 us',
  '-9223372036854775808 us', '9223372036854775808 us ago', '2562047788:00:54.775807', '2562047788:00:54.775808', '-2562047788:00:54.775808',
  '+2562047788:00:54.775808', '2562047788.1:0:0', '-2147483648 months -2147483648 days -9223372036854775808 us',
  '2147483647 months 2147483647 days 9223372036854775807 us', '1 year 2 foo', '1:2:3:4', '1:60', '1:59:60', '1:59:61', '1:2.5', '12', '1 d', '1 century',
  'P', 'PT', 'PTT', 'P1Y', ' P1Y', 'P1Y ', 'p1y', 'P1Y2M3W4DT5H6M7.8S', 'P-1Y-2M', 'P1.5Y', 'P1.5W', 'P.5D', 'P1', 'P1Y1', 'P1S', 'PT1Y',
  'P00021015T103020', 'P0002-10-15T10:30:20', 'P0002', 'P0002-10', 'P0002T1S', 'P0002-10T1S', 'P1-2-3T4:5:6', 'P1-2-3-4', 'PT10', 'PT10:30',
  'PT10:30:20:1', 'PT103020', 'PT103020.5', 'P00021015.5', 'PT10T5S', 'PT10HT5S', 'P10.5e4Y', 'P1e400Y', 'P1e16Y', 'P2147483648', 'P-2147483649',
  'P1-2147483647-2147483647', 'PT2562047788:00:54.775807', 'PT2562047789', 'PT2562047788.0152155019444', 'P0.1-2147483647-00', 'PT-0.1H', 'P1YM'
]) t;
SELECT format('SELECT %L::interval', t) FROM texts ORDER BY n \gexec
SET IntervalStyle = 'sql_standard';
SELECT format('SELECT %L::interval', t) FROM texts WHERE t LIKE '%-%' ORDER BY n \gexec
SET IntervalStyle = 'postgres_verbose';
SELECT format('SELECT %L::interval', t) FROM texts WHERE t LIKE '%-%' ORDER BY n \gexec
SET IntervalStyle = 'iso_8601';
SELECT format('SELECT %L::interval', t) FROM texts WHERE t LIKE '%.%' ORDER BY n \gexec
RESET IntervalStyle;
-- A number without a unit counts the type's smallest field.
SELECT interval '5' year, interval '5' month, interval '5' day, interval '5' hour, interval '5' minute, interval '5' second;
SELECT interval '1 2' day to hour, interval '1 2:03' day to minute, interval '1 2:03:04' day to second, interval '2:03' minute to second;
SELECT interval '1-2' year to month, interval '1:02:03.456' hour to second, interval(2) '1.239', interval '1 2' hour;
SELECT '{@ 1 hour @ 2 minutes,P1Y,1 month - 1 second}'::interval[];
-- What time and days move a timestamp through must be in range all the way.
SELECT timestamp '4713-01-01 BC' + interval '109203489 days', timestamp '4713-01-01 BC' + interval '107000000 days';
SELECT timestamp '4713-01-01 BC' + interval '110000000 days';
SELECT timestamp '294276-12-31' + interval '1 month -40 days';
SELECT timestamp '294276-12-31' + interval '2 days -50 hours';
-- An interval of fields that cannot be read is told with its place.
select interval '1 foo' hour to minute;
select interval '1 foo' year;
select 1, interval '1 foo' second(2);
select interval '1' hour to minute, interval '1:2' hour to minute, interval '1 2' day to hour, interval '9' second(1);
