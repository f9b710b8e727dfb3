-- class: outer join below a selective inner join
-- data: shop
-- bar: 1.5

-- name: order with its customer, parent and items
select o.id, c.name, p.name, i.line from orders o left join customers c on c.id = o.customer
left join customers p on p.id = c.parent join items i on i.order_id = o.id where o.id = 4242 order by i.line;

-- name: filter on the table joined last
select o.id, c.name from orders o left join customers c on c.id = o.customer join items i on i.order_id = o.id
where i.order_id = 777 order by o.id, i.line;

-- name: inner join on a rare product
select count(*), count(c.note) from orders o left join customers c on c.id = o.customer join items i on i.order_id = o.id
join products p on p.id = i.product where p.label = 'product G3984';

-- name: outer join of a filtered table
select o.id, p.label from orders o join customers c on c.id = o.customer left join products p on p.id = o.d
where c.email = 'user7919@example.org' order by o.id;

-- name: condition on the outer joined row
select count(*) from orders o left join customers c on c.id = o.customer where c.email = 'user7919@example.org';

-- name: two outer joins then a selective inner one
select count(*), sum(o.total) from items i left join orders o on o.id = i.order_id left join customers c on c.id = o.customer
join products p on p.id = i.product where p.id = 3900;

-- name: outer join with IS NULL
select count(*) from customers c left join orders o on o.customer = c.id where o.id is null;

-- name: outer join with a condition in ON
select c.id, o.id from customers c left join orders o on o.customer = c.id and o.status = 'failed'
where c.id between 1 and 40 order by c.id, o.id;

-- name: outer join ordered with LIMIT
select c.id, c.name, p.name from customers c left join customers p on p.id = c.parent order by c.id limit 20;

-- name: outer join of an aggregate
select c.id, coalesce(s.number, 0) from customers c
left join (select customer, count(*) as number from orders group by customer) s on s.customer = c.id
where c.id between 500 and 520 order by c.id;

-- name: outer join of an empty table
select count(*), count(n.b) from orders o left join nothing n on n.id = o.kind where o.customer = 708;

-- name: right join
select count(*) from items i right join orders o on o.id = i.order_id where o.status = 'failed';

-- name: full join of filtered sides
select count(*), count(a.id), count(b.id) from (select * from customers where id <= 2000) a
full join (select * from customers where parent between 1000 and 3000) b on a.id = b.parent;

-- name: chain of parents
select count(p3.id) from customers c left join customers p1 on p1.id = c.parent left join customers p2 on p2.id = p1.parent
left join customers p3 on p3.id = p2.parent where c.status = 'banned';

-- name: parentheses around the outer join
select count(*) from products p join (items i left join orders o on o.id = i.order_id) on i.product = p.id where p.id = 3950;

-- name: generic plan
-- plan: generic
-- parameter: 4242
select o.id, c.name, i.line from orders o left join customers c on c.id = o.customer
join items i on i.order_id = o.id where o.id = $1 order by i.line;
