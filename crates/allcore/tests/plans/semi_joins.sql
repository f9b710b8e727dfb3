-- EXISTS, IN and their negations: joins, hashes, or a look for each row.
create table o (id int primary key, k int, n int not null, s text);
create table l (id int primary key, o int, k int not null, v int);
create table f (k int primary key, w int);
insert into o select i, i % 500, i % 40, 's' || i % 90 from generate_series(1, 5000) i;
insert into l select i, i % 6000, i % 300, i % 77 from generate_series(1, 20000) i;
insert into f select i, i % 5 from generate_series(1, 100) i;
create index l_o on l (o);
create index o_n on o (n, id);
analyze o, l, f;
explain (costs off) select * from o where exists (select 1 from l where l.o = o.id);
explain (costs off) select * from o where exists (select 1 from l where l.o = o.id) and o.id < 20;
explain (costs off) select * from o where id in (select l.o from l where l.v = 3);
explain (costs off) select * from o where k in (select k from f);
explain (costs off) select * from o where k in (select k from f where w = 3) and n = 7;
explain (costs off) select count(*) from l where o in (select id from o where s = 's7');
explain (costs off) select * from o where k = any (select k from f) order by id limit 5;
-- Few distinct values drive the outer table by its index.
explain (costs off) select * from l where o in (select k from f where w = 3);
explain (costs off) select * from l where exists (select 1 from o where o.id = l.o and o.s = 's7' and o.n = 3);
-- Anti joins.
explain (costs off) select * from o where not exists (select 1 from l where l.o = o.id);
explain (costs off) select * from o where not exists (select 1 from l where l.o = o.id) and o.n = 7;
explain (costs off) select * from o where not exists (select 1 from l where l.o = o.id and l.v > o.n);
-- NOT IN: NULLs forbid a join, unless there are none.
explain (costs off) select * from o where k not in (select k from f);
explain (costs off) select * from o where n not in (select k from l);
explain (costs off) select * from o where id not in (select l.o from l);
explain (costs off) select * from o where (k, n) not in (select k, w from f);
-- Row values, several columns, no equality.
explain (costs off) select * from o where (k, n) in (select k, v from l where l.id < 100);
explain (costs off) select * from o where exists (select 1 from l where l.o = o.id and l.k = o.k);
explain (costs off) select * from f where exists (select 1 from l where l.v > f.w + 70 and l.k < f.k);
explain (costs off) select * from f where w > all (select v from l where l.o = f.k);
explain (costs off) select * from f where w < any (select v from l);
-- Under OR, in the result, nested.
explain (costs off) select * from o where n = 7 or exists (select 1 from l where l.o = o.id);
explain (costs off) select id, exists (select 1 from l where l.o = o.id) from o where n = 7;
explain (costs off) select id, k in (select k from f) from o where n = 7;
explain (costs off) select * from o where exists (select 1 from l where l.o = o.id and exists (select 1 from f where f.k = l.k));
explain (costs off) select * from o where exists (select 1 from l join f on f.k = l.k where l.o = o.id and f.w = 3);
-- Not correlated: once.
explain (costs off) select * from o where exists (select 1 from f where w = 3) and n = 7;
explain (costs off) select * from o where not exists (select 1 from f where w = 9) and n = 7;
-- With a limit, a group, DISTINCT inside.
explain (costs off) select * from o where k in (select k from f order by w limit 3);
explain (costs off) select * from o where k in (select max(k) from l group by v);
explain (costs off) select * from o where k in (select distinct k from l);
explain (costs off) select * from o where exists (select 1 from l where l.o = o.id limit 1);
explain (costs off) select * from o where exists (select count(*) from l where l.o = o.id);
explain (costs off) delete from o where not exists (select 1 from l where l.o = o.id);
explain (costs off) update o set s = '' where k in (select k from f where w = 3);
-- IN over a subquery that reads no row around it: few rows are looked up, many are hashed.
explain (costs off) select * from o where id in (select l.o from l) and id < 20;
explain (costs off) select * from o where k in (select f.k from f) and id = 7;
explain (costs off) select * from o join f on f.k = o.k where o.id < 20 and o.n in (select l.o from l where l.v > 3);
explain (costs off) select * from o where id in (select l.o from l) and k < 400;
explain (costs off) select * from o where (id, k) in (select l.o, l.k from l) and id < 20;
explain (costs off) update o set s = '' where id in (select l.o from l) and id < 20;
explain (costs off) select * from o where 7 in (select l.o from l) and id < 20;
