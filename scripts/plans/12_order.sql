-- class: join order with a selective filter that has no index
-- data: shop
-- bar: 1.5

-- name: rare log level joined with customers
select count(*), sum(c.score) from customers c join logs l on l.target = c.id where l.level = 'fatal';

-- name: one customer by name
select count(*), sum(o.total) from orders o join customers c on c.id = o.customer where c.name = 'customer 2801';

-- name: one product by label
select count(*), sum(i.price) from items i join products p on p.id = i.product where p.label = 'product G3984';

-- name: product by label, back to customers
select count(distinct c.id) from items i join products p on p.id = i.product join orders o on o.id = i.order_id
join customers c on c.id = o.customer where p.label = 'product G3984';

-- name: banned customers' items
select count(*), sum(i.quantity) from customers c join orders o on o.customer = c.id join items i on i.order_id = o.id
where c.status = 'banned';

-- name: correlated columns
select count(*) from customers c join orders o on o.customer = c.id where c.zip = 405 and c.city = 'city 5' and c.region = 'coast';

-- name: correlated columns that exclude each other
select count(*) from customers c join orders o on o.customer = c.id where c.zip = 405 and c.city = 'city 6';

-- name: filters on both ends of a chain
select count(*) from customers c join orders o on o.customer = c.id join items i on i.order_id = o.id join products p on p.id = i.product
where c.status = 'banned' and p.discontinued;

-- name: discontinued products
select p.id, count(*) from products p join items i on i.product = p.id where p.discontinued group by p.id order by p.id;

-- name: expression as a filter
select count(*) from orders o join customers c on c.id = o.customer where upper(c.name) = 'CUSTOMER 2801';

-- name: two selective ends, large middle
select count(*) from customers c join orders o on o.customer = c.id join logs l on l.id = o.c
where c.status = 'banned' and l.level = 'warn';

-- name: join over a column without index
select count(*) from logs a join logs b on a.target = b.source where a.level = 'fatal' and b.level = 'warn';

-- name: inequality join of small sides
select count(*) from products p join products q on p.price < q.price where p.category = 39 and q.discontinued;

-- name: range join
select count(*) from customers c join orders o on o.placed between c.joined and c.joined + interval '1 hour' where c.status = 'banned';

-- name: cross product of one row
select count(*) from orders o, (select max(id) as top from customers) m where o.customer = m.top;

-- name: five tables from one log row
select count(*) from logs l join customers c on c.id = l.source join orders o on o.customer = c.id join items i on i.order_id = o.id
join products p on p.id = i.product where l.payload = 'message 686 of 3' and p.category < 10;

-- name: generic plan
-- plan: generic
-- parameter: customer 2801
select count(*), sum(o.total) from orders o join customers c on c.id = o.customer where c.name = $1;

-- name: ordered by the large table with LIMIT
select o.id, o.placed from orders o join customers c on c.id = o.customer where c.status = 'banned' order by o.placed desc, o.id limit 10;
