-- class: DELETE of a fifth of a table
-- data: shop
-- bar: 1.5

-- name: by the key
-- before: create table changed (id bigint primary key, customer integer, total numeric, memo text)
-- before: insert into changed select id, customer, total, memo from orders
-- before: create index changed_customer on changed (customer)
-- check: select count(*), sum(id) from changed
-- after: drop table changed
delete from changed where id <= 40000;

-- name: every fifth row
-- before: create table changed (id bigint primary key, customer integer, total numeric, memo text)
-- before: insert into changed select id, customer, total, memo from orders
-- before: create index changed_customer on changed (customer)
-- check: select count(*), sum(id) from changed
-- after: drop table changed
delete from changed where id % 5 = 0;

-- name: by an indexed range, three indexes
-- before: create table changed (id bigint primary key, customer integer, c integer, placed timestamp)
-- before: insert into changed select id, customer, c, placed from orders
-- before: create index changed_customer on changed (customer)
-- before: create index changed_c on changed (c)
-- check: select count(*), sum(id) from changed
-- after: drop table changed
delete from changed where c < 40000;

-- name: by a subquery
-- before: create table changed (id bigint primary key, customer integer, total numeric)
-- before: insert into changed select id, customer, total from orders
-- check: select count(*), sum(id) from changed
-- after: drop table changed
delete from changed where customer in (select id from customers where region = 'north');

-- name: with USING
-- before: create table changed (id bigint primary key, customer integer, total numeric)
-- before: insert into changed select id, customer, total from orders
-- check: select count(*), sum(id) from changed
-- after: drop table changed
delete from changed using customers c where c.id = changed.customer and c.region = 'south';

-- name: UPDATE of a fifth
-- before: create table changed (id bigint primary key, customer integer, total numeric, memo text)
-- before: insert into changed select id, customer, total, memo from orders
-- before: create index changed_customer on changed (customer)
-- check: select count(*), sum(customer), sum(total) from changed
-- after: drop table changed
update changed set customer = customer + 1 where id <= 40000;

-- name: UPDATE of a fifth without its indexes
-- before: create table changed (id bigint primary key, customer integer, total numeric, memo text)
-- before: insert into changed select id, customer, total, memo from orders
-- before: create index changed_customer on changed (customer)
-- check: select count(*), sum(customer), sum(total) from changed
-- after: drop table changed
update changed set total = total + 1 where id % 5 = 0;

-- name: count behind a DELETE
-- setup: create table changed (id bigint primary key, customer integer, total numeric)
-- setup: insert into changed select id, customer, total from orders
-- setup: delete from changed where id % 5 = 0
-- cleanup: drop table changed
select count(*), sum(total) from changed;

-- name: first row behind a DELETE
-- setup: create table changed (id bigint primary key, customer integer, total numeric)
-- setup: insert into changed select id, customer, total from orders
-- setup: delete from changed where id <= 40000
-- cleanup: drop table changed
select min(id) from changed;

-- name: DELETE of few by a rare value
-- before: create table changed (id bigint primary key, status text)
-- before: insert into changed select id, status from orders
-- before: create index changed_status on changed (status)
-- check: select count(*), sum(id) from changed
-- after: drop table changed
delete from changed where status = 'failed';
