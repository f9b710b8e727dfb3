-- Left, right and full joins: what conditions make of them, and where they run.
create table p (id int primary key, a int, s text);
create table c (id int primary key, p int, b int not null, t text);
create table g (id int primary key, c int, v int);
insert into p select i, i % 100, 's' || i from generate_series(1, 2000) i;
insert into c select i, i % 3000, i % 50, 't' || i from generate_series(1, 10000) i;
insert into g select i, i * 2, i % 9 from generate_series(1, 6000) i;
create index c_p on c (p);
create index g_c on g (c);
analyze p, c, g;
explain (costs off) select * from p left join c on c.p = p.id;
explain (costs off) select * from p left join c on c.p = p.id where p.id = 7;
explain (costs off) select * from c right join p on c.p = p.id where p.a = 7;
-- ON about one side alone.
explain (costs off) select * from p left join c on c.p = p.id and c.b = 3 where p.a = 7;
explain (costs off) select * from p left join c on c.p = p.id and p.a = 7;
explain (costs off) select * from p left join c on p.a = 7 and p.id < 9;
explain (costs off) select * from p left join c on false;
-- WHERE rejects the rows without a match: an inner join.
explain (costs off) select * from p left join c on c.p = p.id where c.b = 3;
explain (costs off) select * from p left join c on c.p = p.id where c.t like 't1%' and p.a = 3;
explain (costs off) select * from p left join c on c.p = p.id join g on g.c = c.id where g.v = 3;
explain (costs off) select * from p full join c on c.p = p.id where c.id = 3;
explain (costs off) select * from p full join c on c.p = p.id where p.id = 3;
explain (costs off) select * from p full join c on c.p = p.id where p.id = 3 and c.b = 3;
-- It does not: IS NULL, COALESCE, OR.
explain (costs off) select * from p left join c on c.p = p.id where coalesce(c.b, 3) = 3 and p.a = 3;
explain (costs off) select * from p left join c on c.p = p.id where c.b = 3 or p.a = 3;
explain (costs off) select * from p left join c on c.p = p.id where c.t is null and p.a = 3;
explain (costs off) select * from p left join c on c.p = p.id where c.id is null;
-- Chains and nested joins.
explain (costs off) select * from p left join c on c.p = p.id left join g on g.c = c.id where p.id = 7;
explain (costs off) select * from p left join (c join g on g.c = c.id) on c.p = p.id where p.id = 7;
explain (costs off) select * from p left join (c left join g on g.c = c.id and g.v = 3) on c.p = p.id where p.a = 7;
explain (costs off) select * from g left join (p join c on c.p = p.id) on c.id = g.c where g.v = 3 and g.id < 50;
explain (costs off) select count(*) from p left join c on c.p = p.id full join g on g.c = c.id;
-- A join whose columns nothing reads runs only if it may add rows.
explain (costs off) select p.id from p left join g on g.id = p.a;
explain (costs off) select count(*) from p left join c on c.p = p.id;
-- An order above an outer join.
explain (costs off) select * from p left join c on c.p = p.id order by p.id limit 5;
explain (costs off) select * from p left join c on c.p = p.id order by c.id limit 5;
