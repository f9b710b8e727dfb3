-- A subquery in the operand of another one runs where that one does.
create table t (i int primary key, a int);
insert into t values (0, 1), (1, 2), (2, null), (3, 0);
create table u (x int, y int);
insert into u values (1, 1), (5, 2), (null, 3);
-- Behind CASE, COALESCE, AND and OR.
select i, case when i > 0 then (select 10 / t.i) in (select x from u) end from t order by i;
select i, coalesce(nullif(i > 0, true), (select 10 / t.i) in (select x from u)) from t where i > 0 order by i;
select i, coalesce(i = 0, (select 10 / t.i) = any (select x from u)) from t order by i;
select i from t where i = 0 or (select 10 / t.i) in (select x from u) order by i;
select i from t where i > 0 and (select 10 / t.i) in (select x from u) order by i;
select i, case when i > 0 then (select 10 / t.i) not in (select x from u where x is not null) end from t order by i;
select i, case when i > 0 then (select 10 / t.i) < all (select x + t.i from u where x > t.i) end from t order by i;
-- In an expression of the operand, in a row, twice.
select i, case when i > 0 then 1 + (select 10 / t.i) in (select x + 1 from u) else false end from t order by i;
select i, case when i > 0 then ((select 10 / t.i), i) in (select x, y from u) end from t order by i;
select i, case when i > 0 then ((select 10 / t.i), (select 4 / t.i)) in (select x, y from u) end from t order by i;
-- The operand's own operand.
select i, case when i > 0 then ((select 10 / t.i) in (select x from u)) in (select x > 1 from u) end from t order by i;
select i, case when i > 0 then ((select 10 / t.i) in (select x from u where x is not null)) = any (select x > 1 from u) end
from t order by i;
-- More than one row, never asked for.
select i, case when i < 0 then (select x from u) in (select y from u) end from t order by i;
select i, case when i < 0 then (select x from u) in (select y from u) when i < 1 then true end from t order by i;
-- It is asked for.
select i, case when i < 2 then (select x from u) in (select y from u) end from t order by i;
select i, case when i < 2 then (select 10 / t.i) in (select x from u) end from t order by i;
-- A condition that is such a comparison, and one behind it.
select i, case when (select t.i) in (select y from u) then (select 10 / t.i) in (select x from u) end from t order by i;
select i, (select t.i) in (select y from u) and (select 10 / t.i) in (select x from u) from t order by i;
-- In both branches, and beside them.
select i, case when i > 1 then (select 10 / t.i) in (select x from u) else (select t.i) in (select y from u) end from t order by i;
-- NULL as operand, an empty subquery, and an empty one at the right.
select i, case when i = 2 then (select t.a) in (select x from u) when i > 0 then (select a from t z where z.i > 9) in (select x from u) end
from t order by i;
select i, case when i > 0 then (select 10 / t.i) in (select x from u where false) end from t order by i;
-- Grouped, in HAVING, ORDER BY, SET and RETURNING.
select a, case when count(*) > 1 then (select 1 / (a - a)) in (select x from u) end from t group by a order by a;
select a from t group by a having count(*) = 1 or (select 1 / (a - a)) in (select x from u) order by a;
select i from t order by case when i > 0 then (select 10 / t.i) in (select x from u) end, i;
update t set a = case when i > 0 and (select 10 / t.i) in (select x from u) then 100 else a end;
delete from t where i > 0 and (select 10 / t.i) in (select x from u) returning i, case when i < 0 then (select 1 / (i - i)) in (select 1) end;
select * from t order by i;
drop table t, u;
