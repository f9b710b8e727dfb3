-- class: keyset pagination
-- data: shop
-- bar: 1.5

-- name: next page by two ascending columns
select id, a, b from orders where (a, b, id) > (40, 500, 0) order by a, b, id limit 20;

-- name: next page by index columns alone
select a, b from orders where (a, b) > (40, 500) order by a, b limit 20;

-- name: next page by timestamp and key
select id, placed from orders where (placed, id) > ('2024-01-01 00:00', 100) order by placed, id limit 50;

-- name: previous page, descending
select id, placed from orders where (placed, id) < ('2024-01-01 00:00', 105000) order by placed desc, id desc limit 50;

-- name: next page of the primary key
select order_id, line, price from items where (order_id, line) > (100000, 2) order by order_id, line limit 25;

-- name: last page
select order_id, line from items where (order_id, line) > (199995, 1) order by order_id, line limit 25;

-- name: first page
select id, due from orders where (due, id) > ('1970-01-01', 0) order by due, id limit 25;

-- name: page with a filter
select id, due, status from orders where (due, id) > ('2024-01-01', 0) and status = 'open' order by due, id limit 25;

-- name: page written as OR
select id, due from orders where due > '2024-01-01' or (due = '2024-01-01' and id > 100000) order by due, id limit 25;

-- name: page written as OR within AND
select id, due from orders where due >= '2024-01-01' and (due > '2024-01-01' or id > 100000) order by due, id limit 25;

-- name: page of text keys
select owner, tag from tags where (owner, tag) > ('owner-000300', 'tag-200') order by owner, tag limit 30;

-- name: page of uuid keys
select token from visits where token > '80000000-0000-4000-a000-000000000000' order by token limit 30;

-- name: page within one kind
select id, placed from orders where kind = 2 and (placed, id) < ('2024-03-01', 999999) order by placed desc, id desc limit 30;

-- name: mixed directions
select amount, customer from visits where amount < 500 or (amount = 500 and customer > 10) order by amount desc, customer limit 20;

-- name: page with a join
select o.id, o.due, c.name from orders o join customers c on c.id = o.customer
where (o.due, o.id) > ('2024-01-01', 0) order by o.due, o.id limit 25;

-- name: generic plan
-- plan: generic
-- parameter: 2024-01-01
-- parameter: 100
select id, due from orders where (due, id) > ($1, $2) order by due, id limit 25;

-- name: generic plan with a parameter for LIMIT
-- plan: generic
-- parameter: 40
-- parameter: 500
-- parameter: 20
select a, b from orders where (a, b) > ($1, $2) order by a, b limit $3;

-- name: OFFSET of 10,000
select id, due from orders order by due, id limit 20 offset 10000;
