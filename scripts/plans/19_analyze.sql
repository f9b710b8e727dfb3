-- class: ANALYZE of a large table
-- data: shop
-- bar: 1.5

-- name: items
-- before: select 1
analyze items;

-- name: orders with eleven indexes
-- before: select 1
analyze orders;

-- name: one column
-- before: select 1
analyze orders (status);

-- name: a table that was just filled
-- before: create table changed as select * from logs
-- after: drop table changed
analyze changed;

-- name: an empty table
-- before: select 1
analyze nothing;
