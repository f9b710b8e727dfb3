-- class: OR of equalities or ranges, row-value IN
-- data: shop
-- bar: 1.5

-- name: OR of two columns' equalities
select id, code from orders where customer = 708 or c = 1234 order by id;

-- name: OR of an equality and a range
select count(*), sum(total) from orders where status = 'failed' or placed > '2024-11-24';

-- name: OR of two ranges of one column
select count(*), sum(total) from orders where placed < '2023-01-03' or placed > '2024-11-24';

-- name: OR within AND
select id from orders where (customer = 8 or customer = 15) and status = 'open' order by id;

-- name: OR of conjunctions over a composite key
select id, a, b from orders where (a = 3 and b = 14) or (a = 15 and b = 92) or (a = 65 and b < 5) order by id;

-- name: row-value IN over a composite key
select id, a, b from orders where (a, b) in ((1, 2), (3, 4), (50, 600), (99, 999)) order by id;

-- name: row-value IN over the primary key
select * from items where (order_id, line) in ((10, 1), (500, 2), (70000, 1), (199999, 1)) order by order_id, line;

-- name: row-value IN over a text key
select owner, tag, weight from tags
where (owner, tag) in (('owner-000001', 'tag-005'), ('owner-000010', 'tag-100'), ('owner-000003', 'tag-399')) order by owner, tag;

-- name: OR with IS NULL
select count(*) from orders where d is null or d = 7;

-- name: OR with a column without index
select count(*) from orders where customer = 708 or memo = 'late late 000000000001';

-- name: OR over two tables
select count(*) from orders o join customers c on c.id = o.customer where o.id = 500 or c.id = 2801;

-- name: OR of text prefixes
select count(*) from orders where code like 'QA-%' or code like 'ZZ-%';

-- name: OR of uuids
select id from orders where u = '417c4fa3-b413-4a6c-a4e0-5f8d35f71648' or u < '00010000-0000-4000-a000-000000000000' order by id;

-- name: optional filter, generic plan
-- plan: generic
-- parameter: 708
select count(*) from orders where $1::integer is null or customer = $1::integer;

-- name: optional filter, custom plan
-- plan: custom
-- parameter: 708
select count(*) from orders where $1::integer is null or customer = $1::integer;

-- name: OR with a NULL constant
select count(*) from orders where customer = 708 or customer = null;

-- name: OR of parameters, generic plan
-- plan: generic
-- parameter: 708
-- parameter: 4321
select count(*), sum(total) from orders where customer = $1 or c = $2;

-- name: DELETE's condition as a count of two unique keys
select count(*) from customers where email = 'user7919@example.org' or id = 5;
