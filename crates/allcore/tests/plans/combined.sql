-- Paths over several indexes.
create table t (id int primary key, a int, b int, c text, d int unique, e int);
insert into t select i, i * 7 % 3001, i * 11 % 2003, 'c' || i * 13 % 1009, i * 3, i % 7 from generate_series(1, 20000) i;
create index on t (a);
create index on t (b);
create index on t (c);
create index on t (e, a);
analyze t;
explain (costs off) select * from t where a = 17 or b = 23;
explain (costs off) select * from t where a = 17 or b = 23 or id = 5 order by id;
explain (costs off) select * from t where a = 17 or b in (23, 24) or c like 'c7%' order by id limit 3;
explain (costs off) select * from t where (a = 4 or b = 9) and e = 3;
explain (costs off) select * from t where (e = 3 and a = 4) or (b = 4 and e = 2);
explain (costs off) select * from t where a < 300 and b < 200;
-- One index says enough.
explain (costs off) select * from t where a = 17 or a = 19;
explain (costs off) select * from t where a = 17 and b = 23;
explain (costs off) select * from t where d = 3 and (a = 4 or b = 9);
-- An arm that no index bounds, and arms of most rows.
explain (costs off) select * from t where a = 17 or b + 1 = 9;
explain (costs off) select * from t where a = 17 or b > 4;
set enable_bitmapscan = off;
explain (costs off) select * from t where a = 17 or b = 23;
reset enable_bitmapscan;
explain (costs off) select count(*) from generate_series(1, 40) v (x) join t on t.a = v.x or t.b = v.x;
-- Values that are not known at planning: the scan reads the whole table if it meets too many rows.
create table g (id int primary key, a int, b int);
insert into g select i, case when i < 9000 then 3 else i end, i from generate_series(1, 20000) i;
create index on g (a);
create index on g (b);
analyze g;
set plan_cache_mode = force_generic_plan;
prepare p (int) as select * from g where b > $1;
explain (costs off) execute p (5);
prepare q (int) as select * from g where a = $1;
explain (costs off) execute q (5);
prepare r (int) as select * from g where b = $1;
explain (costs off) execute r (5);
prepare s (int, int) as select * from g where b between $1 and $2;
explain (costs off) execute s (5, 7);
reset plan_cache_mode;
explain (costs off) select * from g where b > (select max(b) - 5 from g);
explain (costs off) select count(*) from g x join g y on y.b > x.b where x.id < 3;
