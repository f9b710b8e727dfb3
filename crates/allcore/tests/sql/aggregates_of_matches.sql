-- Scalar subqueries of aggregates over the rows that match: by group, or row by row.
create table a (id int primary key, k int, n numeric, t text, f float8);
create table b (id int primary key, k int, n numeric, t text, v int, f float8, d date);
insert into a select g, nullif(g % 50, 7), (g % 9) / case when g % 2 = 0 then 1.0 else 1.00 end, 'key ' || g % 30, case when g % 40 = 0 then 'NaN'::float8 when g % 41 = 0 then '-0' else g % 5 end from generate_series(1, 600) g;
insert into b select g, nullif(g % 60, 11), (g % 12)::numeric(6, 2), nullif('key ' || g % 35, 'key 3'), nullif(g % 1000, 13), case when g % 44 = 0 then 'NaN'::float8 else g % 7 end, date '2024-02-01' + g % 90 from generate_series(1, 3000) g;
create table none (k int, v int);
analyze a; analyze b;
select sum(s), count(s), count(*) from (select (select sum(v) from b where b.k = a.k) as s from a) q;
select sum(s), min(s), max(s), count(*) from (select (select count(*) from b where b.k = a.k) as s from a) q;
select sum(s), min(s), max(s) from (select (select count(v) + 10 from b where b.k = a.k) as s from a) q;
select k, (select count(*) from b where b.k = a.k), (select max(d) from b where b.k = a.k), (select min(t) from b where a.k = b.k) from a where id < 65 order by id;
-- Keys of NULL, of other forms, of several columns.
select a.n::text, count(*), sum(s) from (select n, (select count(*) from b where b.n = a.n) as s from a) a group by a.n::text order by 1;
select a.t, min(s), max(s) from (select t, (select sum(b.n * b.n + 1) from b where b.t = a.t) as s from a) a group by a.t order by a.t limit 8;
select a.f, count(*), min(s), max(s) from (select f, (select count(*) from b where b.f = a.f) as s from a) a group by a.f order by a.f;
select sum(s), count(s) from (select (select avg(n) from b where b.k = a.k and b.t = a.t) as s from a) q;
select sum(s), count(s) from (select (select sum(v) from b where b.k = a.k + 1 and b.v > 500) as s from a) q;
select sum(s), count(s) from (select (select sum(v) from b where b.k + 1 = a.k and a.id < 300) as s from a) q;
select sum(s), count(s) from (select (select sum(v) from b where b.k = a.k and b.v > a.id) as s from a) q;
-- Results that read the outer row, and that count rows which are not there.
select sum(s), count(s) from (select (select a.id + coalesce(sum(v), -1) from b where b.k = a.k) as s from a) q;
select sum(s), count(s) from (select (select case when count(*) = 0 then a.id else 0 end from b where b.k = a.k) as s from a) q;
select min(s), max(s) from (select (select count(*) from none where none.k = a.k) as s from a) q;
select count(*), count(s) from (select (select max(v) from none where none.k = a.k) as s from a) q;
select sum(s) from (select (select count(*) filter (where v > 500) + count(distinct v) from b where b.k = a.k) as s from a) q;
select k, (select string_agg(t, ',' order by id) from b where b.k = a.k and b.id < 200), (select bool_and(v > 100) from b where b.k = a.k) from a where id in (1, 2, 7, 11, 49) order by id;
-- In conditions, within others, and in places that may not run.
select count(*), sum(id) from a where n > (select avg(n) from b where b.k = a.k);
select count(*), sum(id) from a where (select count(*) from b where b.k = a.k) = 0 or id < 5;
select count(*), sum(id) from a where case when k is null then false else (select 100 / count(*) from b where b.k = a.k) >= 2 end;
select count(*), sum(id) from a where (select sum(v) from b where b.k = a.k) > (select sum(v) from b where b.t = a.t);
select sum(s) from (select (select sum((select count(*) from b y where y.k = b.k)) from b where b.k = a.k and b.id < 400) as s from a where id < 100) q;
select x.k, sum(s) from a x join lateral (select (select sum(v) from b where b.k = x.k) as s) l on true where x.id < 100 group by x.k order by x.k limit 5;
select count(*) from a left join b on b.id = a.id and b.v > (select avg(v) from b c where c.k = a.k);
-- Division by zero in a group that no row asks for.
select sum(s) from (select (select sum(100 / v) from b where b.k = a.k and b.k <> 0) as s from a where k = 4) q;
select sum(s) from (select (select sum(v) / (count(*) - 50) from b where b.k = a.k) as s from a where k = 100) q;
select sum(s) from (select (select sum(v) / (count(*) - 50) from b where b.k = a.k) as s from a) q;
-- Grouping, order and limits around it.
select k, max(s) from (select k, (select sum(v) from b where b.k = a.k) as s from a) q group by k order by max(s) desc nulls last, k limit 5;
select id, (select sum(v) from b where b.k = a.k) as s from a order by s nulls first, id limit 12;
select id, (select count(*) from b where b.k = a.k) from a order by id desc limit 3;
select distinct (select count(*) from b where b.k = a.k) as s from a order by s;
-- In changes and with locks.
begin;
update a set n = (select sum(n) from b where b.k = a.k);
select sum(n), count(n) from a;
delete from a where (select count(*) from b where b.k = a.k) = 0;
select count(*) from a;
insert into b select 10000 + id, k, (select max(n) from b where b.k = a.k), t, (select count(*) from b where b.t = a.t), f from a;
select count(*), sum(v), sum(n) from b;
select id, (select sum(v) from b where b.k = a.k) from a where id < 4 order by id for update;
rollback;
prepare p (int) as select sum(s), count(*) from (select (select sum(v) from b where b.k = a.k and b.v > $1) as s from a where id < $1) q;
execute p (10); execute p (500); execute p (null);
set work_mem = '64kB';
select sum(s), count(s), count(*) from (select (select sum(v) from b where b.id = a.id * 3) as s from a) q;
reset work_mem;
drop table a, b, none;
