-- A subquery of a condition runs for the rows that meet the conditions before it.
create table t (i int primary key, n int);
insert into t values (0, 0), (1, 10), (2, null);
create table u (i int, n int);
insert into u values (0, 0), (1, 1), (2, 2);
-- WHERE.
select i from t where (select t.i) <> 0 and (select 10 / t.i) > 1 order by i;
select i from t where (t.i > 0 or (select t.n) = 2) and (select 10 / t.i) > 1 order by i;
select i from t where (select t.i) <> 0 and exists (select 1 from u where u.i = 10 / t.i) order by i;
select i from t where (select t.i) <> 0 and (10 / t.i) in (select u.i from u where u.n <= t.i) order by i;
select i from t where (select t.i) <> 0 and (select 10 / t.i) = any (select u.i + 4 from u) order by i;
select i from t where (select t.n) > 0 and (select 10 / t.n) = 1 and (select 1 / (t.i + 1)) = 0 order by i;
-- The second alone.
select i from t where (select 10 / t.i) > 1 order by i;
-- Conditions of joins.
select t.i, u.i from t join u on (select t.i) <> 0 and (select 10 / t.i) > u.i order by 1, 2;
select t.i, u.i from t left join u on (select t.i) <> 0 and (select 10 / t.i) > u.i order by 1, 2;
select t.i, u.i from t, u where t.i = u.i and (select u.i) <> 0 and (select 10 / (t.i + u.i)) > 1 order by 1, 2;
-- HAVING.
select i from t group by i having (select i) <> 0 and (select 10 / i) > 1 order by i;
select n is null, count(*) from t group by 1 having (select count(*)) <> 2 and (select 10 / (count(*) - 2)) < 0;
-- Locks, changes, INSERT SELECT, FROM.
select i from t where (select t.i) <> 0 and (select 10 / t.i) > 1 order by i for update;
select * from (select i from t where (select t.i) <> 0 and (select 10 / t.i) > 1) s order by 1;
insert into u select i, 100 from t where (select t.i) <> 0 and (select 10 / t.i) > 1;
update t set n = 7 where (select t.i) <> 0 and (select 10 / t.i) > 1;
delete from t where (select t.i) <> 0 and (select 10 / t.i) > 5 returning *;
select * from t order by i;
select * from u order by i, n;
drop table t, u;
