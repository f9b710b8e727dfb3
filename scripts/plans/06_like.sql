-- class: LIKE with a prefix
-- data: shop
-- bar: 1.5

-- name: prefix
select id, code from orders where code like 'QB-%' order by id;

-- name: prefix, ordered by the column
select id, code from orders where code like 'AB%' order by code limit 20;

-- name: prefix, descending order
select id, code from orders where code like 'AB%' order by code desc limit 20;

-- name: prefix of one letter, counted
select count(*) from orders where code like 'Z%';

-- name: prefix with a pattern behind it
select count(*) from orders where code like 'AB-%99';

-- name: exact text
select id from orders where code like 'CU-000003';

-- name: no prefix
select count(*) from orders where code like '%-199999';

-- name: escaped sign
select count(*) from orders where code like 'A\_%';

-- name: prefix of a unique text
select id, email from customers where email like 'user77%' order by email;

-- name: prefix of the second column of a key
select owner, tag from tags where owner = 'owner-000001' and tag like 'tag-1%' order by tag;

-- name: prefix and another bound
select count(*) from orders where code like 'A%' and code > 'AY';

-- name: prefix as starts_with
select count(*) from orders where starts_with(code, 'QB-');

-- name: regular expression with a prefix
select count(*) from orders where code ~ '^QB-';

-- name: prefix without index
select count(*) from orders where memo like 'late paid%';

-- name: NOT LIKE
select count(*) from orders where code not like 'A%';

-- name: generic plan
-- plan: generic
-- parameter: QB-%
select count(*) from orders where code like $1;

-- name: custom plan
-- plan: custom
-- parameter: QB-%
select count(*) from orders where code like $1;

-- name: prefix joined
select c.id, count(*) from customers c join orders o on o.customer = c.id where c.email like 'user12%' group by c.id order by c.id;
