-- class: ADD COLUMN with a constant default
-- data: shop
-- bar: 1.5

-- name: integer
-- before: create table changed as select * from orders
-- check: select count(*), sum(extra), sum(total) from changed
-- after: drop table changed
alter table changed add column extra integer default 7;

-- name: NOT NULL text
-- before: create table changed as select * from orders
-- check: select count(*), max(extra), min(length(extra)) from changed
-- after: drop table changed
alter table changed add column extra text not null default 'none';

-- name: without default
-- before: create table changed as select * from orders
-- check: select count(*), count(extra) from changed
-- after: drop table changed
alter table changed add column extra timestamp;

-- name: with an index on the table
-- before: create table changed (like_id bigint primary key, total numeric, memo text)
-- before: insert into changed select id, total, memo from orders
-- before: create index changed_total on changed (total)
-- check: select count(*), sum(extra) from changed
-- after: drop table changed
alter table changed add column extra numeric(10, 2) default 1.25;

-- name: a read behind it
-- setup: create table changed as select * from orders
-- setup: alter table changed add column extra integer default 7
-- cleanup: drop table changed
select sum(extra), count(*) from changed;

-- name: two columns
-- before: create table changed as select * from orders
-- check: select count(*), sum(one), max(two) from changed
-- after: drop table changed
alter table changed add column one integer default 1, add column two text default 'x';
