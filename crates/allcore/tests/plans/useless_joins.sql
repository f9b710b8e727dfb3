-- Left joins that add neither rows nor columns, and DISTINCT over rows that differ anyway.
create table o (id int primary key, c int, town int, v int);
create table c (id int primary key, name text, region int, mail varchar(40) unique);
create table r (id int primary key, name text);
create table p (town int, year int, price int, primary key (town, year));
create table m (id int, mark text);
insert into o select i, i % 500, i % 9, i % 7 from generate_series(1, 2000) i;
insert into c select i, 'c' || i, i % 20, 'm' || i from generate_series(1, 500) i;
insert into r select i, 'r' || i from generate_series(1, 20) i;
insert into p select i % 9, 2000 + i / 9, i from generate_series(0, 80) i;
insert into m select i % 300, 'm' || i from generate_series(1, 600) i;
analyze;
-- By a primary key, a unique key and a composite key.
explain (costs off) select o.id from o left join c on c.id = o.c;
explain (costs off) select o.id from c right join o on c.id = o.c;
explain (costs off) select o.id from o left join c on c.mail = 'm' || o.c;
explain (costs off) select o.id from o left join c on c.id = o.c and c.name > 'c3' and o.v = 1;
explain (costs off) select o.id from o left join p on p.town = o.town and p.year = 2001;
explain (costs off) select count(*) from o left join c on c.id = o.c where o.v = 3;
-- More than one match, or a column that something else reads.
explain (costs off) select o.id from o left join m on m.id = o.id;
explain (costs off) select o.id from o left join p on p.town = o.town;
explain (costs off) select o.id from o left join c on c.id = o.c or c.id = 1;
explain (costs off) select o.id from o left join c on c.id = o.v + 0.5;
explain (costs off) select o.id from o left join c on c.id = o.c and random() < 0.5;
explain (costs off) select o.id from o left join c on c.id = o.c order by c.name;
explain (costs off) select o.id from o left join c on c.id = o.c where c.name is null;
explain (costs off) select o.id, (select r.name from r where r.id = c.region) from o left join c on c.id = o.c;
-- A row that is locked.
explain (costs off) select o.id from o left join c on c.id = o.c for update of o;
explain (costs off) select o.id from o left join c on c.id = o.c for update of c;
-- The last join frees the one before.
explain (costs off) select o.id from o left join c on c.id = o.c left join r on r.id = c.region;
explain (costs off) select o.id, r.name from o left join c on c.id = o.c left join r on r.id = c.region;
explain (costs off) select o.id, c.name from o left join c on c.id = o.c left join r on r.id = c.region;
explain (costs off) select o.id from o left join (c left join r on r.id = c.region) on c.id = o.c;
-- Below DISTINCT and GROUP BY, and in subqueries and WITH queries.
explain (costs off) select distinct o.town from o left join c on c.id = o.c;
explain (costs off) select o.town, sum(o.v) from o left join c on c.id = o.c group by o.town;
explain (costs off) select id from (select o.id, c.name from o left join c on c.id = o.c) q;
explain (costs off) with w as (select o.id, c.name from o left join c on c.id = o.c) select id from w;
explain (costs off) update m set mark = 'x' from o left join c on c.id = o.c where o.id = m.id and o.v = 3;
-- Subqueries whose rows differ.
explain (costs off) select o.id from o left join (select id, count(*) from m group by id) q on q.id = o.id;
explain (costs off) select o.id from o left join (select id, mark from m group by id, mark) q on q.id = o.id;
explain (costs off) select o.id from o left join (select distinct id from m) q on q.id = o.id;
explain (costs off) select o.id from o left join (select town from p where year = 2002) q on q.town = o.town;
explain (costs off) select o.id from o left join (select town from p where year > 2002) q on q.town = o.town;
-- DISTINCT.
explain (costs off) select distinct id, v from o;
explain (costs off) select distinct v, town from o;
explain (costs off) select distinct mail from c;
explain (costs off) select distinct id, count(*) from m group by id;
explain (costs off) select distinct mark, count(*) from m group by id, mark;
explain (costs off) select distinct id, generate_series(1, 2) from o;
explain (costs off) select distinct on (id) id, v from o order by id, v;
explain (costs off) select count(*) from (select distinct id, v from o) q where v = 3;
-- A key that goes.
prepare q as select o.id from o left join c on c.id = o.c where o.v = 3;
explain (costs off) execute q;
alter table c drop constraint c_pkey;
explain (costs off) execute q;
