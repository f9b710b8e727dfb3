-- Whole rows, their fields, and the columns each table has by itself.
create table t (i int primary key, v text);
create table u (i int primary key, w text);
insert into t values (1, 'a'), (2, 'b');
insert into u values (2, 'x'), (3, 'y');
select t from t order by i;
select row(t.*), row(t.*, 7), row(7, t.*) from t order by i;
select row(x.*) from t join u using (i) as x;
select row(x.*, array[1,2]) from generate_series(1, 2) x;
select (t).v, (t).i from t order by i;
select (t).* from t order by i;
select (row(1, 2.0)).f1;
select (row(1, 2.0)).f2;
select (r).f1, (r).f2 from (select row(1, 2.0) as r) s;
select (r).* from (select row(1, 2.0) as r) s;
select (r).i, (r).v from (select t as r from t) s order by 1;
select (r).* from (select t as r from t) s order by 1;
with c(r) as (select row(1, 2)) select (r).f1, (r).f2 from c;
with c(r) as materialized (select row(1, 2)), d(r) as (select * from c) select (r).f1 from d;
with c(r) as materialized (select row(1, 2)), d(r) as (select * from c) select * from d where (select * from (select r as c1) s where (select (c1).f1 > 0)) is not null;
with c as (select t as r from t) select (r).v from c order by 1;
with recursive c(n, r) as (select 1, row(1, 'a'::text) union all select n + 1, r from c where n < 2) select (r).f2 from c;
select count(t.*), count(t), count(u.*) from t left join u using (i);
select t is null, t is not null, (t.*) is null from t order by i;
select (i).x from t;
select (1).*;
select row(t.*) = row(1, 'a') from t order by i;
select row(1, 'a') in (row(t.*)) from t order by i;
select row(t.*) in (select i, w from u), (t.*) = (t.*) from t order by t.i;
select t from t where t = row(1, 'a'::text);
select t from t where t = row(1::bigint, 'a'::text);
select t from t where t in (row(1, 'a'::text));
select t from t where t in (row(1));
select row(1, 2) = row(1, 2), row(1, null) = row(1, 2), row(1, 2) < row(1, 3);
select text(row('Jim', 'Beam'));
select varchar(row('Jim', 'Beam'));
select cast(row('Jim', 'Beam') as text), row('Jim', 'Beam')::text;
select name(row('Jim', 'Beam'));
-- An outer join's absent row is NULL, not a row of NULLs.
select t, u from t left join u using (i) order by t.i;
select t, u from t full join u on t.i = u.i order by t.i, u.i;
select t, u from t right join u on t.i = u.i order by u.i;
select t, u, x from t left join u using (i) left join t x on x.i = u.i order by t.i;
select (u).w, (u).* from t left join u using (i) order by t.i;
select count(u), count(*) from t left join u using (i);
select u is null, u from t left join u on false order by t.i;
select t.tableoid::regclass, u.tableoid::regclass from t left join u using (i) order by t.i;
select tableoid::regclass, * from t order by i;
select tableoid from t, u;
select tableoid from (select 1) s;
select x.tableoid from (select 1) x;
select (select tableoid::regclass from t limit 1) from u limit 1;
select 'pg_class'::regclass = tableoid from pg_class limit 1;
insert into t values (3, 'c') returning tableoid::regclass, i;
update t set v = 'd' where i = 3 returning tableoid::regclass, v;
delete from t where i = 3 returning tableoid::regclass, t;
insert into t values (1, 'z') on conflict (i) do update set v = excluded.ctid::text;
insert into t values (1, 'z') on conflict (i) do update set v = excluded.tableoid::text;
-- Names of columns.
select (row(1, 2)).f2, (t).v, (array[1,2])[1], (t).v::varchar, (select 1), (select 1)::int, (select i from t limit 1), (select i as k from t limit 1) from t limit 1;
select (values (1)), (select 1 union select 1), (values (1))::bigint;
select (with c(x) as (values (1)) values ((select x from c)));
-- HAVING without aggregates and keys asks nothing of the rows.
select 1 as one from t having 1 > 2;
select 1 as one from t having 1 < 2;
select 1 as one from t where 1 / (i - 1) = 1 having 1 < 2;
select 1 as one from t where false having true;
select 1 where false having true;
select count(*) from t having false;
create table x as select * from t with no data;
select * into y from t;
create table z (a, b) as select * from t with no data;
select * from z;
create table z (c) as select 1;
-- A row and a subquery's one row.
select row(1, 2) = (select 1, 2), row(1, 2) <> (select 1, 3), row(1, 2) < (select 1, 3), (1, null) = (select 1, 2), (1, 2) = (select 1, 2 where false);
select row(1, 2) = (select i, i from t where t.i = u.i - 1) from u order by u.i;
select row(1, 'a') = (select i, v from t order by i limit 1), (1, 'z') >= (select * from t where i = 1);
select row(1, 2) = (select i, i from t);
select row(1, 2) = (select 1, 2, 3);
select row(1, 2) = (select 1);
select t.i from t where row(t.i, t.v) = (select 2, 'b');
-- A column of a subquery in FROM that nothing reads is not computed.
select i from (select i, (select w from u) as several from t) s order by i;
select i from (with c as (select * from u) select i, (select w from c where c.i > t.i) as several from t) s order by i;
select count(*) from (select 1 / (i - i) as bad from t) s;
select i from (select i, bad + 1 as worse from (select i, 1 / (i - i) as bad from t) s) r order by i;
select i from (select i, 1 / (i - i) as bad from t order by i limit 1) s;
select i from (select i, 1 / (i - i) as bad from t order by bad) s;
select i from (select distinct i, 1 / (i - i) as bad from t) s;
select i from (select i, 1 / (i - i) as bad from t union all select 1, 2) s;
select i from (select i, count(*) as n from t group by i) s order by i;
select x from (select generate_series(1, 3) as x, 7 as y) s;
select 7 as z from (select generate_series(1, 3) as x, 7 as y) s;
select s.i, r.w from (select i, 1 / (i - i) as bad from t) s left join (select i, w, 1 / (i - i) as bad from u) r on s.i = r.i order by s.i;
select (select max(i) from (select i, 1 / (i - i) as bad from t) s);
with c as (select i from (select i, 1 / (i - i) as bad from t) s) select * from c order by i;
-- A strict function of a constant NULL is NULL, whatever its other arguments are.
select null::int + (select 1 / 0), null = (select i from t), null::int = (select 1 / 0), null::text || (select v from t);
select null::int + 1 / (i - i) from t;
select length(null), substr(null, 1 / 0), null::int < 1 / (i - i) from t;
select null::int is distinct from 1, nullif(null::int, 1), null in (1, 2), coalesce(null::int + 1, 5);
select count(null::int + i), sum(null::int * i) from t;
-- Types that have no collation.
create table c (a int collate "C");
create table c (a text collate "C", b varchar(3)[] collate "POSIX", n name collate "C");
alter table c add column d int collate "C";
alter table c alter column a type int collate "C" using 1;
select 1 collate "C";
select 'a' collate "C" < 'b', ('x' || 'y') collate "C", array['a'] collate "C";
-- Read-only transactions begin with their first statement.
create sequence sq;
select nextval('sq');
set session characteristics as transaction read only;
create table ro (a int);
drop table c;
create sequence ros;
alter table c add column e int;
insert into t values (9, 'x');
select nextval('sq');
set session characteristics as transaction read write;
drop table c;
drop sequence sq;
select lastval();
prepare p as select $1a;
select $1a, 2;
select $12_x;
select $3abc9 + 1;

-- IS DISTINCT FROM goes column by column.
select (1, null) is distinct from (1, null), (1, 2) is distinct from (1, null), (1, 2) is not distinct from (1, 2.0),
    row() is distinct from row(), row() is not distinct from row(), row(null) is not distinct from row(1);
select (1, 2) is distinct from (1, 2, 3);
select (1, 2) is distinct from (1, 'x');
select (1, 'a') is not distinct from ('1', 'a');

-- Rows as keys of sorting, grouping and joining.
create table keyed (a int, b text);
insert into keyed values (1, 'x'), (2, null), (1, 'x'), (3, 'X');
select distinct (a, b) from keyed order by 1;
select (a, b), count(*) from keyed group by row(a, b) order by 1 desc;
select count(distinct (a, b)), count(distinct row(a)) from keyed;
select a, b from keyed order by (b, a), a;
select (a, b) from keyed union select (1, 'x'::text) order by 1;
select (a, b) from keyed except all select (1, 'x'::text) order by 1;
select k from (select a, b from keyed) k order by k;
with w as (select (a, b) as r from keyed) select w1.r from w w1 join w w2 on w1.r = w2.r order by w1.r;
select (a, b), rank() over (order by (a, b)) from keyed order by 2;
drop table keyed;
