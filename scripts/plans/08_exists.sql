-- class: EXISTS, NOT EXISTS, IN, NOT IN over unindexed columns
-- data: shop
-- bar: 1.5

-- name: EXISTS
select count(*) from customers c where exists (select 1 from logs l where l.target = c.id and l.level = 'warn');

-- name: NOT EXISTS
select count(*) from customers c where not exists (select 1 from logs l where l.target = c.id);

-- name: IN
select count(*) from customers where id in (select target from logs where level = 'error');

-- name: NOT IN without NULLs
select count(*) from customers where id not in (select source from logs where level = 'info');

-- name: NOT IN with NULLs
select count(*) from customers where id not in (select target from logs);

-- name: NOT IN of a filtered column
select count(*) from customers where id not in (select target from logs where target is not null);

-- name: EXISTS within OR
select count(*) from customers c
where c.status = 'banned' or exists (select 1 from logs l where l.target = c.id and l.level = 'error');

-- name: IN within OR
select count(*) from customers c where c.score > 9000 or c.id in (select target from logs where level = 'fatal');

-- name: two EXISTS within OR
select count(*) from customers c
where exists (select 1 from logs l where l.target = c.id and l.level = 'warn')
   or exists (select 1 from logs l where l.source = c.id and l.level = 'warn');

-- name: NOT EXISTS within OR
select count(*) from customers c
where c.note is not null or not exists (select 1 from logs l where l.source = c.id and l.level = 'error');

-- name: EXISTS with an inequality
select count(*) from customers c
where c.id < 2000 and exists (select 1 from logs l where l.source = c.id and l.target > c.id);

-- name: self anti-join
select count(*) from customers c where not exists (select 1 from customers p where p.parent = c.id);

-- name: IN of a grouped subquery
select count(*) from products where id in (select product from items group by product having count(*) > 100);

-- name: EXISTS of an empty table
select count(*) from customers c where exists (select 1 from nothing n where n.id = c.id);

-- name: NOT IN of an empty table
select count(*) from customers c where c.id not in (select a from nothing);

-- name: EXISTS in the select list
select sum(case when exists (select 1 from logs l where l.target = c.id and l.level = 'error') then 1 else 0 end) from customers c;

-- name: rows of EXISTS ordered with LIMIT
select c.id from customers c where exists (select 1 from logs l where l.target = c.id and l.level = 'error') order by c.id limit 10;

-- name: row-value IN of a subquery
select count(*) from items where (order_id, product) in (select id::bigint, source from logs where level = 'error');

-- name: generic plan
-- plan: generic
-- parameter: error
select count(*) from customers c where exists (select 1 from logs l where l.target = c.id and l.level = $1);

-- name: correlated by a text column
select count(*) from customers c where exists (select 1 from tags t where t.owner = 'owner-' || lpad(c.id::text, 6, '0') and t.weight > 120);
