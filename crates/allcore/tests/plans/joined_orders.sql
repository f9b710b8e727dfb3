-- Orders through joins: the outer side gives the order, or its leading keys.
create table a (id int primary key, x int, z int, b int);
create table b (id int primary key, y int, note text);
create table c (id int primary key, a int, w int);
insert into a select i, i / 10, i % 10, i % 3000 from generate_series(1, 30000) i;
insert into b select i, i * 7 % 1000, 'n' || i from generate_series(0, 2999) i;
insert into c select i, i % 20000, i from generate_series(1, 40000) i;
create index a_xz on a (x, z);
create index c_a on c (a);
analyze a, b, c;
-- The whole order, by an index or by the first columns of one.
explain (costs off) select a.id, b.y from a join b on b.id = a.b order by a.x limit 20;
explain (costs off) select a.id, b.y from a join b on b.id = a.b order by a.x, a.z limit 20;
explain (costs off) select a.id, b.y from a left join b on b.id = a.b order by a.x desc, a.z desc limit 20;
explain (costs off) select a.id from a where exists (select 1 from c where c.a = a.id) order by a.x limit 20;
-- Its leading keys: the rest is sorted part by part.
explain (costs off) select a.id, b.y from a join b on b.id = a.b order by a.x, b.y limit 20;
explain (costs off) select a.id, b.y from a join b on b.id = a.b order by a.x, a.z desc, b.y limit 20;
explain (costs off) select a.id, c.w from a left join c on c.a = a.id order by a.x, c.w limit 20;
explain (costs off) select a.id, b.y, c.w from a join b on b.id = a.b join c on c.a = a.id order by a.x desc, c.w limit 20;
explain (costs off) select distinct a.x, b.y from a join b on b.id = a.b order by a.x, b.y limit 20;
-- An order that begins with a column of no index.
explain (costs off) select a.id, b.y from a join b on b.id = a.b order by b.y, a.x;
explain (costs off) select a.id, b.y from a join b on b.id = a.b order by b.y, a.x limit 20;
-- Groups in the order of the outer side.
explain (costs off) select a.x, count(*), max(b.y) from a join b on b.id = a.b group by a.x order by a.x limit 5;
explain (costs off) select distinct a.x from a join b on b.id = a.b where b.y > 2 order by a.x limit 5;
explain (costs off) select distinct on (a.x) a.x, b.y from a join b on b.id = a.b order by a.x, b.y limit 5;
-- Methods are off.
set enable_incremental_sort = off;
explain (costs off) select a.id, b.y from a join b on b.id = a.b order by a.x, b.y limit 20;
reset enable_incremental_sort;
set enable_nestloop = off;
set enable_mergejoin = off;
explain (costs off) select a.id, b.y from a join b on b.id = a.b order by a.x, b.y limit 20;
