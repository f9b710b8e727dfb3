-- class: one-sided range on a secondary index
-- data: shop
-- bar: 1.5

-- name: newest rows above a timestamp
select id, code, placed from orders where placed >= '2024-11-20' order by placed, id;

-- name: rows below a timestamp, counted
select count(*), sum(total) from orders where placed < '2023-01-08';

-- name: numeric key above a bound
select id, total from orders where total > 99000 order by total desc, id;

-- name: text key above a bound
select count(*) from orders where code > 'ZV';

-- name: text key below a bound
select min(id), max(id), count(*) from orders where code <= 'AC-010000';

-- name: uuid key above a bound
select count(*), min(code) from orders where u > 'ff000000-0000-4000-a000-000000000000';

-- name: descending key, newest visits
select token, seen from visits where seen > '2023-03-12 00:00:00+00' order by seen desc, token;

-- name: composite key's first column
select count(*), max(c) from orders where a >= 98;

-- name: nullable key skips its NULLs
select count(*), sum(c) from orders where d >= 985;

-- name: range within one value of the first column
select id, placed from orders where kind = 3 and placed > '2024-11-01' order by placed desc, id;

-- name: two tables' rows above a bound
select count(*) from orders o join customers c on c.id = o.customer where o.placed > '2024-11-22' and c.joined > '2023-11-01';

-- name: generic plan, few rows
-- plan: generic
-- parameter: 2024-11-20
select count(*), sum(total) from orders where placed >= $1;

-- name: generic plan, all rows
-- plan: generic
-- parameter: 2020-01-01
select count(*), sum(total) from orders where placed >= $1;

-- name: custom plan, few rows
-- plan: custom
-- parameter: 99500
select count(*), sum(c) from orders where total > $1;

-- name: a parameter that is NULL
-- parameter: \N
select count(*) from orders where placed > $1;

-- name: most of the table
select count(*), sum(c) from orders where total > 2;

-- name: an empty table
select * from nothing where a > 5 order by a, id;
