-- Subqueries in the conditions of joins: a join's key is not read before they are computed.
create table a (x int, y int);
create table b (z int);
insert into a select g, g from generate_series(1, 200) g;
insert into b select 2 * g from generate_series(1, 200) g;
analyze a, b;
select count(*) from a join b on a.x + (select a.y) = b.z;
select count(*) from a join b on b.z = a.x + (select a.y) and (select b.z) > 100;
select count(*) from a join b on a.x + (select a.y) = b.z - (select 0);
select count(*) from a, b where a.x + (select a.y) = b.z and a.y = (select b.z / 2);
select count(*) from a left join b on a.x + (select a.y) = b.z;
select count(*) from a right join b on a.x + (select a.y) = b.z;
select count(*) from a full join b on a.x + (select a.y) = b.z;
select count(*) from a where a.x + (select a.y) in (select z from b);
select count(*) from a where a.x + (select a.y) not in (select z from b);
select count(*) from a where exists (select from b where a.x + (select a.y) = b.z);
select count(*) from a where (a.x + (select a.y), 1) in (select z, 1 from b);
select count(*) from a join b using (x) ;
select count(*) from a join a c on coalesce((select a.x), 0) = c.y join b on c.x + (select c.x) = b.z;
update a set y = 0 from b where a.x + (select a.y) = b.z and b.z <= 10;
select count(*) from a where y = 0;
delete from a using b where a.x + (select a.y + a.x - a.y) = b.z and b.z > 390;
select count(*) from a;

-- What is behind a condition that is NULL is not computed to know whether a subquery is wanted.
select case when b then case when 1 / x > 0 then coalesce(y, (select 1)) end end
from (values (null::bool, 0, null::int), (true, 1, null)) v (b, x, y);
select b and 1 / x > 0 and (select true) from (values (false, 0), (true, 1)) v (b, x);
select case when b then (case when 1 / x > 0 then (select x) else (select -x) end) else (select 7) end
from (values (null::bool, 0), (false, 0), (true, 1), (true, -1)) v (b, x);

-- One operand, many branches; some fail where they are reached.
select i, case i + 1 when 2 then (select 10 / (i - 1)) when 3 then (select 20 / i) when 1 then (select 5) end
from (values (0), (2), (3), (null)) v (i);
select i, case coalesce(i, 0) when 0 then (select -1) when 1 then coalesce((select null::int), (select 4)) end
from (values (0), (1), (null), (9)) v (i);
select i from (values (1), (2), (3), (null)) v (i) where (i, (select 1)) in ((1, 1), (2, 2), (3, 1), (4, 1), (5, 1), (6, 1));
select i from (values (1), (2), (3), (null)) v (i) where case when i > 1 then (i, (select 1)) not in ((1, 1), (2, 2), (3, 1), (4, 1), (5, 1), (6, 1)) end;
drop table a, b;
-- A subquery of the side that a loop runs again and again.
create table outer_side (id int primary key, a int);
create table inner_side (a int, b int, primary key (a, b));
create table refused (b int);
insert into outer_side select i, i % 40 from generate_series(1, 200) i;
insert into inner_side select i % 500, i from generate_series(1, 5000) i;
insert into refused select i * 7 from generate_series(1, 100) i;
analyze outer_side; analyze inner_side; analyze refused;
select count(*), sum(i.b) from outer_side o join inner_side i on i.a = o.a where o.id < 20 and i.b not in (select b from refused);
select count(*), sum(i.b) from outer_side o join inner_side i on i.a = o.a where o.id < 20 and (i.b in (select b from refused) or i.b < 100);
select count(*), sum(i.b) from outer_side o join inner_side i on i.a = o.a where o.id < 20 and i.b > (select max(b) from refused where b < o.id * 10);
select count(*), sum(i.b) from outer_side o join inner_side i on i.a = o.a where o.id < 20 and i.b > all (select b from refused where b < i.a * 10 + o.id);
select o.id, i.b from outer_side o left join inner_side i on i.a = o.a and i.b not in (select b from refused) where o.id < 4 order by 1, 2 limit 12;
select o.id from outer_side o where o.id < 5 and (select count(*) from inner_side i where i.a = o.a and i.b not in (select b from refused)) > 8 order by 1;
insert into refused values (null);
select count(*), sum(i.b) from outer_side o join inner_side i on i.a = o.a where o.id < 20 and i.b not in (select b from refused);
