-- WITH queries in place of each reader, and one that is computed once.
create table t (id int primary key, a int, b text);
insert into t select g, g % 50, 'b' || g % 7 from generate_series(1, 5000) g;
analyze t;
explain (costs off) with w as not materialized (select * from t) select * from w x join w y on y.id = x.a where x.id = 40;
explain (costs off) with w as (select * from t) select * from w x join w y on y.id = x.a where x.id = 40;
explain (costs off) with w as not materialized (select a, count(*) as n from t group by a) select * from w x, w y where x.a = 7 and y.a = 8;
explain (costs off) with w as not materialized (select random() as n) select * from w x, w y;
