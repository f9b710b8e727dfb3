-- Correlated subqueries whose results are kept by the outer values.
create table o (id int primary key, k int, n numeric, t text, d date);
create table i (k int, v int, w numeric);
insert into o select g, nullif(g % 5, 3), (g % 3) / case when g % 2 = 0 then 1.0 else 1.00 end, repeat('x', g % 4), date '2024-01-01' + g % 6 from generate_series(1, 200) g;
insert into i select g % 7, g, g / 10.0 from generate_series(1, 300) g;
select k, count(*), min(s), max(s) from (select o.k, (select sum(v) from i where i.k = o.k) as s from o) q group by k order by k;
select k, count(*), min(s), max(s) from (select o.k, (select sum(v) from i where i.k = o.k and i.v > o.id) as s from o) q group by k order by k;
-- Equal values of other forms.
select n::text, count(*), min(s), max(s) from (select o.n, (select o.n::text || ' ' || count(*) from i where i.w > o.n) as s from o) q group by n::text order by n::text;
select t, count(*) from o where (select count(*) from i where i.v < length(o.t) * 10) > 15 group by t order by t;
select id, array(select v from i where i.k = o.k order by v limit 2) from o where id > 190 order by id;
select count(*), sum(id) from o where o.k < all (select v from i where i.k = o.k and v > 10);
select count(*), sum(id) from o where o.id = any (select v + o.k from i where i.w > o.n) or o.id < 4;
select count(*), sum(id) from o where exists (select from i where i.k = o.k offset 40);
select d, count(*), max(s) from (select d, (select max(v) from i where i.v < extract(day from o.d) * 10 + coalesce(o.k, 0)) as s from o) q group by d order by d;
-- Results of NULL, of no row and of too many.
select count(*), count(s) from (select (select v from i where i.k = o.k + 100 and v < 0) as s from o) q;
select (select v from i where i.k = o.k) from o order by id;
select (select 1 / (o.k - 4) from i limit 1) from o where id > 100 order by id;
select count(*) from o where case when k is null then false else (select 10 / k from i limit 1) > 2 end;
-- Volatile ones run for each row.
create sequence calls;
select count(distinct s) from (select (select nextval('calls') + 0 * o.k + 0 * count(*) from i where i.k = o.k) as s from o where o.k is not null) q;
select count(*) > 1 from (select distinct (select random() + 0 * o.k from i limit 1) from o where o.k = 1) q;
-- In changes, and where the outer row changes.
begin;
update o set n = (select sum(w) from i where i.k = o.k) where id <= 150;
select k, count(*), sum(n) from o group by k order by k;
delete from o where id > (select 20 * count(*) from i where i.k = o.k and i.v <= 50);
select count(*), sum(id) from o;
insert into i select k, (select max(v) from i x where x.k = o.k) + 1, 0 from o;
select count(*), sum(v) from i;
rollback;
-- Within each other.
select k, count(*), sum(s) from (select o.k, (select sum(v) from i where i.k = o.k and i.v > (select avg(v) from i y where y.k = o.k and y.k = i.k)) as s from o) q group by k order by k;
with recursive r (n, s) as (select 1, 0::bigint union all select n + 1, (select sum(v) from i where i.k = r.n % 5) from r where n < 40) select count(*), sum(s) from r;
set work_mem = '64kB';
select count(*), sum(length(s)) from (select (select string_agg(v::text || o.t, ',') from i where i.k <= o.k) as s from o) q;
reset work_mem;
drop table o, i; drop sequence calls;
