-- Window functions with the default frame.
create table w (id int primary key, g text, v int);
insert into w values (1, 'a', 3), (2, 'a', 1), (3, 'b', null), (4, 'a', 3), (5, 'b', 7), (6, 'c', 1), (7, 'a', 2);
select id, row_number() over (order by v, id), rank() over (order by v), dense_rank() over (order by v) from w order by id;
select id, percent_rank() over (order by v), cume_dist() over (order by v) from w order by id;
select id, percent_rank() over (partition by g order by v), cume_dist() over (partition by g order by v) from w order by id;
select id, ntile(3) over (order by id), ntile(10) over (order by id), ntile(1) over (partition by g order by id) from w order by id;
select id, ntile(null) over (order by id) from w order by id limit 1;
select ntile(0) over () from w;
select ntile(id) over (order by id desc) from w;
select ntile('x'::text) over () from w;
select id, nth_value(v, 2) over (order by id), nth_value(v, 2) over (partition by g order by v), nth_value(id, id) over (order by id) from w order by id;
select nth_value(v, 0) over () from w;
select id, nth_value(v, null) over (order by id) from w order by id limit 1;
select nth_value('x', 1) over () from w;
select id, lag('x', 1, 'y') over (order by id), lead('x', 1, 'y') over (order by id) from w order by id;
select id, lag(v, 2) over (order by id), lead(v, -1, 0) over (order by id), lag(v, 0) over (order by id) from w order by id;
select id, first_value(v) over (partition by g order by id), last_value(v) over (partition by g order by v, id) from w order by id;
select id, sum(v) over (order by v), count(*) over (partition by g), avg(v) over (partition by g order by v nulls first) from w order by id;
select g, sum(v), rank() over (order by sum(v) desc nulls last) from w group by g order by g;
select percent_rank() from w;
drop table w;

-- Arguments of lag and lead that fit no function.
select lag(1, 2::bigint) over ();
select lead(1, 1.5) over ();
select lag(1, 1, 'a'::text) over ();
select lag(1, '1') over (), lead(2, 1, '5') over ();

-- Rows are handed on as they come where a call needs no later row, or only some.
with recursive t(n) as (select 1 union all select n + 1 from t) select n, row_number() over () from t limit 2;
with recursive t(n) as (select 1 union all select n + 1 from t) select n, rank() over (), dense_rank() over () from t limit 2;
with recursive t(n) as (select 1 union all select n + 1 from t)
    select n, lag(n) over (), lag(n, 2) over (), lag(n, 2, n * 10) over (), lag(n, null) over (), lag(n, 0) over () from t limit 4;
with recursive t(n) as (select 1 union all select n + 1 from t) select n, first_value(n + 5) over (), row_number() over () from t limit 3;
with recursive t(n) as (select 1 union all select n + 1 from t)
    select n, lead(n) over (), lead(n, 2) over (), lag(n, -3) over (), lead(n, -1) over () from t limit 3;
with recursive t(n) as (select 1 union all select n + 1 from t) select n, nth_value(n, 3) over (), nth_value(n, n) over () from t limit 4;
with recursive t(n) as (select 1 union all select n + 1 from t) select n, lag(n, n - 2) over (), lead(n, n, -1) over () from t limit 4;
with recursive t(n) as (select 1 union all select n + 1 from t) select n, row_number() over (order by 1) from t limit 2;
with recursive t(n) as (select 1 union all select n + 1 from t) select * from (select n, row_number() over () as r from t) s where r > 1 limit 2;
select n, lead(n, n - 2) over (), lag(n, n - 2, 0) over (), nth_value(n, n) over (), first_value(n) over (), row_number() over () from generate_series(1, 5) n;
select n, lead(n, 4) over (), lead(n, 5, 0) over (), lead(n, 6) over (), lag(n, 9, n) over (), nth_value(n, 6) over () from generate_series(1, 5) n;
select n, lead(n, null::int) over (), lead(n, -2147483647) over (), lag(n, 2147483647) over () from generate_series(1, 2) n;
select nth_value(n, n - 2) over () from generate_series(1, 3) n;
select n, rank() over (order by 'x'::text), count(*) over (partition by 1), first_value(n) over (order by null::int) from generate_series(1, 3) n;
select row_number() over (), lag(1) over (), lead(1) over () from generate_series(1, 0);
select a, row_number() over (), (select lag(b) over () from generate_series(a, a + 1) b offset 1) from generate_series(1, 3) a;
select sum(a), sum(b), sum(c), max(r) from (
    select lag(n) over () a, lead(n, 3) over () b, lag(n, 100) over () c, row_number() over () r from generate_series(1, 100000) n) s;
select sum(length(a)), count(distinct b) from (
    select lag(repeat('x', 1000) || n, 70) over () a, first_value(n) over () b from generate_series(1, 10000) n) s;
prepare fixed(int) as select n, rank() over (order by $1), sum(n) over (partition by $1), lag(n, $1) over () from generate_series(1, 3) n;
execute fixed(1);
execute fixed(-1);
execute fixed(null);
deallocate fixed;
-- Windows whose rows are handed on as they come.
select g, row_number() over (), rank() over (), dense_rank() over (partition by 1), first_value(g) over (order by 1), lag(g) over (), lead(g) over (), lag(g, 2, -1) over (), lead(g, 3, 99) over (), nth_value(g, 2) over () from generate_series(5, 12) g;
select g, lag(g, g % 3) over (), lead(g, g % 4, 0) over (), nth_value(g, g % 3 + 1) over () from generate_series(1, 9) g;
select g, lag(g, -1) over (), lead(g, -2) over (), lag(g, null) over (), lag(g,0) over () from generate_series(1, 4) g;
select nth_value(g, 0) over () from generate_series(1, 3) g;
select nth_value(g, null) over () from generate_series(1, 3) g;
select g, lag(g, 2147483647) over (), lead(g, 2147483647) over (), lag(g, -2147483648) over () from generate_series(1, 3) g;
select row_number() over () from generate_series(1, 0) g;
select first_value(null::int) over (), first_value(repeat('x', 10)||g) over () from generate_series(1,3) g;
select count(*), sum(n), sum(l) from (select row_number() over () n, lag(g, 1000) over () l from generate_series(1, 300000) g) s;
select count(*), sum(n), sum(l) from (select first_value(g) over () n, lead(g, 1000, 1) over () l from generate_series(1, 300000) g) s;
select * from (select g, row_number() over () from generate_series(1, 100000000) g) s limit 3;
with recursive t(n) as (select 1 union all select n + 1 from t) select n, row_number() over (), lag(n) over (), lead(n, 2) over () from t limit 3;
select (select row_number() over () from generate_series(1, g) limit 1), (select max(l) from (select lag(h) over () l from generate_series(1, g) h) q) from generate_series(1, 4) g;
begin;
declare c scroll cursor for select g, row_number() over (), lag(g) over () from generate_series(1, 5) g;
fetch 2 c;
fetch backward 1 c;
fetch all c;
commit;
select g, sum(g) over (), row_number() over () from generate_series(1, 3) g;
select g, ntile(2) over (), percent_rank() over (), cume_dist() over (), last_value(g) over () from generate_series(1, 4) g;
select rank() over (order by 'x'::text), row_number() over (partition by null order by null) from generate_series(1, 3);
prepare w(int) as select g, row_number() over (partition by $1 order by $1), count(*) over (partition by $1) from generate_series(1, 3) g;
execute w(1);
execute w(null);
