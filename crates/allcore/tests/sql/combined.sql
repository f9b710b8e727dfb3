-- Rows whose keys several indexes have, in any of them or in all.
create table t (id int primary key, a int, b int, c text, d int unique, e int);
insert into t select i, i * 7 % 3001, i * 11 % 2003, 'c' || i * 13 % 1009, case when i % 5 = 0 then null else i * 3 end, i % 7 from generate_series(1, 20000) i;
create index on t (a);
create index on t (b);
create index on t (c);
create index on t (e, a desc);
analyze t;
select id, a, b from t where a = 17 or b = 23 order by id;
select id, a, b from t where a = 17 or b = 23 or id = 5 order by id desc;
select id from t where a = 17 or b in (23, 24, 25) or c = 'c7' order by id;
select id from t where a = 17 or d = 33 order by id;
select id from t where d = 33 or d = 36 or a = 5 order by id;
select count(*), sum(id) from t where a between 5 and 9 or b between 3 and 8;
select count(*), sum(id) from t where a < 5 or b > 1998 or c like 'c100%';
select count(*), sum(id) from t where a is null or b = 4;
select count(*), sum(id) from t where (a = 4 and e = 3) or (b = 4 and e = 2);
select count(*), sum(id) from t where (a = 4 or b = 9) and e = 3;
select count(*), sum(id) from t where (a = 4 or b = 9) and (a = 11 or b = 9);
select count(*), sum(id) from t where (a, b) in ((1, 2), (3, 4)) or c = 'c88';
select count(*), sum(id) from t where a = 4 or (b > 5 and b < 7) or (b > 1999 and a is not null);
select count(*), sum(id) from t where (e = 3 and a = 40) or (e = 3 and a = 41) or b = 7;
-- An arm that no index bounds.
select count(*), sum(id) from t where a = 4 or b + 1 = 9;
select count(*), sum(id) from t where a = 4 or d * 2 = 66;
-- All of them.
select id, a, b from t where a = 17 and b = 1155 order by id;
select count(*), sum(id) from t where a < 300 and b < 200;
select count(*), sum(id) from t where a < 300 and b < 200 and c < 'c2';
-- NULL among the values.
select id from t where a = null or b = 23 order by id;
select id from t where a in (17, null) or b = 23 order by id;
prepare p (int, int) as select id from t where a = $1 or b = $2 order by id;
execute p (17, 23); execute p (null, 23); execute p (17, null); execute p (null, null);
prepare q (int[], text) as select id from t where a = any ($1) or c = $2 order by id limit 9;
execute q ('{1,2,null}', 'c5'); execute q (null, 'c5'); execute q ('{}', null);
-- The second scan of a loop.
select v.x, count(t.id), sum(t.id) from (values (17, 23), (4, 9), (null, 5), (6, null)) v (x, y) left join t on t.a = v.x or t.b = v.y group by v.x, v.y order by 1, 2;
select (select count(*) from t where t.a = v.x or t.b = v.x) from generate_series(10, 14) v (x);
select count(*) from generate_series(1, 40) v (x) where exists (select from t where (t.a = v.x or t.b = v.x * 50) and t.e = 1);
-- Limits and orders.
select id from t where a = 17 or b = 23 order by id limit 3;
select id, b from t where a < 17 or b = 23 order by b desc, id limit 3;
select id from t where a = 17 or b = 23 order by id offset 4 limit 2;
select min(id), max(id), max(b) from t where a = 17 or b = 23;
-- Rows that change.
begin;
update t set a = 17 where b = 23 or a = 18;
select id, a, b from t where a = 17 or b = 23 order by id;
delete from t where a = 17 or b = 24;
select id, a, b from t where a = 17 or b = 23 or b = 24 order by id;
insert into t values (-1, 17, 17), (-2, 5, 23);
select id, a, b from t where a = 17 or b = 23 or b = 24 order by id;
rollback;
update t set b = 23, a = a + 1 where a = 17 or b = 23;
select id, a, b from t where a in (17, 18) or b = 23 order by id;
select id, a from t where a = 17 or b = 23 order by id for update;
select id from t where a = 17 and b = 23 order by id;
begin; declare k cursor for select id from t where a = 18 or b = 24 order by id; fetch 2 from k; update t set a = 0 where b = 24; fetch all from k; commit;
-- A table without a key, and one never analysed.
create table n (a int, b int, c int); create index on n (a); create index on n (b);
insert into n select i % 2000, i % 2111, i from generate_series(1, 15000) i;
select c from n where a = 5 or b = 7 order by c;
analyze n;
select c from n where a = 5 or b = 7 order by c;
select count(*) from n where a < 100 and b < 100;
create table s (a int, b text, c date, primary key (b, c)); create index on s (a); create index on s (c desc);
insert into s select i, 'b' || i, date '2024-01-01' + i % 500 from generate_series(1, 5000) i; analyze s;
select * from s where a = 9 or c = '2024-02-03' or b = 'b77' order by 1;
select * from s where a = 9 or (b = 'b77' and c >= '2024-01-01') or c > '2025-05-13' order by b, c;
truncate t; select id from t where a = 17 or b = 23;
-- Values that are not known at planning.
create table g (id int primary key, a int, b int, c text);
insert into g select i, case when i < 9000 then 3 else i end, i, 'c' || i % 7 from generate_series(1, 20000) i;
create index on g (a); create index on g (b); analyze g;
set plan_cache_mode = force_generic_plan;
prepare low (int) as select count(*), sum(id), min(c) from g where b > $1;
execute low (19990); execute low (19000); execute low (18999); execute low (15001); execute low (15000); execute low (14999); execute low (0); execute low (null);
prepare eq (int) as select count(*), sum(id) from g where a = $1;
execute eq (3); execute eq (9001); execute eq (null);
prepare few (int) as select id from g where b > $1 limit 2;
execute few (19997); execute few (20);
prepare ordered (int) as select id from g where b > $1 order by id desc limit 2;
execute ordered (19997); execute ordered (20);
begin; prepare del (int) as delete from g where b > $1; execute del (19000); execute low (18000); execute del (1); execute low (0); rollback;
begin; prepare upd (int) as update g set b = b + 1 where b >= $1; execute upd (19990); execute upd (10); select sum(b), count(*) from g; rollback;
reset plan_cache_mode;
select count(*) from g where b > (select max(b) - 5 from g);
select count(*) from g where b > (select min(b) from g);
select x.id, (select count(*) from g y where y.b > x.b * 5000) from g x where x.id < 5 order by 1;
