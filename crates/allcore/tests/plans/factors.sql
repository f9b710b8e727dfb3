-- Conditions that the arms of an OR share, and what an OR says about one table.
create table t (id int primary key, a int, b int, c text, d int);
create table u (id int primary key, t int, b int, e text);
insert into t select i, i % 200, i % 30, 'c' || i % 50, i % 3 from generate_series(1, 9000) i;
insert into u select i, (i * 7) % 9500, (i / 3) % 120, 'e' || i % 40 from generate_series(1, 12000) i;
create index on t (a);
create index on u (t);
create index on u (b);
analyze t; analyze u;
explain (costs off) select count(*) from t where (a = 1 and b = 1) or (a = 1 and b = 11);
explain (costs off) select count(*) from t where (b = 1 and d = 0 and a = 1) or (a = 1 and c = 'c1' and d = 0) or (d = 0 and a = 1);
explain (costs off) select count(*) from t where (a = 1 and b = 1) or ((c = 'c2' and a = 1) or (a = 1 and d = 2));
explain (costs off) select count(*) from t where (a = 1 and b = 1) or (a = 2 and b = 1 and d = 0) or (a = 3 and c = 'c3');
explain (costs off) select count(*) from t, u where (t.id = u.t and t.a = 1 and u.b = 3) or (t.id = u.t and t.a = 2 and u.b = 4);
explain (costs off) select count(*) from t, u where (t.id = u.t and t.c = 'c1' and u.b = 3 and t.d = 1) or (t.d = 1 and t.id = u.t and u.e = 'e1' and t.c in ('c2', 'c3'));
explain (costs off) select count(*) from t join u on (t.id = u.t and t.a = 1) or (t.id = u.t and u.b = 4);
explain (costs off) select count(*) from t join u on t.id = u.t where (t.a = 1 and u.b = 2) or (t.a = 3 and u.b = 4);
explain (costs off) select count(*) from t, u where (t.a = 1 and u.b = 2 and u.id < 50) or (t.a = 3 and u.b = 4 and u.id < 40);
explain (costs off) select count(*) from t left join u on t.id = u.t and ((t.a = 1 and u.b = 2) or (t.a = 3 and u.b = 4)) where t.id < 300;
explain (costs off) select count(*) from t left join u on t.id = u.t where (t.a = 1 and u.b = 2) or (t.a = 3 and u.b is null);
explain (costs off) select count(*) from t where exists (select from u where (u.t = t.id and u.b = 2) or (u.t = t.id and t.a = 3));
explain (costs off) select count(*) from t where (a = 1 and exists (select from u where u.t = t.id)) or (a = 2 and exists (select from u where u.t = t.id and u.b = 3));
explain (costs off) select d, count(*) from t group by d having (d = 1 and count(*) > 5) or (d = 1 and sum(id) > 5);
-- A part that may fail does not come before its condition, and a volatile part stays.
explain (costs off) select count(*) from t where (d <> 0 and 10 / d > 4) or (d <> 0 and 10 / d < 2);
explain (costs off) select count(*) from t where (d <> 0 and a = 1 and 10 / d > 4) or (d = 2 and 10 / d > 4 and b = 3);
explain (costs off) select count(*) from t where (10 / d > 4 and a = 1) or (10 / d > 4 and b = 3);
explain (costs off) select count(*) from t, u where (t.d <> 0 and 10 / t.d > 4 and u.id = 1) or (t.d = 2 and 10 / t.d > 4 and u.id = 2);
explain (costs off) select count(*) from t where (random() >= 0 and a = 1) or (random() >= 0 and a = 2);
prepare either(int, int, int) as select count(*) from t, u where (t.id = u.t and t.a = $1 and u.b = $2) or (t.id = u.t and t.a = $3 and u.b = $2);
set plan_cache_mode = force_generic_plan;
explain (costs off) execute either(1, 3, 2);
deallocate either;
-- The join condition and others stand in each arm.
create table part (partkey int primary key, brand char(10), container char(10), size int);
create table line (orderkey int, number int, partkey int, quantity numeric, price numeric, discount numeric, instruct char(25), mode char(10), primary key (orderkey, number));
create index on line (partkey);
explain (costs off) select sum(price * (1 - discount)) from line, part
  where (part.partkey = line.partkey and brand = 'Brand#12' and container in ('SM CASE', 'SM BOX') and quantity >= 1 and quantity <= 1 + 10
    and size between 1 and 5 and mode in ('AIR', 'AIR REG') and instruct = 'DELIVER IN PERSON')
  or (part.partkey = line.partkey and brand = 'Brand#23' and container in ('MED BAG', 'MED BOX') and quantity >= 10 and quantity <= 10 + 10
    and size between 1 and 10 and mode in ('AIR', 'AIR REG') and instruct = 'DELIVER IN PERSON');
