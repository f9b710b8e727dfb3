-- class: min and max
-- data: shop
-- bar: 1.5

-- name: min of an indexed column
select min(placed) from orders;

-- name: max of an indexed column
select max(total) from orders;

-- name: min and max together
select min(c), max(c) from orders;

-- name: max of a nullable column
select max(d), min(d) from orders;

-- name: max within one value
select max(placed) from orders where kind = 4;

-- name: min above a bound
select min(placed) from orders where placed > '2024-02-02';

-- name: max with a rare filter
select max(placed) from orders where status = 'failed';

-- name: max with a common filter
select max(placed) from orders where status = 'done';

-- name: max of text
select max(code), min(code) from orders;

-- name: max of uuid by order and limit
select u from orders order by u desc limit 1;

-- name: max of a column without index
select max(memo) from orders;

-- name: max of the primary key
select max(id) from orders;

-- name: next number
select coalesce(max(line), 0) + 1 from items where order_id = 777;

-- name: max by group of few
select kind, max(placed) from orders group by kind order by kind;

-- name: min of a descending index
select min(seen) from visits;

-- name: max of an empty table
select max(a), min(a) from nothing;

-- name: max in a subquery
select id, code from orders where placed = (select max(placed) from orders) order by id;

-- name: newest row of each of some customers
select c.id, (select max(o.placed) from orders o where o.customer = c.id) from customers c where c.id between 100 and 300 order by c.id;

-- name: generic plan
-- plan: generic
-- parameter: 4
select max(placed) from orders where kind = $1;
