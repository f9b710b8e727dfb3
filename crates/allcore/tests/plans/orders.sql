-- Orders that an index gives, that a sort gives, and what GROUP BY, DISTINCT and windows make of
-- them.
create table e (id int primary key, a int, b int, c text, d date not null);
insert into e select i, i % 100, i % 1000, 'c' || i % 300, date '2026-01-01' + i % 365 from generate_series(1, 20000) i;
create index e_ab on e (a, b);
create index e_c on e (c);
create index e_bn on e (b desc nulls last, id);
create index e_d on e (d);
analyze e;
explain (costs off) select * from e order by id limit 5;
explain (costs off) select * from e order by id desc limit 5;
explain (costs off) select * from e order by a, b limit 5;
explain (costs off) select * from e order by a desc, b desc limit 5;
explain (costs off) select * from e order by a, b desc limit 5;
explain (costs off) select * from e order by a, c limit 5;
explain (costs off) select * from e order by b desc nulls last limit 5;
explain (costs off) select * from e order by b desc limit 5;
explain (costs off) select * from e order by b nulls first, id desc limit 5;
explain (costs off) select * from e order by d desc limit 5;
explain (costs off) select * from e order by d nulls first limit 5;
-- A column that a condition fixes is no key. A unique key does not end the order.
explain (costs off) select * from e where a = 3 order by b limit 5;
explain (costs off) select * from e where a = 3 order by a, b, c limit 5;
explain (costs off) select * from e where a in (3, 4) order by b limit 5;
explain (costs off) select * from e order by id, c limit 5;
-- Whole results: a sort, or the order of a key.
explain (costs off) select * from e order by a;
explain (costs off) select id from e order by id;
explain (costs off) select a, b from e order by a, b;
explain (costs off) select * from e order by c limit 15000;
explain (costs off) select * from e order by b % 10, id limit 5;
explain (costs off) select * from e order by lower(c) limit 5;
explain (costs off) select * from e where c = 'c7' order by id;
explain (costs off) select * from e where b = 7 order by id;
-- A selective condition against the order's index.
explain (costs off) select * from e where c = 'c7' order by id limit 1;
explain (costs off) select * from e where b + 1 = 7 order by id limit 1;
explain (costs off) select * from e where c > 'c1' order by d limit 10;
-- Groups and DISTINCT.
explain (costs off) select a, count(*) from e group by a;
explain (costs off) select a, count(*) from e group by a order by a;
explain (costs off) select a, b, count(*) from e group by a, b order by a, b limit 5;
explain (costs off) select b, count(*) from e group by b order by count(*) desc limit 5;
explain (costs off) select id, count(*) from e group by id order by id limit 5;
explain (costs off) select distinct a from e;
explain (costs off) select distinct a from e order by a limit 5;
explain (costs off) select distinct c, d from e order by d, c limit 5;
explain (costs off) select distinct on (a) a, b, c from e order by a, b;
explain (costs off) select distinct on (c) * from e order by c, id desc;
explain (costs off) select count(distinct a) from e;
explain (costs off) select a, count(distinct b) from e group by a;
explain (costs off) select string_agg(c, ',' order by id) from e where a = 3;
-- Windows.
explain (costs off) select id, row_number() over (order by id) from e limit 5;
explain (costs off) select a, b, rank() over (partition by a order by b) from e where a < 3;
explain (costs off) select a, b, rank() over (partition by a order by b), sum(b) over (partition by a) from e where a = 3;
explain (costs off) select id, lag(c) over (order by d), lead(c) over (order by c) from e;
explain (costs off) select * from (select *, row_number() over (partition by a order by b desc) r from e) s where r = 1;
