-- Dates compared with moments.
create table t (id int primary key, d date, e date not null unique);
insert into t select i, date '2024-03-01' + i % 600, date '2023-01-01' + i from generate_series(1, 6000) i;
create index on t (d); analyze t;
explain (costs off) select * from t where d < timestamp '2024-03-03 10:00';
explain (costs off) select * from t where d > now() - interval '1 day';
explain (costs off) select * from t where d >= timestamptz '2024-03-03' and d < timestamptz '2024-03-05';
explain (costs off) select * from t where e = timestamp '2024-03-03';
-- A moment compared with a date: the date becomes a moment.
create table m (id int primary key, at timestamp, ta timestamptz);
insert into m select i, timestamp '2024-03-01' + i * interval '1 hour', timestamptz '2024-03-01 00:00+00' + i * interval '1 hour' from generate_series(1, 6000) i;
create index on m (at); create index on m (ta); analyze m;
explain (costs off) select * from m where at < date '2024-03-02';
explain (costs off) select * from m where ta < date '2024-03-02';
explain (costs off) select * from m where at > now() - interval '1 day';
explain (costs off) select * from m where ta > now() - interval '1 day';
explain (costs off) select * from m where at >= current_date;
-- A cast within OR that cannot fail.
create table n (id int primary key, a numeric); insert into n select i, i / 7.0 from generate_series(1, 6000) i; create index on n (a); analyze n;
explain (costs off) select * from n where a < 5 or (a = 5 and id > 3);
explain (costs off) select * from n where a in (4, 5) or id = 3;
