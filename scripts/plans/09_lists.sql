-- class: IN list or = ANY in a query with a join
-- data: shop
-- bar: 1.5

-- name: IN list of the outer key
select o.id, c.name from orders o join customers c on c.id = o.customer where o.id in (5, 500, 5000, 50000, 150000) order by o.id;

-- name: IN list of the inner key
select count(*), sum(o.total) from orders o join customers c on c.id = o.customer where c.id in (2801, 708, 1408);

-- name: IN list of the join column
select count(*) from orders o join items i on i.order_id = o.id where i.order_id in (1, 2, 3, 1000, 100000);

-- name: = ANY of an array, generic plan
-- plan: generic
-- parameter: {5,500,5000,50000,150000}
select o.id, c.name from orders o join customers c on c.id = o.customer where o.id = any ($1::bigint[]) order by o.id;

-- name: = ANY of an array, custom plan
-- plan: custom
-- parameter: {2801,708,1408}
select count(*), sum(o.total) from orders o join customers c on c.id = o.customer where c.id = any ($1::integer[]);

-- name: = ANY of texts
select o.code, c.email from orders o join customers c on c.id = o.customer
where c.email = any (array['user7919@example.org', 'user15838@example.org', 'nobody']) order by o.code limit 20;

-- name: IN list of statuses
select count(*), sum(i.price) from orders o join items i on i.order_id = o.id where o.status in ('failed', 'lost');

-- name: IN lists of both tables
select count(*) from orders o join customers c on c.id = o.customer where o.kind in (7, 8, 9) and c.region in ('hills', 'isles');

-- name: prefetch of an ORM
select i.* from items i where i.order_id in (10, 20, 30, 40, 50, 60, 70, 80, 90, 100) order by i.order_id, i.line;

-- name: IN list beside an outer join
select o.id, c.name, p.name from orders o join customers c on c.id = o.customer left join customers p on p.id = c.parent
where o.id in (1, 10, 100, 1000, 10000, 100000) order by o.id;

-- name: uuids
select o.id, c.name from orders o join customers c on c.id = o.customer
where o.u in ('417c4fa3-b413-4a6c-a4e0-5f8d35f71648', '00000000-0000-4000-a000-000000000000') order by o.id;

-- name: list of three tables' join
select count(*), sum(i.quantity) from customers c join orders o on o.customer = c.id join items i on i.order_id = o.id
where c.id in (100, 200, 300);

-- name: NULL in the list
select count(*) from orders o join customers c on c.id = o.customer where o.customer in (2801, 708, null);

-- name: NOT IN list
select count(*) from orders o join customers c on c.id = o.customer where c.region not in ('north', 'south', 'east') and o.status = 'open';

-- name: empty array
-- parameter: {}
select count(*) from orders o join customers c on c.id = o.customer where o.id = any ($1::bigint[]);
