-- Merge joins of sides that come in the order of their keys.
create table l (id int primary key, k int, note text);
create table r (id int primary key, k int, x int);
create table w (a int, b int, c int, primary key (a, b));
insert into l select i, i / 2, 'n' || i from generate_series(1, 60000) i;
insert into r select i, i / 3, i % 10 from generate_series(1, 60000) i;
insert into w select i / 10, i % 10, i from generate_series(1, 60000) i;
create index l_k on l (k);
create index r_k on r (k desc);
analyze l, r, w;
set work_mem = '64kB';
-- A hash outgrows its memory.
explain (costs off) select count(*) from l join r on r.id = l.id;
explain (costs off) select count(r.x) from l left join r on r.id = l.id and r.x > 5;
explain (costs off) select count(*) from l where exists (select 1 from r where r.id = l.id);
explain (costs off) select count(*) from l where not exists (select 1 from r where r.id = l.id);
explain (costs off) select count(*) from w join w v on v.a = w.a and v.b = w.b;
explain (costs off) select count(*) from w join w v on v.b = w.b and v.a = w.a and v.c > w.c;
explain (costs off) select count(*) from l join r on r.id = l.id join w on w.a = l.id;
reset work_mem;
-- The order of the keys is wanted.
explain (costs off) select * from l join r on r.id = l.id order by l.id limit 10;
explain (costs off) select * from l join r on r.id = l.id order by l.id limit 10000;
explain (costs off) select * from l join r on r.k = l.k order by l.k desc limit 30000;
explain (costs off) select l.k, count(*) from l join r on r.k = l.k group by l.k order by l.k limit 10000;
-- Small sides, and keys without an order.
explain (costs off) select * from l join r on r.id = l.id where l.id < 100 order by l.id;
explain (costs off) select count(*) from l join r on r.x = l.k;
-- The methods are off.
set enable_hashjoin = off;
set enable_nestloop = off;
explain (costs off) select count(*) from l join r on r.id = l.id;
explain (costs off) select count(*) from l join r on r.k = l.k;
explain (costs off) select count(*) from l join w on w.a = l.k and w.b = l.id;
set enable_mergejoin = off;
explain (costs off) select count(*) from l join r on r.id = l.id;
reset all;
set enable_hashjoin = off;
set enable_nestloop = off;
explain (costs off, analyze, timing off, summary off, buffers off) select * from l join r on r.id = l.id order by l.id limit 10;
explain (costs off, analyze, timing off, summary off, buffers off) select * from l join r on r.id = l.id where l.id > 59900;
