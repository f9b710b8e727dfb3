-- class: WHERE false
-- data: shop
-- bar: 1.5

-- name: constant
select * from orders where false;

-- name: in a join
select * from orders o join items i on i.order_id = o.id where 1 = 0;

-- name: aggregate
select count(*), sum(total) from orders where false;

-- name: NULL as condition
select * from orders where null;

-- name: beside another condition
select count(*) from orders where memo like '%x%' and false;

-- name: within OR
select count(*) from orders where customer = 708 or false;

-- name: side of an outer join
select count(*), count(i.line) from customers c left join (select * from items where false) i on i.order_id = c.id;

-- name: condition of an outer join
select count(*), count(o.id) from customers c left join orders o on o.customer = c.id and false;

-- name: branch of UNION ALL
select count(*) from (select id from orders where false union all select id from orders where id < 10) u;

-- name: EXISTS of nothing
select count(*) from customers where exists (select 1 from orders where false);

-- name: false as parameter, custom plan
-- plan: custom
-- parameter: f
select count(*) from orders where $1::boolean and memo like '%x%';

-- name: false as parameter, generic plan
-- plan: generic
-- parameter: f
select count(*) from orders where $1::boolean and memo like '%x%';

-- name: LIMIT 0
select * from orders order by memo limit 0;

-- name: comparison with NULL
select count(*) from orders where total > null;

-- name: IS NULL of a NOT NULL column
select count(*) from orders where total is null;

-- name: DELETE
-- check: select count(*) from orders
delete from orders where false;
