-- Conditions on parameters alone within conditions on rows.
create table t (id int primary key, a int, b int, c text, d boolean);
insert into t select i, i % 50, case when i % 9 = 0 then null else i % 30 end, 'c' || i % 40, case i % 3 when 0 then null when 1 then true else false end from generate_series(1, 3000) i;
create index on t (a); create index on t (b); create index on t (c);
analyze t;
prepare p (int, int) as select count(*), sum(id) from t where ($1 is null or a = $1) and ($2 is null or b = $2);
execute p (null, null); execute p (7, null); execute p (null, 8); execute p (7, 8); execute p (7, null); execute p (null, null); execute p (7, 27);
prepare q (text, int, int) as select count(*), sum(id) from t where ($1 = '' or c = $1) and ($2 = -1 or a = $2) and ($3 <= 0 or b < $3);
execute q ('', -1, 0); execute q ('c7', -1, 0); execute q ('', 3, 0); execute q ('c7', 7, 20); execute q (null, -1, 0); execute q ('c7', null, 3); execute q (null, null, null); execute q ('', 3, 3);
prepare r (int, int) as select count(*), sum(id) from t where a = coalesce($1, a) and coalesce(b, 0) = coalesce($2, b, 0);
execute r (null, null); execute r (7, null); execute r (null, 8); execute r (7, 8); execute r (7, 0); execute r (null, 0);
prepare s (int) as select count(*) from t where 10 / $1 > 4 or a = $1;
execute s (1); execute s (2); execute s (5); execute s (null);
prepare s0 (int) as select count(*) from t where ($1 = 0 or a > 10 / $1);
execute s0 (5); execute s0 (0); execute s0 (null);
prepare u (boolean) as select count(*), sum(id) from t where ($1 or a = 3) and (not $1 or b = 4) and ($1 is not true or d);
execute u (true); execute u (false); execute u (null);
prepare v (boolean, int) as select count(*) from t where case when $1 then a = $2 else b = $2 end;
execute v (true, 7); execute v (false, 7); execute v (null, 7);
prepare w (int) as select t.id, x.id from t left join t x on x.id = t.id + 1 and ($1 is null or x.a = $1) where t.id < 9 and ($1 is not null or t.a < 4) order by 1;
execute w (null); execute w (3); execute w (null);
prepare x (int) as select a, count(*) from t where id < 500 group by a having $1 is null or count(*) > $1 order by a limit 3;
execute x (null); execute x (9); execute x (10); execute x (null);
prepare y (int[]) as select count(*) from t where $1 is null or a = any ($1);
execute y (null); execute y ('{1,2}'); execute y ('{}'); execute y ('{null,3}');
prepare z (int, int) as select count(*) from t where exists (select from t x where x.a = t.id and ($1 is null or x.b = $1)) and ($2 is null or t.id > $2);
execute z (null, null); execute z (7, null); execute z (null, 20); execute z (7, 20);
prepare m (int, int) as update t set b = $2 where ($1 is null or id = $1) and ($2 is null or a = 4) ;
begin; execute m (54, 99); execute m (54, null); execute m (null, 77); select count(*) from t where b = 77; execute m (null, null); select count(b) from t; rollback;
prepare n (int) as delete from t where id < 100 and ($1 is null or a = $1);
begin; execute n (5); execute n (5); execute n (null); execute n (null); rollback;
-- A statement without parameters.
select count(*) from t where (7 is null or a = 7) and (null is null or b = 8);
select count(*) from t where ('' = '' or c = '') and ('c7' = '' or c = 'c7');
select count(*) from t where (false or a = 7) and (true or b = 8);
select count(*) from t where a = coalesce(null, 7) and b = coalesce(8, b);
-- The same under each mode.
set plan_cache_mode = force_generic_plan;
execute p (7, null); execute p (null, 8); execute q ('c7', -1, 0); execute r (null, 8); execute u (null);
set plan_cache_mode = force_custom_plan;
execute p (7, null); execute p (null, 8); execute q ('c7', -1, 0); execute r (null, 8); execute u (null);
reset plan_cache_mode;
-- Many parameters: more premises than a plan takes.
prepare many (int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int) as select count(*), sum(id) from t where
 ($1 is null or a = $1) and ($2 is null or a = $2) and ($3 is null or a = $3) and ($4 is null or a = $4) and ($5 is null or a = $5) and ($6 is null or a = $6) and ($7 is null or a = $7) and ($8 is null or a = $8) and ($9 is null or a = $9) and ($10 is null or a = $10) and ($11 is null or a = $11) and ($12 is null or a = $12) and ($13 is null or a = $13) and ($14 is null or a = $14) and ($15 is null or a = $15) and ($16 is null or a = $16) and ($17 is null or b = $17) and ($18 is null or b = $18);
execute many (7, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null);
execute many (null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, 8);
execute many (7, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, 7, null);
execute many (7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 27, null);
-- Definitions change under the plans.
drop index t_a_idx; execute p (7, null); execute p (null, 8);
begin; create index on t (a); execute p (7, null); execute p (null, null); rollback; execute p (7, null);
alter table t drop column c; execute p (7, 8); execute q ('', -1, 0);
-- Premises within premises, NULL within NOT, and arms that are all decided.
prepare nested (int, int) as select count(*) from t where (($1 is null and $2 is null) or a = $1) and (not ($1 is null or a = 3 or $2 is null) or ($2 > 5 and ($1 < 3 or b = $2)));
execute nested (null, null); execute nested (7, null); execute nested (7, 6); execute nested (2, 6); execute nested (2, 4); execute nested (null, 6);
prepare decided (int) as select count(*) from t where ($1 = 1 or $1 = 2 or $1 is null) and not ($1 = 3 and a = 4);
execute decided (1); execute decided (3); execute decided (null); execute decided (2);
prepare lists (text) as select count(*) from t where ($1 in ('all', 'any') or a::text = $1) and a < 10;
execute lists ('all'); execute lists ('5'); execute lists (null); execute lists ('x');
-- COALESCE with several parameters, and casts that differ by modifiers alone.
prepare co (int, int, int) as select count(*) from t where coalesce($1, $2, a) = a and ($3 is null or b = $3);
execute co (null, null, null); execute co (null, null, 1); execute co (null, 2, null); execute co (3, 2, null); execute co (3, null, 8);
prepare co2 (int, int) as select count(*) from t where coalesce($1, $2) = a and coalesce($2, $1, b) = b; execute co2 (null, null); execute co2 (3, null); execute co2 (null, 4); execute co2 (5, 5);
prepare iv (interval) as select count(*) from t where ($1::interval(0) = '2 hours' or a = 1) and ($1::interval hour = '2 hours' or a = 2);
prepare iw (interval) as select count(*) from t where ($1::interval hour = '2 hours' or a = 1) and ($1::interval(0) = '2 hours' or a = 2);
execute iv ('02:00:02'); execute iw ('02:00:02'); execute iv ('02:00'); execute iw (null);
