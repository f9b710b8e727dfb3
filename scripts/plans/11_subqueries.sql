-- class: filter on a grouped, UNION ALL or window subquery or CTE
-- data: shop
-- bar: 1.5

-- name: filter on the key of a grouped subquery
select * from (select customer, count(*) as number, sum(total) as total from orders group by customer) s where customer = 708;

-- name: filter on the key of a grouped CTE
with s as (select customer, count(*) as number from orders group by customer) select * from s where customer in (1401, 708, 2801) order by customer;

-- name: filter on the aggregate
select count(*) from (select customer, count(*) as number from orders group by customer) s where number > 50;

-- name: filter on UNION ALL
select count(*) from (select id, customer from orders union all select id, customer from visits v join (select 1 as id) one on true) u
where customer = 708;

-- name: filter on UNION ALL of three tables
select kind, count(*) from (select 'order' as kind, customer from orders union all select 'visit', customer from visits
union all select 'parent', parent from customers) u where customer = 1500 group by kind order by kind;

-- name: filter on UNION
select count(*) from (select customer from orders union select customer from visits) u where customer between 10 and 20;

-- name: filter on PARTITION BY
select * from (select id, customer, row_number() over (partition by customer order by placed, id) as place from orders) w
where customer = 708 order by place;

-- name: rows numbered up to 3
select count(*), sum(id) from (select id, row_number() over (order by placed, id) as place from orders) w where place <= 3;

-- name: newest of each customer in a range
select customer, id from (select customer, id, row_number() over (partition by customer order by placed desc, id) as place
from orders where customer < 200) w where place = 1 order by customer;

-- name: CTE used twice
with busy as (select customer, count(*) as number from orders where kind = 5 group by customer)
select count(*) from busy a join busy b on a.number = b.number and a.customer < b.customer where a.customer < 100 and b.customer < 200;

-- name: filter on DISTINCT
select * from (select distinct kind, status from orders) d where kind = 9 order by status;

-- name: filter on DISTINCT ON
select * from (select distinct on (customer) customer, id, placed from orders order by customer, placed desc, id) d where customer = 708;

-- name: grouped subquery joined to one row
select c.id, s.number from customers c join (select customer, count(*) as number from orders group by customer) s on s.customer = c.id
where c.email = 'user7919@example.org';

-- name: UNION ALL ordered with LIMIT
select id, at from (select id, placed as at from orders union all select customer, joined from (select id as customer, joined from customers) c) u
order by at desc, id limit 10;

-- name: LATERAL of the newest rows
select c.id, o.id from customers c cross join lateral (select id, placed from orders where customer = c.id order by placed desc, id limit 2) o
where c.id between 50 and 80 order by c.id, o.id;

-- name: nested views of an ORM
select * from (select * from (select o.*, c.region from orders o join customers c on c.id = o.customer) x where status <> 'failed') y
where id = 1234;

-- name: MATERIALIZED CTE
with s as materialized (select customer, sum(total) as total from orders group by customer) select max(total) from s where customer < 50;

-- name: LIMIT in the subquery
select count(*) from (select customer from orders order by id limit 1000) l where customer < 5000;

-- name: generic plan
-- plan: generic
-- parameter: 708
select * from (select customer, count(*) as number from orders group by customer) s where customer = $1;
