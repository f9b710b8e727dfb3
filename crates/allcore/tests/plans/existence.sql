-- EXISTS and IN: limits, constants as operands, and conditions that drive the rows around them.
create table big (id int primary key, a int, b int, s text);
create table small (k int, l int, m int);
create table other (id int primary key, big int);
insert into big select i, i % 400, i % 25, 's' || i from generate_series(1, 20000) i;
insert into small select i * 7, i, i % 3 from generate_series(1, 12) i;
insert into other select i, i * 3 from generate_series(1, 3000) i;
create index big_a on big (a);
create index big_b on big (b, a);
create index other_big on other (big);
analyze;
-- LIMIT below EXISTS.
explain (costs off) select * from other where exists (select 1 from big where big.id = other.big and big.b = 3 limit 1);
explain (costs off) select * from other where not exists (select 1 from big where big.id = other.big limit 5);
explain (costs off) select * from other where exists (select 1 from big where big.id = other.big limit 0);
explain (costs off) select * from other where exists (select 1 from big where big.id = other.big limit 1 offset 1);
explain (costs off) select * from other where exists (select 1 from big where big.id = other.big limit 1 for update);
prepare p (bigint) as select * from other where exists (select 1 from big where big.id = other.big limit $1);
explain (costs off) execute p (1);
-- A constant IN a subquery.
explain (costs off) select * from other where 7 in (select a from big);
explain (costs off) select * from other where (7, 9) in (select a, b from big);
explain (costs off) select * from other where 7 < any (select a from big);
explain (costs off) select * from other where 7 in (select a from big order by id limit 5);
explain (costs off) select * from other where 7 not in (select a from big);
explain (costs off) select * from other where 7 in (select a from big) or id = 3;
explain (costs off) select * from other where 7 in (select a from big where random() < 2);
-- Few rows drive many.
explain (costs off) select * from big where exists (select 1 from small where small.k = big.id);
explain (costs off) select * from big where exists (select 1 from small where small.k = big.a and small.l = big.b);
explain (costs off) select * from big where exists (select 1 from small where small.l = big.id and small.m = 1);
explain (costs off) select * from big where exists (select 1 from small join other on other.id = small.k where other.big = big.id);
explain (costs off) select * from big where exists (select 1 from small where small.k = big.id and exists (select 1 from other where other.big = small.l));
explain (costs off) select * from big join other on other.big = big.id where exists (select 1 from small where small.k = other.id);
explain (costs off) select * from big join other on other.big = big.a where exists (select 1 from small where small.k = other.id and small.l = big.b);
explain (costs off) select * from big where exists (select 1 from small where small.k = big.id) order by id limit 3;
explain (costs off) delete from big where exists (select 1 from small where small.k = big.id);
prepare q (int) as select * from big where exists (select 1 from small where small.k = big.id and small.m = $1);
explain (costs off) execute q (1);
-- These do not drive.
explain (costs off) select * from big where exists (select 1 from small where small.k = big.id and small.m < big.b);
explain (costs off) select * from big where exists (select 1 from small where small.k = big.id and small.m < random());
explain (costs off) select * from big where not exists (select 1 from small where small.k = big.id);
explain (costs off) select * from small where exists (select 1 from big where big.id = small.k);
explain (costs off) select * from big where exists (select 1 from small where small.k + 0.5 = big.id);
explain (costs off) select * from big where exists (select 1 from small where small.k = big.id) and id = 7;
