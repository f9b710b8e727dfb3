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
