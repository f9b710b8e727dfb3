-- class: GROUP BY or DISTINCT ON in index order with LIMIT
-- data: shop
-- bar: 1.5

-- name: first groups by key
select customer, count(*) from orders group by customer order by customer limit 10;

-- name: last groups by key
select customer, count(*), sum(total) from orders group by customer order by customer desc limit 10;

-- name: first groups of two columns
select a, b, count(*) from orders group by a, b order by a, b limit 20;

-- name: mixed directions over an index of mixed directions
select kind, placed from orders order by kind, placed desc limit 20;

-- name: mixed directions, reversed
select kind, placed from orders order by kind desc, placed limit 20;

-- name: mixed directions over an ascending index
select a, b, id from orders order by a, b desc, id limit 20;

-- name: DISTINCT ON in index order
select distinct on (kind) kind, placed from orders order by kind, placed desc limit 5;

-- name: DISTINCT ON with further columns
select distinct on (customer) customer, id, placed from orders order by customer, placed desc, id limit 10;

-- name: DISTINCT ON of the composite key
select distinct on (a) a, b from orders order by a, b limit 10;

-- name: DISTINCT of few values
select distinct status from orders order by status;

-- name: DISTINCT with LIMIT
select distinct customer from orders order by customer limit 10;

-- name: groups of the primary key's prefix
select order_id, count(*), sum(price) from items group by order_id order by order_id limit 20;

-- name: groups of the primary key's prefix behind a bound
select order_id, sum(quantity) from items where order_id > 150000 group by order_id order by order_id limit 20;

-- name: groups by text
select owner, count(*), max(weight) from tags group by owner order by owner limit 20;

-- name: groups with HAVING and LIMIT
select customer, count(*) from orders group by customer having count(*) > 30 order by customer limit 5;

-- name: all groups by their size
select customer, count(*) as number from orders group by customer order by number desc, customer limit 10;

-- name: groups by day
select placed::date as day, count(*) from orders group by day order by day limit 10;

-- name: groups of an expression, all rows
select a % 7 as rest, count(*), avg(total) from orders group by rest order by rest;

-- name: DISTINCT ON, descending NULLs
select distinct on (d) d, id from orders order by d desc nulls last, id limit 10;

-- name: order by index and key
select due, id from orders order by due desc, id desc limit 20;

-- name: top rows of a column without index
select id, score from customers order by score desc, id limit 10;

-- name: groups in index order of a join
select o.customer, count(*) from orders o join items i on i.order_id = o.id group by o.customer order by o.customer limit 5;
