-- Loops that keep the rows of their right side by the values of the left row: the same rows as
-- without.
create table outers (id int primary key, k int, n numeric, s text, f float8);
create table inners (id int primary key, k int, n numeric, v int, s text);
insert into outers select i, case when i % 11 = 0 then null else i % 7 end, (i % 5)::numeric / 2, 'w' || i % 3, i % 2 from generate_series(1, 400) i;
insert into inners select i, case when i % 13 = 0 then null else i % 9 end, (i % 6)::numeric / 2, i * 37 % 101, 'w' || i % 4 from generate_series(1, 2000) i;
create index inners_k on inners (k, v);
analyze outers, inners;
-- Aggregates, LIMIT, no row at all.
select o.k, count(*), sum(q.c), sum(q.m) from outers o, lateral (select count(*) c, max(v) m from inners i where i.k = o.k) q group by o.k order by o.k;
select o.k, count(*), sum(q.v) from outers o, lateral (select v from inners i where i.k = o.k order by v, id limit 3) q group by o.k order by o.k;
select o.k, count(*), sum(q.v) from outers o left join lateral (select v from inners i where i.k = o.k + 3 order by v desc, id limit 2) q on true group by o.k order by o.k;
select count(*), count(q.v) from outers o left join lateral (select v from inners i where i.k = o.k + 100 limit 2) q on true;
-- NULL as a key, and values that are equal but not the same.
select o.k is null, count(*), sum(q.c) from outers o, lateral (select count(*) c from inners i where i.k is not distinct from o.k) q group by 1 order by 1;
create table scales (id int primary key, n numeric);
insert into scales select i, case i % 3 when 0 then 1.0 when 1 then 1.00 else 1 end from generate_series(1, 300) i;
analyze scales;
select q.t, count(*) from scales s, lateral (select s.n::text t from inners i where i.n = s.n limit 1) q group by q.t order by q.t;
-- Several keys; wide rows; a join on the right side.
select count(*), sum(q.v), max(q.s) from outers o, lateral (select i.v, i.s from inners i where i.k = o.k and i.s = o.s and i.v > 20 order by i.v, i.id limit 4) q;
select count(*), sum(q.a), sum(q.b) from outers o, lateral (select i.v a, j.v b from inners i join inners j on j.id = i.id + 1 where i.k = o.k and i.v < 5) q;
-- Stopped in the middle: LIMIT above, EXISTS, NOT EXISTS.
select o.id, q.v from outers o, lateral (select v from inners i where i.k = o.k order by v, id limit 5) q order by o.id, q.v limit 7;
select o.id, q.v from outers o, lateral (select v from inners i where i.k = o.k order by v, id limit 5) q order by o.id, q.v limit 0;
select count(*) from outers o where exists (select 1 from inners i join inners j on j.id = i.id + 1 where i.k = o.k and i.v + j.v > 190);
select count(*) from outers o where not exists (select 1 from inners i join inners j on j.id = i.id + 1 where i.k = o.k and i.v + j.v > 190);
-- Little memory.
set work_mem = '64kB';
select o.k, count(*), sum(length(q.s)) from outers o, lateral (select repeat(i.s, 500) s from inners i where i.k = o.k order by i.id limit 20) q group by o.k order by o.k;
select count(*), sum(q.c) from outers o, lateral (select count(*) c from inners i where i.k = o.id % 200) q;
reset work_mem;
-- Parameters, and rows that the transaction itself changed.
prepare p (int) as select o.k, sum(q.v) from outers o, lateral (select v from inners i where i.k = o.k order by v desc, id limit $1) q group by o.k order by o.k;
execute p (2);
execute p (0);
execute p (null);
begin;
update inners set v = v + 1000 where k = 3 and v > 90;
delete from inners where k = 4;
select o.k, count(*), sum(q.v) from outers o, lateral (select v from inners i where i.k = o.k order by v desc, id limit 3) q group by o.k order by o.k;
update outers set f = q.m from (select o.id, q.m from outers o, lateral (select max(v) m from inners i where i.k = o.k) q) q where q.id = outers.id;
select k, min(f), max(f) from outers group by k order by k;
rollback;
-- An error of the right side.
select sum(q.x) from outers o, lateral (select 1 / (o.k - 3) x from inners i where i.k = o.k limit 1) q;
-- Empty sides.
select count(*) from (select * from outers where id < 0) o, lateral (select v from inners i where i.k = o.k limit 1) q;
truncate inners;
select count(*), count(q.v) from outers o left join lateral (select v from inners i where i.k = o.k limit 1) q on true;
drop table outers, inners, scales;
