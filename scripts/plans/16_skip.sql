-- class: second column of an index alone
-- data: shop
-- bar: 1.5

-- name: equality of the second column
select count(*), sum(c) from orders where b = 500;

-- name: range of the second column
select count(*), sum(c) from orders where b between 500 and 502;

-- name: list of the second column
select count(*) from orders where b in (5, 50, 500);

-- name: second column, index alone
select count(*) from orders where b = 77;

-- name: second column after few first values
select id, placed from orders where placed > '2024-11-24' and kind in (1, 2) order by placed desc, id limit 20;

-- name: city without its region
select count(*) from customers where city = 'city 17';

-- name: product without its date
select count(*) from items where product = 3000 and shipped > '2024-06-01';

-- name: second column of the primary key
select count(*) from items where line = 4;

-- name: tag without its owner
select count(*), sum(weight) from tags where tag = 'tag-123';

-- name: customer of visits behind the amount
select count(*), sum(amount) from visits where customer = 4321;

-- name: range of the first, equality of the second
select count(*) from orders where a > 50 and b = 500;

-- name: list of the first, range of the second
select count(*) from orders where a in (1, 50, 99) and b > 990;

-- name: second column joined
select count(*) from orders o join customers c on c.id = o.customer where o.b = 500 and c.status = 'active';

-- name: generic plan
-- plan: generic
-- parameter: 500
select count(*), sum(c) from orders where b = $1;

-- name: smallest of the second column
select min(b) from orders where b > 995;
