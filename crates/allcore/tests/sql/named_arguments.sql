-- Arguments by name.
SELECT make_interval(days => 10), make_interval(1, hours => 2), make_interval(secs => 1.5, years := 2), make_interval(days => NULL);
SELECT make_date(year => 2024, month => 2, day => 3), make_date(2024, day => 3, month => 2), make_time(sec => 1.5, min => 2, hour => 3);
SELECT make_timestamp(2024, 2, 3, sec => 4.5, min => 5, hour => 6);
SELECT make_timestamptz(2024, 2, 3, 4, 5, sec => 6) = make_timestamptz(2024, 2, 3, 4, 5, timezone => current_setting('TimeZone'), sec => 6);
SELECT n, timestamp '2024-01-31' + make_interval(months => n) FROM generate_series(0, 3) n;
SELECT make_interval(foo => 10);
SELECT make_interval(days => 10, 5);
SELECT make_interval(days => 10, days => 5);
SELECT make_interval(1, years => 5);
SELECT make_interval(days => 'x');
SELECT make_date(year => 2024, day => 3);
SELECT make_date(2024, 1, 2, day => 3);
PREPARE later(int) AS SELECT make_interval(hours => $1);
EXECUTE later(5);
