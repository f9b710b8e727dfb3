-- class: wide two-sided ranges, index-only counts
-- data: shop
-- bar: 1.5

-- name: count of a tenth
select count(*) from orders where c between 50000 and 70000;

-- name: count of half
select count(*) from orders where c between 50000 and 150000;

-- name: sum of the index's column
select sum(c) from orders where c between 50000 and 150000;

-- name: sum of another column over a tenth
select sum(total) from orders where c between 50000 and 70000;

-- name: sum of another column over half
select sum(total) from orders where c between 50000 and 150000;

-- name: range of timestamps that follow the key
select count(*), sum(total) from orders where placed between '2023-06-01' and '2024-06-01';

-- name: range of the primary key
select count(*), sum(total) from orders where id between 20000 and 120000;

-- name: count of the whole table
select count(*) from orders;

-- name: count of a column with NULLs
select count(d) from orders;

-- name: count of NULLs
select count(*) from orders where d is null;

-- name: count of text range
select count(*) from orders where code between 'B' and 'F';

-- name: count by two bounds of a composite index
select count(*) from orders where a between 20 and 60 and b between 100 and 900;

-- name: columns of a composite index
select a, sum(b) from orders where a between 10 and 90 group by a order by a;

-- name: wide range with a filter
select count(*) from orders where c between 20000 and 180000 and status = 'open';

-- name: wide range joined
select count(*) from orders o join customers c on c.id = o.customer where o.c between 20000 and 80000;

-- name: count of a prefix of the primary key
select count(*) from items where order_id between 50000 and 150000;

-- name: count of dates
select count(*) from items where shipped between '2023-06-01' and '2024-03-01';

-- name: count of uuids
select count(*) from orders where u between '40000000-0000-4000-a000-000000000000' and 'b0000000-0000-4000-a000-000000000000';

-- name: generic plan, narrow range
-- plan: generic
-- parameter: 50000
-- parameter: 50100
select count(*), sum(total) from orders where c between $1 and $2;

-- name: generic plan, wide range
-- plan: generic
-- parameter: 5000
-- parameter: 195000
select count(*), sum(total) from orders where c between $1 and $2;
