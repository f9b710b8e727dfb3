-- Indexes whose entries have all columns that the statement reads.
create table e (id int primary key, a int, b int, c text, d numeric, e float8, pad text);
insert into e select i, i % 100, i, 'c' || i % 50, i, i, repeat('x', 100) from generate_series(1, 20000) i;
create index e_a on e (a, b);
create index e_c on e (c);
create index e_d on e (d);
create index e_e on e (a, e);
create unique index e_u on e (b, a);
analyze e;
explain (costs off) select count(*) from e where a = 5;
explain (costs off) select sum(b) from e where a between 5 and 50;
explain (costs off) select a, b, id from e where a = 5 order by b desc;
explain (costs off) select c, id from e where c > 'c2';
explain (costs off) select count(*) from e where b < 5000;
explain (costs off) select id, b from e where b < 5000;
explain (costs off) select min(c) from e;
explain (costs off) select x.id, y.b from e x join e y on y.a = x.b where x.id < 10;
-- The row is needed: another column, one whose key loses something, or a lock.
explain (costs off) select count(*) from e where a = 5 and pad > 'x';
explain (costs off) select count(*) from e where d < 50;
explain (costs off) select e from e where a = 5 and e < 500;
explain (costs off) select a from e where a = 5 for update;
explain (costs off) delete from e where a = 5;
