-- Rows that come by some leading keys of ORDER BY are sorted part by part.
create table o (id int primary key, a int, b int, c int);
insert into o select i, i / 10, i % 100, i % 7 from generate_series(1, 20000) i;
create index o_a on o (a);
create index o_ab on o (a desc, b);
analyze o;
explain (costs off) select * from o order by a, b, id limit 10;
explain (costs off) select * from o order by a, c limit 10;
explain (costs off) select * from o order by a desc, b, c limit 10;
explain (costs off) select * from o order by a desc, b desc limit 10;
explain (costs off) select distinct on (a) * from o order by a, c limit 10;
explain (costs off) select distinct a, c from o order by a, c limit 10;
-- All rows.
explain (costs off) select * from o order by a, c;
-- The order is that of the index, or nothing of it.
explain (costs off) select * from o order by a desc, b limit 10;
explain (costs off) select * from o order by c, a limit 10;
-- The leading column has one value.
explain (costs off) select * from o where a = 5 order by a, c limit 10;
set enable_sort = off;
explain (costs off) select * from o order by a, c limit 10;
-- A key that is the same for all rows orders nothing.
create table fixed (a int, b int, c int);
create index on fixed (c);
insert into fixed select g % 10, g, g from generate_series(1, 2000) g;
analyze fixed;
explain (costs off) select * from fixed where a = 3 order by a limit 5;
explain (costs off) select * from fixed where a = 3 order by a, c limit 5;
explain (costs off) select 1 from fixed x join fixed y on x.a = y.a order by 1 limit 5;
drop table fixed;
