-- EXPLAIN ANALYZE: the figures of each node, without costs and times.
create table t (id int primary key, a int, b text);
create table u (id int primary key, t int, c int);
insert into t select i, i % 10, 'b' || i % 3 from generate_series(1, 1000) i;
insert into u select i, i * 2, i % 5 from generate_series(1, 300) i;
create index on u (t);
create index on t (a);
analyze t; analyze u;
-- A scan with its filter, in ranges, by points, of entries alone, of a system relation.
explain (analyze, costs off, timing off, summary off, buffers off) select * from t where b = 'b1';
explain (analyze, costs off, timing off, summary off, buffers off) select * from t where id between 100 and 199 and b = 'b1';
explain (analyze, costs off, timing off, summary off, buffers off) select * from t where id = 7 and b = 'nothing';
explain (analyze, costs off, timing off, summary off, buffers off) select * from t where id = 5000;
explain (analyze, costs off, timing off, summary off, buffers off) select id from t where a = 3 and id > 500;
explain (analyze, costs off, timing off, summary off, buffers off) select nspname from pg_namespace where nspname = 'public';
-- Joins: the inner side runs for each outer row, and rows are those of one loop.
explain (analyze, costs off, timing off, summary off, buffers off) select * from t join u on u.t = t.id where t.id < 9;
explain (analyze, costs off, timing off, summary off, buffers off) select * from t left join u on u.t = t.id where t.id < 9;
explain (analyze, costs off, timing off, summary off, buffers off) select count(*) from t join u on u.t = t.id;
explain (analyze, costs off, timing off, summary off, buffers off) select * from t where a = 3 and exists (select 1 from u where u.t = t.id);
explain (analyze, costs off, timing off, summary off, buffers off) select * from t full join u on u.t = t.id where t.id is null or u.c = 9;
-- A limit ends its input early; a node without a row to run for never runs.
explain (analyze, costs off, timing off, summary off, buffers off) select * from t limit 3;
explain (analyze, costs off, timing off, summary off, buffers off) select * from t where b = 'b1' limit 3 offset 2;
explain (analyze, costs off, timing off, summary off, buffers off) select * from t join u on u.t = t.id where t.id = 5000;
explain (analyze, costs off, timing off, summary off, buffers off) select * from t limit 0;
explain (analyze, costs off, timing off, summary off, buffers off) select * from t order by b, id limit 5;
explain (analyze, costs off, timing off, summary off, buffers off) select * from t where 'x' = current_user;
explain (analyze, costs off, timing off, summary off, buffers off) select 1 where current_user = 'x';
-- Groups, windows, sets, functions.
explain (analyze, costs off, timing off, summary off, buffers off) select a, count(*) from t group by a having count(*) > 100;
explain (analyze, costs off, timing off, summary off, buffers off) select distinct a from t;
explain (analyze, costs off, timing off, summary off, buffers off) select * from (select id, row_number() over (order by id) r from t) s where r <= 4;
explain (analyze, costs off, timing off, summary off, buffers off) select id from t union all select id from u except select 1;
explain (analyze, costs off, timing off, summary off, buffers off) select * from generate_series(1, 20) g(x), (values (1), (2)) v(y) where x % 2 = y;
-- Subqueries: once, for each row, by a hash.
explain (analyze, costs off, timing off, summary off, buffers off) select * from t where id = (select max(t) from u);
explain (analyze, costs off, timing off, summary off, buffers off) select id, (select c from u where u.t = t.id) from t where id < 20;
explain (analyze, costs off, timing off, summary off, buffers off) select count(*) from t where id in (select t from u) or a = 3;
explain (analyze, costs off, timing off, summary off, buffers off) select case when id < 5 then (select count(*) from u) end from t where id > 990;
-- WITH: once, as far as it is read; a recursion.
explain (analyze, costs off, timing off, summary off, buffers off) with w as materialized (select * from t where a = 3) select * from w, w v where w.id = v.id + 10;
explain (analyze, costs off, timing off, summary off, buffers off) with w as materialized (select * from t) select * from w limit 2;
explain (analyze, costs off, timing off, summary off, buffers off) with recursive w(n) as (select 1 union all select n + 1 from w where n < 5) select * from w;
-- Changes are made.
explain (analyze, costs off, timing off, summary off, buffers off) insert into u select id + 1000, id, 0 from t where a = 3;
explain (analyze, costs off, timing off, summary off, buffers off) insert into u values (1, 0, 0), (5000, 0, 0) on conflict do nothing;
explain (analyze, costs off, timing off, summary off, buffers off) update u set c = 8 where id between 1 and 4 returning id;
explain (analyze, costs off, timing off, summary off, buffers off) delete from u where c = 8 and id > 1;
explain (analyze, costs off, timing off, summary off, buffers off) select * from u where c = 8 for update;
select count(*), sum(c) from u;
