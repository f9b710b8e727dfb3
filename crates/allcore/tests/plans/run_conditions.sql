-- Conditions on row_number(), rank() and dense_rank() that end the work of their window.
create table orders (id int primary key, placed int, client int, note text);
insert into orders select i, (i * 37) % 4001, i % 70, 'n' || i from generate_series(1, 9000) i;
create index on orders (placed, id);
create table clients (id int primary key, name text);
insert into clients select i, 'c' || i from generate_series(0, 99) i;
analyze orders; analyze clients;
explain (costs off) select count(*), sum(id) from (select id, row_number() over (order by placed, id) as place from orders) w where place <= 3;
explain (costs off) select * from (select id, row_number() over (order by placed desc, id desc) as place from orders) w where place < 3;
explain (costs off) select * from (select id, row_number() over (order by id) as place from orders) w where 3 = place;
explain (costs off) select * from (select id, rank() over (order by placed) as place from orders) w where 3 >= place;
explain (costs off) select * from (select id, dense_rank() over (order by placed) as place, rank() over (order by placed) as other from orders) w where place <= 3 and other < 9;
explain (costs off) select * from (select id, row_number() over (order by note) as place from orders) w where place between 2 and 3;
explain (costs off) select * from (select id, row_number() over (order by placed, id) as place from orders) w where place <= 8000;
explain (costs off) select * from (select id, row_number() over () as place from orders) w where place <= 3;
explain (costs off) select * from (select o.id, name, row_number() over (order by placed, o.id) as place from orders o join clients c on c.id = o.client) w where place <= 3;
-- Partitions, and several windows: only the last one ends.
explain (costs off) select * from (select id, row_number() over (partition by client order by placed) as place from orders) w where place <= 3;
explain (costs off) select * from (select id, row_number() over (partition by client order by placed) as place from orders where client < 7) w where place <= 3 and id > 7;
explain (costs off) select * from (select id, row_number() over (order by placed, id) as place, rank() over (order by note) as other from orders) w where place <= 3;
explain (costs off) select * from (select id, row_number() over (order by placed, id) as place, rank() over (order by note) as other from orders) w where place <= 3 and other <= 4;
-- The bound.
explain (costs off) select * from (select id, row_number() over (order by placed, id) as place from orders) w where place <= null;
explain (costs off) select * from (select id, row_number() over (order by placed, id) as place from orders) w where place <= length(current_user::text);
explain (costs off) select * from clients c, lateral (select o.id, row_number() over (order by placed, id) as place from orders o where client = c.id) w where place <= c.id;
explain (costs off) select * from (select id, row_number() over (order by placed, id) as place from orders) w where place <= id;
explain (costs off) select * from (select id, row_number() over (order by placed, id) as place from orders) w where place <= random() * 3;
explain (costs off) select * from (select id, row_number() over (order by placed, id) as place from orders) w where place <= (select 3);
explain (costs off) select * from (select id, row_number() over (order by placed, id) + 1 as place from orders) w where place <= 3;
prepare first_n(bigint) as select count(*) from (select id, row_number() over (order by placed, id) as place from orders) w where place <= $1;
explain (costs off) execute first_n(3);
set plan_cache_mode = force_generic_plan;
explain (costs off) execute first_n(3);
reset plan_cache_mode;
-- No run condition.
explain (costs off) select * from (select id, row_number() over (order by placed, id) as place from orders) w where place > 3;
explain (costs off) select * from (select id, row_number() over w as place, lead(id) over w as next from orders window w as (order by placed, id)) w where place <= 3;
explain (costs off) select * from (select id, count(*) over (order by placed, id) as up, count(*) over () as whole from orders) w where up <= 3;
explain (costs off) select * from (select id, row_number() over (order by placed, id) as place from orders limit 10) w where place <= 3;
explain (costs off) select * from (select distinct client, dense_rank() over (order by client) as place from orders) w where place <= 3;
explain (costs off) select * from (select generate_series(1, 2), row_number() over (order by placed, id) as place from orders) w where place <= 3;
explain (costs off) select * from (select random(), row_number() over (order by placed, id) as place from orders) w where place <= 3;
explain (costs off) select * from (select (select random() where id > 0), row_number() over (order by placed, id) as place from orders) w where place <= 3;
-- Between.
explain (costs off) select * from (select id, place from (select id, row_number() over (order by placed, id) as place from orders) a) b where place <= 2;
explain (costs off) select * from (select client, max(place) as most from (select client, row_number() over (order by placed, id) as place from orders) a where place <= 20 group by client) b where most <= 10;
explain (costs off) select * from (select row_number() over (order by placed, id) as place from orders union all select row_number() over (order by id) from orders) w where place <= 3;
explain (costs off) with w as (select id, row_number() over (order by placed, id) as place from orders) select * from w where place <= 3;
explain (costs off) select c.id, w.place from clients c left join (select client, row_number() over (partition by client order by placed) as place from orders) w on w.client = c.id and place <= 2 where c.id < 3;
-- Rows after the last one are not read.
select count(*) from (select row_number() over () as place from generate_series(1, 100000000000) g) w where place <= 3;
select count(*) from (select row_number() over (order by placed, id) as place from orders where 1 / (id - 2379) is not null) w where place <= 1;
