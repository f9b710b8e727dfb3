-- Tests of truths bound keys, where they must hold.
create table t (id int primary key, a int, f boolean);
insert into t select i, i % 500, i % 50 = 0 from generate_series(1, 5000) i;
create index t_a on t (a);
create index t_f on t (f);
analyze t;
explain (costs off) select * from t where (a = 7) = true;
explain (costs off) select * from t where true = (a = 7);
explain (costs off) select * from t where (a = 7) <> false;
explain (costs off) select * from t where (a = 7) is true;
explain (costs off) select * from t where ((a = 7) is true) = true;
explain (costs off) select * from t where (a <> 7) = false;
explain (costs off) select * from t where (a <> 7) is false;
explain (costs off) select * from t where not ((a = 7) = false);
explain (costs off) select * from t where (a = 7 or a = 9) is true;
explain (costs off) select * from t where (a = 7) is true or (a = 9) = true;
explain (costs off) select * from t where f = true;
explain (costs off) select * from t where f is true;
explain (costs off) select * from t where f is true and a = 50;
explain (costs off) select * from t where f <> false;
explain (costs off) delete from t where (a = 7) is true;
explain (costs off) select * from t x join t y on (x.a = y.id) is true where x.id = 7;
-- A NULL meets these.
explain (costs off) select * from t where (a = 7) is not false;
explain (costs off) select * from t where not ((a <> 7) is true);
explain (costs off) select * from t where (a = 7) is not distinct from true;
