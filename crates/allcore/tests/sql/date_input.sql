-- Dates and times from text: one decoder of fields reads all types. Every text is a statement of its own.
CREATE TABLE texts (n int PRIMARY KEY, t text);
INSERT INTO texts SELECT row_number() OVER (), t FROM unnest(ARRAY[
  '2003-05-17', '2003/05/17', '2003.05.17', '20030517', '030517', '2003.137', '2003-137', '2003 137', 'J2452777',
  'julian 2452777', 'J2452777.25', 'JD 2452777', '17-05-03', '05-17-03', '03-05-17', '17/5/2003', '5/17/2003', '17.5.2003',
  'May 17, 2003', '17 May 2003', '2003 May 17', 'May 17 03', '17 May 03', '03 May 17', '03 17 May', '17 03 May',
  '17-May-03', '03-May-17', 'May-17-03', '2003-May-17', 'may/17/2003', 'sept 5 2003', 'Septem 5 2003',
  '2003-02-29', '2004-02-29', '2003-13-01', '2003-00-10', '2003-10-00', '0000-01-01', '0-1-1', '0001-01-01 BC',
  'May 17, 99 BC', '44-03-15 BC', 'March 15 44 BC', '0044-03-15 BC', '4714-11-24 BC', '4714-11-23 BC', '69-01-01',
  '70-01-01', '5874897-12-31', '5874898-01-01', '99999999999-01-01', 'Monday May 17 2003', 'Sat 17 May 2003',
  '2003-05-17 Sat Sun', 'today today', 'epoch', 'infinity', '-infinity', '+infinity', '- infinity', 'infinity BC', 'epoch 1',
  '', ' ', '2003', '2003-05', 'May', 'May 2003', '17 17 17', '2003-05-17-', '2003--05-17', '-2003-05-17', 'y2003m05d17',
  '2003-05-17x', '2003-05-17 12', '2003-05-17 1200', '2003-05-17 25:00', '2003-05-17 12:60', 'noon 2003-05-17',
  '2003-05-17 (12:00)', '2003_05_17', '2003-05-17, 12:30', 'May 17 12:34:56 2003', 'May 17 12:34:56 2003 UTC',
  '12:30 2003-05-17', '12:30 May 17 2003', 'J2452777 12:30', 'J-5', 'J', 'at May on 17, 2003'
]) t;
SET DateStyle = 'ISO, MDY';
SELECT format('SELECT %L::date', t) FROM texts ORDER BY n \gexec
SET DateStyle = 'SQL, DMY';
SELECT format('SELECT %L::date', t) FROM texts WHERE n < 62 ORDER BY n \gexec
SET DateStyle = 'German, YMD';
SELECT format('SELECT %L::timestamp', t) FROM texts WHERE n < 62 ORDER BY n \gexec
SET DateStyle = 'ISO, MDY';
SELECT format('SELECT %L::timestamp', t) FROM texts WHERE n >= 62 ORDER BY n \gexec

-- With a time of day and a zone.
SET TimeZone = 'America/Los_Angeles';
SELECT format('SELECT %L::timestamptz', t) FROM unnest(ARRAY[
  '20030517 040506-08', '20030517T040506.789+08', '20030517T040506-0830', 'J2452777+08', 'J2452777.5-08', 'J2452777T040506-08',
  'J2452777T040506.789+08', '2003-05-17 04:05:06.789 MET DST', '2003-05-17 04:05 MET', '2003-05-17 04:05 DST',
  '2003-05-17 04:05 CEST DST', '2003-05-17 04:05 America/New_York', '2003-05-17 04:05 america/new_york DST',
  '2003-05-17 04:05 Nowhere/Town', '2003-05-17 04:05 NOWHERE', '2003-05-17 04:05 UTC+3', '2003-05-17 04:05 GMT-0400',
  '2003-05-17 04:05 GMT+0100', '2003-05-17 04:05+15:59:59', '2003-05-17 04:05+16', '2003-05-17 04:05-0097',
  '2003-05-17 04:05+05:30', '2003-05-17 04:05+05 +06', '2003-05-17 allballs', '2003-05-17 allballs UTC', 'allballs 2003-05-17',
  '2003-05-17 z', '2003-05-17T04:05Z', '2003-05-17 4:05 pm', '2003-05-17 12:05 am', '2003-05-17 13:05 pm', '2003-05-17 4:05 am pm',
  '2003-05-17 24:00', '2003-05-17 24:00:01', '2003-05-17 23:59:60', '2003-05-17 23:59:61', '2003-05-17 12:30:15.123456789',
  '2003-05-17 :30', '2003-05-17 12:', '2003-05-17 12:30:', '2003-05-17 12::30', '2003-05-17 30:15.5', '2003-05-17 t 12:30',
  '2003-05-17 t t 12:30', 't 12:30 2003-05-17', '2003-05-17 12:30 t', '2003-05-17 d 5', '2003-05-17 PST', 'PST 2003-05-17',
  '2003-05-17 04:05 LMT', '1800-05-17 LMT', '2003-05-17 04:05 PST PDT', '1000000312 23:58:48 IST', '2003-05-17 04:05 EST5EDT,M4.1.0,M10.5.0',
  '4714-11-23 16:00:00-08 BC', '4714-11-23 15:59:59-08 BC', '294276-12-31 23:59:59.999999 UTC', '294277-01-01 00:00 UTC',
  '294277-01-01 03:00 +05', '20030517 996199', 'Sat May 17 2003 04:05:06 GMT+0200 (CEST)', '2003-05-17 04:05:06.5 BC',
  '2003-05-17 04:05 foo/bar5'
]) t \gexec
SELECT format('SELECT %L::time', t) FROM unnest(ARRAY[
  '040506', '0405', '040506.07', 'T040506', 't0405', 'T04:05', '040506.789+08', 'T040506.789-08', 'T040506-08', '04:05:06',
  '4:5:6', '04:05 PM', '12:00 am', '12:00 PM', '13:00 AM', '24:00', '24:00:00.000001', '23:59:60', '25:00', '04:60', '04:05 -08',
  '04:05 PST', '04:05 MSK', '04:05 UTC', '04:05 Asia/Tokyo', '04:05 Europe/Lisbon', '2003-05-17 04:05 Europe/Lisbon', '04:05 +20',
  '2003-05-17 04:05', '04:05 2003-05-17', 'J2452777 04:05', 'May 17 2003 04:05', 'allballs', 'allballs UTC', 'today', 'epoch',
  'infinity', '4', '405', '04050', '0405067', '04:05:06.7.8', 'Sat 04:05', '12:34:56 BC', '.5', '30:15.25', ''
]) t \gexec

-- In columns, arrays and COPY alike.
CREATE TABLE kept (d date, s timestamp, z timestamptz, t time, a date[]);
INSERT INTO kept VALUES ('J2452777', '20030517T040506', '17 May 2003 04:05 MET DST', '040506', '{J2452777,"May 17, 2003",030517}');
COPY kept FROM stdin;
990108	Jan 8 1999 04:05 PM	8-Jan-1999 PST	T0405	{"1999.008",J0}
99-01-08	1999-01-08	1999-01-08	04:05	{}
\.
SELECT * FROM kept;
SELECT count(*) FROM kept WHERE d = '030517' AND s = 'May 17 2003 4:05:06';
