-- Zones by name, by POSIX's notation, by abbreviation and by offset.
\pset null NULL
SET DateStyle = 'ISO, MDY';
SELECT format('SET TimeZone = %L', z) || E';\nSHOW TimeZone;\nSELECT timestamptz ''2024-07-20 12:00 UTC'', timestamptz ''2024-01-20 12:00 UTC'''
FROM unnest(ARRAY['UTC', 'utc', 'UTC-2', 'utc+5:30', '<+03>-3', '<-0330>3:30', 'A5', '00:00', '5', '-3.5', '+5.75', '100', '168', 'nan', 'infinity',
  'EST5EDT,M4.1.0,M10.5.0', 'cst7cdt,60,300/3', 'FOO5BAR', 'XST-24:30', 'EST5-4', 'PST', 'z', '', ' UTC', 'UTC ', 'Etc/Unknown', 'Nowhere/Town',
  'europe/moscow', 'ASIA/KATHMANDU', 'GMT', 'GMT0', 'Etc/GMT+5', 'interval ''05:30''', 'interval ''1 day''', 'interval ''1 month''', 'interval'
]) z \gexec
SET TIME ZONE INTERVAL '-03:30' HOUR TO MINUTE;
SHOW TimeZone;
SET TIME ZONE INTERVAL '3' HOUR;
SHOW TimeZone;
SET TIME ZONE -7;
SHOW TimeZone;
SET TIME ZONE LOCAL;
SET TimeZone = 'Asia/Kathmandu';
BEGIN;
SET LOCAL TimeZone = 'UTC-2';
SHOW TimeZone;
ROLLBACK;
SHOW TimeZone;

-- How the other styles call the zone's time.
SET DateStyle = 'Postgres, MDY';
SELECT format('SET TimeZone = %L', z) || E';\nSELECT timestamptz ''2024-07-20 12:00 UTC'''
FROM unnest(ARRAY['UTC', 'America/New_York', 'Asia/Kathmandu', 'UTC-2', '<-0330>3:30', '-3.5', 'America/Sao_Paulo']) z \gexec
SET DateStyle = 'ISO, MDY';

-- Moscow's time changed under one name.
SET TimeZone = 'UTC';
SELECT t, (t || ' MSK')::timestamptz, (t || ' MSD')::timestamptz, (t || ' Europe/Moscow')::timestamptz, t::timestamp AT TIME ZONE 'MSK', t::timestamp AT TIME ZONE 'Europe/Moscow'
FROM unnest(ARRAY['1991-03-01 00:00', '2010-10-31 02:30', '2011-03-27 01:59:59', '2011-03-27 02:00:00', '2011-03-27 02:59:59', '2011-03-27 03:00:00',
  '2012-07-01 00:00', '2014-10-26 00:59:59', '2014-10-26 01:00:00', '2014-10-26 01:59:59', '2014-10-26 02:00:00', '2020-01-01 00:00']) t;
SELECT z, z AT TIME ZONE 'MSK', z AT TIME ZONE 'Europe/Moscow', z AT TIME ZONE 'msd'
FROM generate_series(timestamptz '2010-12-01 UTC', '2015-01-01 UTC', '7 months') z;
SET TimeZone = 'Europe/Moscow';
SELECT t::timestamptz, t::timestamptz::timestamp FROM unnest(ARRAY['2010-10-31 02:30', '2011-03-27 02:30', '2014-10-26 01:30', '2014-10-26 02:30']) t;

-- The session's zone says what its abbreviations mean; the common ones stand behind it.
SET TimeZone = 'America/Montevideo';
SELECT timestamptz '1912-01-01 00:00 MMT';
SET TimeZone = 'UTC';
SELECT timestamptz '1912-01-01 00:00 MMT', timestamptz '2001-02-16 20:38:40 VET', timestamptz '2009-02-16 20:38:40 VET';
SELECT timestamptz '2024-01-01 LMT';
SELECT date_trunc('day', timestamptz '2001-02-16 20:38:40+00', 'VET'), date_trunc('day', timestamptz '2009-02-16 20:38:40+00', 'VET');
SELECT date_trunc('day', timestamptz '2001-02-16 20:38:40+00', 'PST'), date_trunc('day', timestamptz '2001-02-16 20:38:40+00', 'UTC-5');
SELECT date_trunc('hour', timestamptz '2024-11-03 05:30+00', 'America/New_York'), date_trunc('hour', timestamptz '2024-11-03 06:30+00', 'America/New_York');
SELECT date_trunc('day', timestamptz '2001-02-16 20:38:40+00', 'Nowhere');

-- AT TIME ZONE and AT LOCAL.
SET TimeZone = 'America/New_York';
SELECT timestamp '2024-07-20 12:00' AT TIME ZONE 'PST', timestamp '2024-07-20 12:00' AT TIME ZONE 'America/Los_Angeles', timestamp '2024-07-20 12:00' AT TIME ZONE 'UTC+3';
SELECT timestamptz '2024-07-20 12:00' AT TIME ZONE 'PDT', timestamptz '2024-07-20 12:00' AT TIME ZONE '<+0530>-5:30', timestamptz '2024-07-20 12:00' AT TIME ZONE '+05';
SELECT timestamp '2024-07-20 12:00' AT TIME ZONE INTERVAL '-08:00', timestamptz '2024-07-20 12:00' AT TIME ZONE INTERVAL '5 hours 30 minutes';
SELECT timestamptz '2024-07-20 12:00' AT TIME ZONE INTERVAL '1 day';
SELECT timestamptz '2024-07-20 12:00' AT TIME ZONE INTERVAL '1 month 2 hours';
SELECT timestamptz '2024-07-20 12:00' AT TIME ZONE INTERVAL 'infinity';
SELECT timestamptz '2024-07-20 12:00' AT TIME ZONE 'Nowhere';
SELECT timestamptz 'infinity' AT TIME ZONE 'Nowhere', timestamp '-infinity' AT TIME ZONE INTERVAL '1 day';
SELECT timestamp '2024-07-20 12:00' AT LOCAL, timestamptz '2024-07-20 12:00 UTC' AT LOCAL;
SELECT timestamp '2024-03-10 02:30' AT TIME ZONE 'America/New_York', timestamp '2024-11-03 01:30' AT TIME ZONE 'America/New_York';
SELECT timestamp '4714-11-24 00:00 BC' AT TIME ZONE 'UTC-2';
SELECT timezone('UTC', timestamptz '2024-07-20 12:00'), timezone(INTERVAL '2:00', timestamp '2024-07-20 12:00');

-- Fields by name: every unit of every type.
SELECT format('SELECT %L, extract(%s FROM %s), date_part(%L, %s)', u || ' ' || v, u, v, u, v)
FROM unnest(ARRAY['microseconds', 'hour', 'week', 'quarter', 'isoyear', 'julian', 'century', 'millenniums', 'timezone', 'microsec', 'mm', 'now']) u,
  unnest(ARRAY['date ''2020-08-11''', 'date ''0044-03-15 BC''', 'date ''infinity''', 'timestamp ''0001-01-01 BC''', 'timestamp ''-infinity''', 'timestamptz ''2020-08-11 12:00''',
    'time ''12:34:56.5''', 'interval ''-5 months -3 days''', 'interval ''infinity''']) v ORDER BY 1 \gexec
SELECT format('SELECT %L, date_trunc(%L, %s)', u || ' ' || v, u, v)
FROM unnest(ARRAY['millisecon', 'week', 'decade', 'millenniums', 'timezone', 'ago', 'mm', 'julian']) u,
  unnest(ARRAY['timestamp ''0044-03-15 12:34:56.789 BC''', 'timestamp ''infinity''', 'timestamptz ''2020-08-11 12:00''', 'timestamptz ''-infinity''', 'interval ''-17 months 3 days''', 'interval ''infinity''']) v ORDER BY 1 \gexec
SELECT y, extract(isoyear FROM d), extract(week FROM d), extract(doy FROM d), extract(isodow FROM d), extract(decade FROM d), extract(century FROM d), extract(millennium FROM d)
FROM generate_series(-2, 2) y, LATERAL (SELECT date '0001-01-01' + 365 * y) AS x(d);
SELECT m, extract(quarter FROM m * interval '1 month'), date_trunc('quarter', m * interval '1 month') FROM generate_series(-13, 13, 2) m;
