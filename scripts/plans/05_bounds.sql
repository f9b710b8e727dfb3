-- class: several bounds of one column
-- data: shop
-- bar: 1.5

-- name: two lower bounds
select count(*), sum(c) from orders where placed > '2023-01-01' and placed > '2024-11-20';

-- name: two upper bounds
select count(*), sum(c) from orders where total < 90000 and total < 2;

-- name: bounds that contradict each other
select count(*) from orders where c > 5000 and c < 4000;

-- name: equality and range
select count(*) from orders where customer = 701 and customer > 10;

-- name: BETWEEN and a list
select count(*) from orders where c between 1000 and 2000 and c in (5, 1500, 1501, 9000);

-- name: four bounds
select count(*), sum(total) from orders
where c >= 100 and c > 200 and c <= 900 and c < 800;

-- name: range and inequality
select count(*) from orders where c between 1000 and 1100 and c <> 1050;

-- name: bounds of a timestamp and a date of it
select count(*) from orders where placed >= '2024-05-01' and placed < '2024-05-03' and due >= '2024-05-10';

-- name: bounds from both tables of a join
select count(*) from orders o join items i on i.order_id = o.id where o.id > 199000 and i.order_id < 199100;

-- name: bounds of text
select count(*) from orders where code >= 'B' and code < 'C' and code > 'BX';

-- name: two equalities that differ
select count(*) from orders where status = 'failed' and status = 'open';

-- name: bound by an expression of constants
select count(*) from orders where placed > timestamp '2024-11-25' - interval '3 days' and placed > '2023-05-05';

-- name: generic plan, two lower bounds
-- plan: generic
-- parameter: 2023-01-01
-- parameter: 2024-11-20
select count(*), sum(c) from orders where placed > $1 and placed > $2;

-- name: custom plan, contradiction
-- plan: custom
-- parameter: 5000
-- parameter: 4000
select count(*) from orders where c > $1 and c < $2;

-- name: NULL among the bounds
select count(*) from orders where c > 5 and c < null;
