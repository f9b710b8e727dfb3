-- Conditions on correlated subqueries wait for a join that leaves few rows.
create table owners (id int primary key, name text);
create table parts (id int primary key, owner int, size int);
create table moves (id int primary key, part int, size int);
create index on parts (owner);
create index on moves (part);
insert into owners select g, case when g % 100 = 7 then 'rare' else 'often' end from generate_series(1, 200) g;
insert into parts select g, g % 200 + 1, g % 50 from generate_series(1, 4000) g;
insert into moves select g, g % 4000 + 1, g % 70 from generate_series(1, 12000) g;
analyze;
explain (costs off) select count(*) from parts p join owners o on o.id = p.owner
where o.name = 'rare' and p.size > (select min(m.size) from moves m where m.part = p.id and m.size < p.size + 9);
-- They do not where the join keeps all rows.
explain (costs off) select count(*) from parts p join owners o on o.id = p.owner
where p.size > (select min(m.size) from moves m where m.part = p.id and m.size < p.size + 9);
-- Nor in the condition of an outer join.
explain (costs off) select count(*) from owners o left join parts p on o.id = p.owner
    and p.size > (select min(m.size) from moves m where m.part = p.id and m.size < p.size + 9)
where o.name = 'rare';
-- In the select list they run above LIMIT, unless a sort key or DISTINCT reads their results.
explain (costs off) select p.id, (select min(m.size) from moves m where m.part = p.id and m.size < p.size)
from parts p order by p.size limit 3;
explain (costs off) select p.id, (select min(m.size) from moves m where m.part = p.id and m.size < p.size) as least
from parts p order by least limit 3;
