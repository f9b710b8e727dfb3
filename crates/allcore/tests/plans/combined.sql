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
