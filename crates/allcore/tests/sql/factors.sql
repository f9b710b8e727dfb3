-- Conditions that the arms of an OR share, and what an OR says about one table.
create table t (id int primary key, a int, b int, c text, d int);
create table u (id int primary key, t int, b int, e text);
insert into t select i, i % 20, case when i % 9 = 0 then null else i % 30 end, 'c' || i % 50, i % 3 from generate_series(1, 900) i;
insert into u select i, (i * 7) % 950, case when i % 8 = 0 then null else (i / 3) % 12 end, 'e' || i % 40 from generate_series(1, 1200) i;
create index on t (a);
create index on t (b);
create index on u (t);
create index on u (b);
analyze t; analyze u;
select count(*), sum(id) from t where (a = 1 and b = 1) or (a = 1 and b = 11);
select count(*), sum(id) from t where (a = 1 and b = 1 and d = 0) or (d = 0 and a = 1 and c = 'c1') or (a = 1 and d = 0 and b is null);
select count(*), sum(id) from t where a = 1 or (a = 1 and b = 11);
select count(*), sum(id) from t where (a = 1 and b = 1) or (b = 1 and a = 1);
select count(*), sum(id) from t where (a = 1 and b = 1) or (a = 2 and b = 2) or a = null;
select count(*), sum(id) from t where (a = null and b = 1) or (a = null and b = 2);
select count(*), sum(id) from t where not ((a = 1 and b = 1) or (a = 1 and b = 11));
select count(*), sum(id) from t where ((a = 1 and b = 1) or (a = 1 and b = 11)) is null;
select count(*), sum(id) from t where (a = 1 and (b = 1 or b = 11)) or (a = 1 and d = 2);
select count(*), sum(id) from t where (a = 1 and b = 1) or ((a = 1 and b = 11) or (a = 1 and d = 2));
select count(*), sum(t.id) from t, u where (t.id = u.t and t.a = 1 and u.b = 3) or (t.id = u.t and t.a = 2 and u.b = 4);
select count(*), sum(t.id) from t, u where (t.id = u.t and t.a = 1 and u.b = 3 and t.d = 1) or (t.d = 1 and t.id = u.t and u.e like 'e1%' and t.a in (2, 3)) or (t.id = u.t and t.d = 1 and t.c between 'c1' and 'c2');
select count(*), sum(t.id) from t join u on (t.id = u.t and t.a = 1) or (t.id = u.t and u.b = 4);
select count(*), sum(t.id) from t, u where t.id = u.t and ((t.a = 1 and u.b = 2) or (t.a = 3 and u.b = 4));
select count(*), sum(t.id) from t, u where (t.a = 1 and u.b = 2 and u.id < 50) or (t.a = 3 and u.b = 4 and u.id < 40);
select count(*), sum(t.id) from t, u where (t.a = 1 and u.id = 7) or (t.a = 3 and u.id = 8) or (t.a is null and u.id = 9);
select count(*), sum(t.id), count(u.id) from t left join u on t.id = u.t and ((t.a = 1 and u.b = 2) or (t.a = 3 and u.b = 4)) where t.id < 300;
select count(*), sum(t.id), count(u.id) from t left join u on (t.id = u.t and u.b = 2) or (t.id = u.t and t.a = 4) where t.id < 300;
select count(*), sum(t.id), count(u.id) from t left join u on t.id = u.t where (t.a = 1 and u.b = 2) or (t.a = 3 and u.b = 4);
select count(*), sum(t.id), count(u.id) from t left join u on t.id = u.t where (t.a = 1 and u.b is null) or (t.a = 3 and u.b = 4);
select count(*), sum(t.id), count(u.id) from t full join u on t.id = u.t where (t.a is null and u.b = 2) or (t.a = 3 and u.b is null);
select count(*), sum(t.id), count(u.id) from t full join u on (t.id = u.t and t.a = 1) or (t.id = u.t and u.b = 2);
select count(*), sum(t.id), count(u.id) from t full join u on t.id = u.t and ((t.a = 1 and u.b = 2) or (t.a = 3 and u.b = 4));
select count(*), sum(t.id), count(u.id) from t right join u on (t.id = u.t and t.a = 1) or (t.id = u.t and u.b = 2) where u.id < 100;
select count(*) from t where exists (select from u where (u.t = t.id and u.b = 2) or (u.t = t.id and t.a = 3));
select count(*) from t where (a = 1 and exists (select from u where u.t = t.id)) or (a = 2 and exists (select from u where u.t = t.id and u.b = 3));
select count(*) from t where (a = 1 and id in (select t from u where b = 3)) or (a = 1 and id in (select t from u where b = 4));
select d, count(*) from t group by d having (d = 1 and count(*) > 5) or (d = 1 and sum(id) > 5) order by d;
-- A part that may fail is not evaluated before its condition.
select count(*) from t where (d <> 0 and 10 / d > 4) or (d <> 0 and 10 / d < 2);
select count(*) from t where (a = 1 and 10 / d > 4) or (a = 1 and 10 / d > 4 and b = 3);
select count(*) from t where d = 0 and ((a = 1 and c::int = 1) or (a = 50 and c::int = 1));
-- A volatile part stays where it is.
select count(*) from t where (random() >= 0 and a = 1) or (random() >= 0 and a = 2);
prepare either(int, int, int) as select count(*), sum(t.id) from t, u where (t.id = u.t and t.a = $1 and u.b = $2) or (t.id = u.t and t.a = $3 and u.b = $2);
execute either(1, 3, 2);
execute either(1, null, 2);
execute either(null, 3, 2);
update t set d = d + 10 from u where (t.id = u.t and t.a = 1 and u.b = 3) or (t.id = u.t and t.a = 2 and u.b = 4);
select count(*) from t where d >= 10;
delete from t using u where (t.id = u.t and t.a = 1 and u.b = 3) or (t.id = u.t and t.a = 2 and u.b = 4);
select count(*) from t;
select t.id, u.id from t, u where (t.id = u.t and t.a = 5 and u.b = 1) or (t.id = u.t and t.a = 6 and u.b = 2) order by 1, 2 limit 3 for update;
-- Many arms.
select count(*) from t where (a = 1 and b = 1) or (a = 1 and b = 2) or (a = 1 and b = 3) or (a = 1 and b = 4) or (a = 1 and b = 5)
  or (a = 1 and b = 6) or (a = 1 and b = 7) or (a = 1 and b = 8) or (a = 1 and b = 9) or (a = 1 and b = 10) or (a = 1 and b = 11);
