-- class: rare value of a skewed column
-- data: shop
-- bar: 1.5

-- name: rare status
select id, total from orders where status = 'failed' order by id;

-- name: rare status with a second condition
select count(*) from orders where status = 'failed' and kind = 0;

-- name: uncommon status
select count(*), sum(total) from orders where status = 'open';

-- name: common status
select count(*), sum(total) from orders where status = 'done';

-- name: a value that is not there
select count(*) from orders where status = 'lost';

-- name: rare status, newest first
select id, placed from orders where status = 'failed' order by placed desc, id limit 10;

-- name: common status, newest first
select id, placed from orders where status = 'done' order by placed desc, id limit 10;

-- name: rare status joined with its customers
select o.id, c.name from orders o join customers c on c.id = o.customer where o.status = 'failed' order by o.id;

-- name: rare status joined with its items
select count(*), sum(i.price) from orders o join items i on i.order_id = o.id where o.status = 'failed';

-- name: frequent customer
select count(*), sum(total) from orders where customer = 1;

-- name: rare kind
select count(*), max(placed) from orders where kind = 9;

-- name: generic plan, rare value
-- plan: generic
-- parameter: failed
select count(*), sum(total) from orders where status = $1;

-- name: generic plan, common value
-- plan: generic
-- parameter: done
select count(*), sum(total) from orders where status = $1;

-- name: custom plan, rare value
-- plan: custom
-- parameter: failed
select count(*), sum(total) from orders where status = $1;

-- name: all but the common value
select count(*) from orders where status <> 'done';

-- name: frequent product
select count(*), sum(quantity) from items where product = 1;
