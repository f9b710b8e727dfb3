-- Bounds on a later column of a key: columns of few values before it are skipped.
create table s (id int primary key, a int, b int, c int, d int[]);
insert into s select i, i % 5, i % 1000, i, array[i % 5] from generate_series(1, 20000) i;
create index s_a on s (a, b);
create index s_c on s (c, b);
create index s_d on s (d, b);
explain (costs off) select * from s where b = 500;
-- Without statistics nobody knows the number of values.
analyze s;
explain (costs off) select * from s where b = 500;
explain (costs off) select * from s where b in (5, 500);
explain (costs off) select * from s where a > 1 and b = 500;
explain (costs off) select * from s where a between 1 and 3 and b < 2 order by a, b;
explain (costs off) select * from s where b = 500 order by a desc, b desc limit 3;
explain (costs off) select * from s where b = 5 or b = 7 and a < 3;
-- Too many rows, or too many values.
explain (costs off) select * from s where b < 500;
drop index s_a;
explain (costs off) select * from s where b = 500;
create table p (x int, y int, z int, primary key (x, y));
insert into p select i / 1000, i % 1000, i from generate_series(0, 9999) i;
analyze p;
explain (costs off) select * from p where y = 17;
explain (costs off) select * from p where y = 17 and x > 3;
explain (costs off) select * from p join s on p.y = s.id where s.c = 5;
explain (costs off) update p set z = 0 where y = 17;
