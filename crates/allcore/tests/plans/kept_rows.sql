-- Loops that keep the rows of their right side by the values of the left row.
create table outers (id int primary key, k int, name text);
create table inners (id int primary key, k int, v int, note text);
create table kinds (id int primary key, name text);
insert into outers select i, i % 20, 'n' || i % 4 from generate_series(1, 2000) i;
insert into inners select i, i % 1000, i * 37 % 101, 'x' || i from generate_series(1, 20000) i;
insert into kinds select i, 'kind ' || i from generate_series(0, 500) i;
create index inners_k on inners (k, v);
analyze outers, inners, kinds;
-- A subquery with an aggregate or a LIMIT, by few values.
explain (costs off) select * from outers o, lateral (select max(v + 1) from inners i where i.k = o.k) q;
explain (costs off) select * from outers o, lateral (select * from inners i where i.k = o.k order by v limit 2) q;
explain (costs off) select * from outers o left join lateral (select * from inners i where i.k = o.k order by v limit 2) q on true;
-- By as many values as there are rows: none are kept.
explain (costs off) select * from outers o, lateral (select max(v + 1) from inners i where i.k = o.id) q;
-- An index lookup of several rows.
explain (costs off) select * from outers o join inners i on i.k = o.k where i.v > 90;
explain (costs off) select count(*) from outers o where exists (select 1 from inners i join kinds on kinds.id = i.v where i.k = o.k and i.note like '%9');
-- A lookup of one row by the key, where a hash is off.
set enable_hashjoin = off;
explain (costs off) select * from outers o join kinds on kinds.id = o.k;
reset enable_hashjoin;
-- Volatile functions and locks run each time.
explain (costs off) select * from outers o, lateral (select v + random() from inners i where i.k = o.k order by v limit 2) q;
explain (costs off) select * from outers o, lateral (select v from inners i where i.k = o.k order by v limit 2 for update) q;
-- The method is off.
set enable_memoize = off;
explain (costs off) select * from outers o, lateral (select max(v + 1) from inners i where i.k = o.k) q;
reset enable_memoize;
-- Hits and misses.
explain (costs off, analyze, timing off, summary off, buffers off) select * from outers o, lateral (select max(v + 1) from inners i where i.k = o.k) q;
explain (costs off, analyze, timing off, summary off, buffers off) select count(*) from outers o, lateral (select * from inners i where i.k = o.k order by v limit 2) q;
set work_mem = '64kB';
explain (costs off, analyze, timing off, summary off, buffers off) select count(length(q.r)) from outers o, lateral (select repeat(note, 2000) r from inners i where i.k = o.k order by v limit 2) q;
reset work_mem;
explain (costs off, analyze, timing off, summary off, format json, buffers off) select count(*) from outers o, lateral (select * from inners i where i.k = o.k order by v limit 2) q;
