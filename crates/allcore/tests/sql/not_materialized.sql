-- WITH queries that stand in place of each reader.
create table t (id int primary key, a int, b text);
create table u (id int primary key, t int);
create index on t (a);
insert into t select g, g % 50, 'b' || g % 7 from generate_series(1, 1000) g;
insert into u select g, g * 3 from generate_series(1, 200) g;
analyze t; analyze u;
with w as not materialized (select * from t) select count(*), sum(x.id) from w x join w y on y.id = x.a where x.id < 40;
with w as not materialized (select id, a + 1 as c, b from t where a > 3) select x.id, y.c, y.b from w x join w y on y.id = x.c
where x.id between 5 and 9 order by 1;
with w as not materialized (select a, count(*) as n, max(id) as m from t group by a)
select x.a, x.n, y.m from w x, w y where x.a = 7 and y.a = x.a + 1;
with w as not materialized (select a, count(*) as n from t group by a order by 2 desc, 1 limit 3)
select x.a, y.a from w x, w y order by 1, 2;
with w as not materialized (select id, row_number() over (partition by a order by id) as r from t)
select x.id, y.id from w x join w y on y.r = x.r + 1 and y.id = x.id + 50 where x.id < 5 order by 1;
-- In subqueries, with outer rows, one in another, in a set and in a recursion.
with w as not materialized (select * from t) select (select max(id) from w where w.a = u.id), exists (select from w where w.id = u.t)
from u where u.id < 4 order by u.id;
select u.id, l.n from u, lateral (with w as not materialized (select * from t where t.a = u.id)
  select count(*) + (select min(id) from w) as n from w) l where u.id < 4 order by 1;
select u.id, l.* from u, lateral (with w as not materialized (select u.t as c, t.id from t where t.a = u.id)
  select x.c, y.id from w x join w y on y.id = x.id where x.id < 60) l where u.id < 4 order by 1, 3;
with v as not materialized (select id, a from t where id < 30), w as not materialized (select x.id, y.a from v x join v y on y.id = x.id)
select count(*), sum(p.a), sum(q.id) from w p join w q on q.id = p.id join v on v.id = q.id;
with w as not materialized (with v as not materialized (select id, a from t where id < 30) select x.id, y.a from v x join v y on y.id = x.id)
select count(*), sum(p.a), sum(q.id) from w p join w q on q.id = p.id;
with w as not materialized (with v as materialized (select id, a from t where id < 30) select x.id, y.a from v x join v y on y.id = x.id)
select count(*), sum(p.a), sum(q.id) from w p join w q on q.id = p.id;
with w as not materialized (select id from t where id < 4) select id from w union all select id + 10 from w order by 1;
with recursive w as not materialized (select id, a from t), r(n, d) as (select id, 0 from w where id = 1
  union all select w.id, d + 1 from r join w on w.id = r.n * 2 where d < 5) select r.n, w.a from r join w on w.id = r.n order by 1;
-- Volatile, locking and recursive ones are computed once.
create sequence s;
with w as not materialized (select nextval('s') as n) select x.n = y.n as same from w x, w y;
select currval('s');
with w as not materialized (select id from u where id < 3 for update) select count(*) from w x join w y using (id);
with recursive w(n) as not materialized (select 1 union all select n + 1 from w where n < 4) select count(*) from w x join w y using (n);
-- In changes, views of columns with names, and not at all.
with w as not materialized (select id, a from t) update u set t = x.a from w x join w y on y.id = x.id where x.id = u.id and u.id < 5;
select * from u where id < 5 order by id;
with w(p, q) as not materialized (select id, a from t) delete from u using w x where x.p = u.id and exists (select from w where q = x.q and p > 900) and u.id < 9;
select count(*) from u;
with w as not materialized (select id, a from t) insert into u select x.id + 5000, y.a from w x join w y on y.id = x.id where x.id < 4 returning *;
with w as not materialized (select 1 / 0 as n) select 1;
with w as not materialized (select id, a from t) select x from w x where x.id = 3;
prepare p (int) as with w as not materialized (select id, a from t where a = $1) select count(*), max(y.id) from w x join w y on y.id = x.id;
execute p (7);
execute p (null);
drop table t, u; drop sequence s;
