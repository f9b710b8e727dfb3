-- class: a freshly loaded table joined before any ANALYZE
-- data: shop
-- bar: 1.5

-- name: fresh rows joined by the key
-- before: create table changed (id bigint primary key, customer integer, total numeric)
-- before: insert into changed select id, customer, total from orders
-- after: drop table changed
select count(*), sum(f.total) from changed f join customers c on c.id = f.customer where c.status = 'banned';

-- name: fresh rows without index
-- before: create table changed (id bigint, customer integer, total numeric)
-- before: insert into changed select id, customer, total from orders
-- after: drop table changed
select count(*), sum(f.total) from changed f join items i on i.order_id = f.id where f.customer = 2801;

-- name: two fresh tables
-- before: create table changed (id bigint, customer integer, total numeric)
-- before: create table others (id bigint, product integer)
-- before: insert into changed select id, customer, total from orders
-- before: insert into others select order_id, product from items
-- after: drop table changed
-- after: drop table others
select count(*), sum(f.total) from changed f join others o on o.id = f.id where o.product = 5;

-- name: two fresh tables with indexes
-- before: create table changed (id bigint primary key, customer integer, total numeric)
-- before: create table others (id bigint, product integer)
-- before: insert into changed select id, customer, total from orders
-- before: insert into others select order_id, product from items
-- before: create index others_id on others (id)
-- after: drop table changed
-- after: drop table others
select count(*), sum(f.total) from changed f join others o on o.id = f.id where f.customer = 2801;

-- name: few fresh rows with a large table
-- before: create table changed (id bigint)
-- before: insert into changed select id from orders where status = 'failed'
-- after: drop table changed
select count(*), sum(i.price) from changed f join items i on i.order_id = f.id;

-- name: fresh rows of the same transaction
-- before: begin
-- before: create table changed (id bigint, customer integer)
-- before: insert into changed select id, customer from orders where id < 50000
-- after: rollback
select count(*) from changed f join customers c on c.id = f.customer join orders o on o.id = f.id where c.region = 'north';

-- name: anti-join with a fresh table
-- before: create table changed (id bigint)
-- before: insert into changed select id from orders where id % 2 = 0
-- after: drop table changed
select count(*) from orders o where not exists (select 1 from changed f where f.id = o.id);

-- name: grouped fresh rows
-- before: create table changed (id bigint, customer integer, total numeric)
-- before: insert into changed select id, customer, total from orders
-- after: drop table changed
select count(*) from (select customer, sum(total) from changed group by customer) s;

-- name: three fresh tables
-- before: create table one as select id, customer, status from orders
-- before: create table two as select order_id, product from items
-- before: create table three as select id, label from products
-- after: drop table one
-- after: drop table two
-- after: drop table three
select count(*) from one join two on two.order_id = one.id join three on three.id = two.product
where one.status = 'failed' and three.label like 'product A%';

-- name: UPDATE from a fresh table
-- before: create table changed (id bigint primary key, total numeric)
-- before: create table others (id bigint, extra numeric)
-- before: insert into changed select id, total from orders where id <= 50000
-- before: insert into others select id, 1 from orders where id % 10 = 0
-- check: select sum(total) from changed
-- after: drop table changed
-- after: drop table others
update changed set total = total + o.extra from others o where o.id = changed.id;
