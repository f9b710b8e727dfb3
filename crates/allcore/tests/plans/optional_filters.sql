-- Conditions on parameters alone within conditions on rows.
create table t (id int primary key, a int, b int, c text);
insert into t select i, case when i < 9000 then 3 else i end, i * 7 % 5003, 'c' || i % 400 from generate_series(1, 20000) i;
create index on t (a); create index on t (b);
analyze t;
prepare p (int, int) as select count(*) from t where ($1 is null or a = $1) and ($2 is null or b = $2);
explain (costs off) execute p (null, null);
explain (costs off) execute p (17000, null);
-- The truths are those of the plan before, the value is a common one.
explain (costs off) execute p (3, null);
explain (costs off) execute p (null, 8);
explain (costs off) execute p (3, 8);
prepare q (text, int) as select count(*) from t where ($1 = '' or c = $1) and b = coalesce($2, b);
explain (costs off) execute q ('', 8);
explain (costs off) execute q ('c7', null);
explain (costs off) execute q (null, null);
explain (costs off) select count(*) from t where (7 is null or b = 7) and ('' = '' or c = '');
set plan_cache_mode = force_generic_plan;
explain (costs off) execute p (null, 8);
