-- Subqueries, WITH queries, views of rows and set operations: what moves where.
create table t (id int primary key, a int, b int, s text);
create table u (id int primary key, t int, v int);
insert into t select i, i % 100, i % 7, 's' || i from generate_series(1, 10000) i;
insert into u select i, i % 5000, i % 30 from generate_series(1, 20000) i;
create index t_a on t (a);
create index u_t on u (t);
analyze t, u;
-- A subquery of FROM comes apart; conditions move into one that does not.
explain (costs off) select * from (select id, a + 1 as x from t) q where id = 7;
explain (costs off) select * from (select id, a + 1 as x from t) q where x = 7;
explain (costs off) select * from (select a, count(*) n from t group by a) q where a = 7;
explain (costs off) select * from (select a, count(*) n from t group by a) q where n > 7;
explain (costs off) select * from (select distinct a, b from t) q where a = 7;
explain (costs off) select * from (select * from t order by id limit 100) q where a = 7;
explain (costs off) select * from (select t.id, u.v from t join u on u.t = t.id) q where id = 7;
explain (costs off) select * from (select id from t union all select t from u) q where id = 7;
explain (costs off) select * from (select id from t union select t from u) q where id = 7;
explain (costs off) select * from (select id from t except select t from u) q where id = 7;
explain (costs off) select * from (select id, random() r from t) q where id = 7;
-- A grouped subquery joined by its key.
explain (costs off) select * from t join (select t, sum(v) from u group by t) q on q.t = t.id where t.id = 7;
explain (costs off) select * from t join (select t, sum(v) from u group by t) q on q.t = t.id;
explain (costs off) select * from t left join (select t, max(v) m from u group by t) q on q.t = t.id where t.a = 7;
-- LATERAL.
explain (costs off) select * from t, lateral (select * from u where u.t = t.id order by u.v limit 1) q where t.a = 7;
explain (costs off) select * from t left join lateral (select sum(v) from u where u.t = t.id) q on true where t.a = 7;
explain (costs off) select * from t, lateral (select t.a + 1 as x) q where q.x = 8;
explain (costs off) select * from t, generate_series(1, t.b) g where t.id = 7;
-- WITH.
explain (costs off) with w as (select * from t where a = 7) select * from w where id < 500;
explain (costs off) with w as materialized (select * from t where a = 7) select * from w where id < 500;
explain (costs off) with w as (select * from t where a = 7) select * from w x join w y on x.b = y.id;
explain (costs off) with w as not materialized (select * from t) select * from w x join w y on x.id = y.a where x.id = 7;
explain (costs off) with w as (select a, count(*) n from t group by a) select * from w where a = 7;
explain (costs off) with w as (select * from t) select 1;
-- Scalar subqueries.
explain (costs off) select * from t where id = (select max(t) from u);
explain (costs off) select id, (select max(v) from u where u.t = t.id) from t where a = 7;
explain (costs off) select * from t where a = (select v from u where u.id = t.id);
explain (costs off) select (select count(*) from u), (select count(*) from t);
explain (costs off) select array(select v from u where u.t = t.id order by v) from t where t.id = 7;
-- Conditions that say one thing twice, or in a way that no index serves, or nothing.
explain (costs off) select * from t where a = 7 and a = 7;
explain (costs off) select * from t where a = 7 and a = 8;
explain (costs off) select * from t where a > 7 and a > 90 and a < 95;
explain (costs off) select * from t where not (a <> 7);
explain (costs off) select * from t where (a = 7) = true;
explain (costs off) select * from t where a in (7);
explain (costs off) select * from t where a is null;
explain (costs off) select * from t where id is null;
explain (costs off) select * from t where a = 3 + 4;
explain (costs off) select * from t where a + 0 = 7;
explain (costs off) select * from t where a = 7 or a = 7;
explain (costs off) select * from t where null;
explain (costs off) select * from t where coalesce(a, 0) = 7;
explain (costs off) select * from t where case when a = 7 then true else false end;
-- Sets of rows.
explain (costs off) select id from t where a = 7 union all select id from u where t = 7;
explain (costs off) select id from t union select id from u order by 1 limit 5;
explain (costs off) select a from t intersect select v from u;
explain (costs off) (select id from t order by id limit 3) union all (select id from u order by id desc limit 3);
explain (costs off) select * from (values (1), (7)) v(x) join t on t.id = v.x;
explain (costs off) select * from t where (id, a) in ((1, 1), (7, 7));
explain (costs off) select * from t where (a, id) > (98, 50) order by a, id limit 5;
explain (costs off) select count(*) from t limit 1;
explain (costs off) select * from t limit 5 offset 9990;
