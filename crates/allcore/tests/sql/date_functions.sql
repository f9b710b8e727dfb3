-- Dates, times and intervals made of numbers, binned, moved and compared.
SET TimeZone = 'America/New_York';
SELECT make_date(2013, 7, 15), make_date(-44, 3, 15), make_date(2024, 2, 29), make_date(-5, 2, 29);
SELECT format('SELECT make_date(%s)', a) FROM unnest(ARRAY['2023, 2, 29', '0, 1, 1', '2024, 13, 1', '2024, -1, 1', '2024, 1, 0', '-32, 1, 32',
  '2147483647, 1, 1', '-2147483648, 1, 1', '5874897, 12, 31', '5874898, 1, 1', '-4714, 11, 24', '-4714, 11, 23']) a \gexec
SELECT make_time(8, 20, 0.0), make_time(24, 0, 0), make_time(23, 59, 60), make_time(10, 30, 15.1234567);
SELECT format('SELECT make_time(%s)', a) FROM unnest(ARRAY['24, 0, 1', '10, 55, 100.1', '-1, 0, 0', '10, 60, 0', '10, 0, -0.5', '10, 0, 60.5', '10, 0, ''nan''']) a \gexec
SELECT make_timestamp(2014, 12, 28, 6, 30, 45.887), make_timestamp(-44, 3, 15, 12, 30, 15);
SELECT format('SELECT make_timestamp(%s)', a) FROM unnest(ARRAY['2024, 2, 30, 0, 0, 0', '2024, 2, 1, 25, 0, 0', '294277, 1, 1, 0, 0, 0', '2024, 13, 1, 25, 0, 0']) a \gexec
SELECT make_timestamptz(1973, 7, 15, 8, 15, 55.33), make_timestamptz(1973, 7, 15, 8, 15, 55.33, '+2'), make_timestamptz(1973, 7, 15, 8, 15, 55.33, '-02:30'),
  make_timestamptz(2012, 3, 27, 8, 15, 55.33, 'MSK'), make_timestamptz(2014, 12, 10, 10, 10, 10, 'EST5EDT,M4.1.0,M10.5.0'), make_timestamptz(2014, 12, 10, 10, 10, 10, 'Europe/Prague');
SELECT format('SELECT make_timestamptz(2014, 12, 10, 10, 10, 10, %L)', z) FROM unnest(ARRAY['4', '+16', '+1:60', 'Nowhere/Town', '', '+', '-5x', 'PST']) z \gexec
SELECT make_interval(), make_interval(1), make_interval(1, 2), make_interval(1, 2, 3), make_interval(1, 2, 3, 4), make_interval(1, 2, 3, 4, 5), make_interval(1, 2, 3, 4, 5, 6),
  make_interval(1, -2, 3, -4, 5, -6, 7.8);
SELECT format('SELECT make_interval(%s)', a) FROM unnest(ARRAY['178956971', '0, 2147483647', '1, 2147483647', '0, 0, 306783379', '0, 0, 0, 0, 2147483647, 2147483647',
  '0, 0, 0, 0, 0, 0, ''inf''', '0, 0, 0, 0, 0, 0, ''nan''', '0, 0, 0, 0, 0, 0, 1e18', '0, 2147483647, 0, 2147483647, 0, 0, 1e12']) a \gexec
SELECT to_timestamp(0), to_timestamp(1e10), to_timestamp(-1e10), to_timestamp('infinity'), to_timestamp(1234567890.123456);
SELECT format('SELECT to_timestamp(%s)', a) FROM unnest(ARRAY['''nan''', '1e300', '-1e15', '9.3e12', '9224318016000']) a \gexec

SELECT date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01'), date_bin('15 minutes', timestamp '1999-02-11 15:44:17', timestamp '2001-01-01 00:02:30'),
  date_bin('1 day 12 hours', timestamptz '2020-02-11 15:44:17', timestamptz '2001-01-01'), date_bin('1 week', timestamp 'infinity', timestamp 'infinity');
SELECT format('SELECT date_bin(%s)', a) FROM unnest(ARRAY['''1 month'', timestamp ''2020-02-11'', timestamp ''2001-01-01''', '''0'', timestamp ''2020-02-11'', timestamp ''2001-01-01''',
  '''-1 day'', timestamp ''2020-02-11'', timestamp ''2001-01-01''', '''infinity'', timestamp ''2020-02-11'', timestamp ''2001-01-01''', '''1 day'', timestamp ''2020-02-11'', timestamp ''infinity''',
  '''200000000 days'', timestamp ''2020-02-11'', timestamp ''2001-01-01''', '''1000000 days'', timestamp ''4714-11-25 BC'', timestamp ''2001-01-01''',
  '''5 minutes'', timestamp ''294276-12-31'', timestamp ''4714-11-24 BC''']) a \gexec

SELECT date_add(timestamptz '2021-10-31 00:00:00+02', '1 day'), date_add(timestamptz '2021-10-31 00:00:00+02', '1 day', 'Europe/Warsaw'), date_add(timestamptz '2021-10-31 00:00:00+02', '1 month', 'UTC'),
  date_subtract(timestamptz '2021-11-01 00:00:00+01', '1 day', 'Europe/Warsaw'), date_subtract(timestamptz '2021-11-07 12:00-05', '1 day 1 hour');
SELECT date_add(timestamptz '2021-10-31 00:00:00+02', '1 day', 'Nowhere');

-- A month that an age borrows from is the earlier one's.
SELECT age(timestamp '1967-01-27', timestamp '1999-06-08'), age(timestamp '1999-06-08', timestamp '1967-01-27'), age(date '2024-03-01', date '2024-01-31'), age(date '2024-01-31', date '2024-03-01'),
  age(timestamptz '2023-03-31 12:00', timestamptz '2023-05-01 11:00'), age(timestamp '2000-02-29', timestamp '2001-03-01 BC');
SELECT a, b, age(a, b), age(b, a) FROM generate_series(timestamp '2023-12-28', '2024-04-02', '13 days 7 hours') a, generate_series(timestamp '2022-01-30', '2023-03-01', '9 days 17 hours') b ORDER BY 1, 2;

SELECT a, b, (timestamp '2024-01-01', timestamp '2024-01-10') OVERLAPS (timestamp '2024-01-05' + a, timestamp '2024-01-05' + b)
FROM unnest(ARRAY[interval '-9 days', '-4 days', '0', '5 days', '9 days', NULL]) a, unnest(ARRAY[interval '-9 days', '-4 days', '0', '5 days', '9 days', NULL]) b ORDER BY 1, 2;
SELECT (date '2024-01-01', date '2024-01-10') OVERLAPS (date '2024-01-10', date '2024-01-20'), (time '00:00', time '01:00') OVERLAPS (time '00:30', interval '1 hour'),
  (timestamptz '2024-03-09 12:00', interval '1 day') OVERLAPS (timestamptz '2024-03-10 11:30', interval '1 hour'), (NULL, timestamp '2024-01-01') OVERLAPS (timestamp '2023-01-01', timestamp '2025-01-01'),
  (timestamp '2024-01-01', NULL) OVERLAPS (timestamp '2023-01-01', timestamp '2023-06-01'), (timestamp '2024-01-01', timestamp '2024-01-01') OVERLAPS (timestamp '2024-01-01', timestamp '2024-01-01');

SELECT date 'infinity' + time '12:00', date '-infinity' + time '12:00', isfinite(date '5874897-12-31'), isfinite(date 'infinity');
SELECT time '12:00' - interval 'infinity';
SELECT time '12:00' + interval '-infinity';
SET TimeZone = 'UTC-2';
SELECT timestamptz '294276-12-31 23:59:59+00' AT LOCAL;
SELECT timestamptz '294276-12-31 23:59:59+00'::timestamp;
SELECT date_trunc('second', timestamptz '294276-12-31 23:59:59.9+00');
SELECT date_trunc('day', timestamptz '4714-11-24 00:00+00 BC', 'UTC');
-- Months and days are added one after the other, each to an instant that there is.
SET TimeZone = 'America/New_York';
SELECT timestamptz '2024-02-10 02:30' + interval '1 month', timestamptz '2024-02-10 02:30' + interval '1 month 1 day', timestamptz '2024-10-03 01:30' + interval '1 month 1 day',
  timestamptz '2024-03-09 02:30' + interval '1 day 1 hour', timestamptz '4714-11-24 00:00+00 BC' + interval '15 days', timestamptz '294276-12-31 23:59:59+00' - interval '14 days';
SELECT time '04:23:19' - interval '-9223372036854775808 us', time '23:00' + interval '9223372036854775807 us';
SELECT age(timestamptz '294276-12-31 23:59:59+00', timestamptz '4714-11-24 00:00+00 BC');
SELECT timestamptz '294276-12-31 23:59:59+00' + interval '11 years 341 hours';
SELECT extract(hour FROM time '24:00'), date_part('hour', time '24:00'), extract(epoch FROM time '24:00');
SELECT interval '-1 us' - interval '-9223372036854775808 us', interval '1 day' - interval 'infinity';
SELECT date_part('milliseconds', interval '7.999788 secs'), date_part('second', time '12:34:59.999789'), extract(milliseconds FROM interval '7.999788 secs'), date_part('second', interval 'infinity');
SELECT timestamptz '294264-07-12 12:00', timestamptz '294264-01-12 12:00', timestamptz '10024-07-12 12:00', interval '-9223372036854775808 us' * 1;
SELECT make_interval(secs => 1e308);
SELECT make_interval(secs => -1e303);
SELECT make_interval(secs => 1e300);
