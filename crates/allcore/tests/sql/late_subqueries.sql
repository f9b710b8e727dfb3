-- Conditions on correlated subqueries, in joins that leave few rows.
create table owners (id int primary key, name text);
create table parts (id int primary key, owner int, size int);
create table moves (id int primary key, part int, size int);
create index on parts (owner);
create index on moves (part);
insert into owners select g, case when g % 100 = 7 then 'rare' else 'often' end from generate_series(1, 200) g;
insert into parts select g, g % 200 + 1, g % 50 from generate_series(1, 4000) g;
insert into moves select g, g % 4000 + 1, case when g % 11 > 0 then g % 70 end from generate_series(1, 12000) g;
analyze;
select count(*), sum(p.id) from parts p join owners o on o.id = p.owner
where o.name = 'rare' and p.size > (select min(m.size) from moves m where m.part = p.id and m.size < p.size + 9);
select count(*), sum(p.id) from parts p join owners o on o.id = p.owner
where o.name = 'rare' and not exists (select from moves m where m.part = p.id and m.size < p.size);
select count(*), sum(p.id) from parts p join owners o on o.id = p.owner
where o.name = 'rare' and (exists (select from moves m where m.part = p.id and m.size < p.size) or p.size = 3);
-- Two conditions read one subquery, and one condition two.
select count(*), sum(p.id) from
  (select p.*, (select min(m.size) from moves m where m.part = p.id and m.size < p.size + 9) as least from parts p) p
  join owners o on o.id = p.owner where o.name = 'rare' and p.least > 2 and p.least < 40;
select count(*), sum(p.id) from parts p join owners o on o.id = p.owner
where o.name = 'rare' and (select min(m.size) from moves m where m.part = p.id and m.size > p.size)
    > (select max(m.size) from moves m where m.part = p.id and m.size < p.size);
-- Under an outer join, in its condition and above it.
select count(*), count(p.id) from owners o left join parts p on o.id = p.owner
    and p.size > (select min(m.size) from moves m where m.part = p.id and m.size < p.size + 9)
where o.name = 'rare';
select count(*), count(p.id) from owners o left join parts p on o.id = p.owner
where o.name = 'rare' and coalesce(p.size, 0) > (select min(m.size) from moves m where m.part = p.id and m.size < 9);
-- The subquery fails for rows that the join drops.
select count(*) from parts p join owners o on o.id = p.owner
where o.name = 'rare' and (select 1 / (p.owner % 100 - 8) + min(m.size) from moves m where m.part = p.id and m.size > p.size) > 0;
-- With changes.
update parts p set size = -1 from owners o
where o.id = p.owner and o.name = 'rare'
    and p.size > (select min(m.size) from moves m where m.part = p.id and m.size < p.size + 9);
select count(*) from parts where size = -1;
delete from parts p using owners o
where o.id = p.owner and o.name = 'rare'
    and p.size < (select min(m.size) from moves m where m.part = p.id and m.size > p.size);
select count(*) from parts;
prepare late (text, int) as select count(*), sum(p.id) from parts p join owners o on o.id = p.owner
where o.name = $1 and p.size > (select min(m.size) from moves m where m.part = p.id and m.size < p.size + $2);
execute late ('rare', 5);
execute late ('often', 5);
execute late (null, 5);
drop table owners, parts, moves;
