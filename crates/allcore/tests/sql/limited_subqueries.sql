-- Subqueries of the select list run above LIMIT, for the rows that pass it.
create table items (id int primary key, kind int, size int);
create table notes (id int primary key, item int, size int);
create index on notes (item);
insert into items select g, g % 7, g * 37 % 101 from generate_series(1, 500) g;
insert into notes select g, g % 400 + 1, case when g % 9 > 0 then g % 50 end from generate_series(1, 2000) g;
select id, (select count(*) from notes n where n.item = i.id) from items i order by size, id limit 4;
select id, (select count(*) from notes n where n.item = i.id and n.size < i.size) as c from items i
order by size desc, id offset 2 limit 3;
select id, (select sum(n.size) from notes n where n.item = i.id) as c from items i order by c desc nulls last, id limit 3;
select id, 1 + (select sum(n.size) from notes n where n.item = i.id) as c from items i order by size, id limit 3;
select (select sum(n.size) from notes n where n.item = i.id) as c, (select min(n.id) from notes n where n.item = i.id) as m
from items i order by m, id limit 3;
-- A subquery that fails for rows that the limit drops, without and with the limit.
select id, (select 1 / (i.size - 5) from notes n where n.item = i.id limit 1) from items i order by size, id limit 2;
select count(q) from (select (select 1 / (i.size - 5) from notes n where n.item = i.id limit 1) as q from items i) as s;
-- With DISTINCT, groups, windows, sets, ties and a limit that is a subquery or NULL.
select distinct kind, (select count(*) from notes n where n.item = i.kind) from items i order by kind limit 3;
select distinct on (kind) kind, id, (select count(*) from notes n where n.item = i.id) from items i order by kind, size, id limit 3;
select kind, count(*), (select count(*) from notes n where n.item = i.kind) from items i group by kind order by 2, 1 limit 3;
select kind, (select count(*) from notes n where n.item = max(i.id)) from items i group by kind order by 1 limit 3;
select id, row_number() over (order by size, id) as r, (select count(*) from notes n where n.item = i.id) from items i order by r limit 3;
select id, generate_series(1, 2), (select count(*) from notes n where n.item = i.id) from items i order by size, id limit 3;
select size, (select count(*) from notes n where n.item = i.size) from items i where id < 150 order by size fetch first 2 rows with ties;
select id, (select count(*) from notes n where n.item = i.id) from items i order by size, id limit (select 2);
select count(*) from (select id, (select count(*) from notes n where n.item = i.id) from items i order by size limit null) as s;
select id, (select count(*) from notes n where n.item = i.id) from items i order by size, id limit 0;
-- Inside other queries.
select * from (select id, (select count(*) from notes n where n.item = i.id) as c from items i order by size, id limit 5) as s
where c > 3 order by c, id;
select s.c, n.id from (select id, (select max(n.id) from notes n where n.item = i.id) as c from items i order by size, id limit 3) as s
join notes n on n.id = s.c order by 1;
select i.id, exists (select from notes n where n.item = i.id), i.id in (select item from notes) from items i order by size, id limit 3;
select array(select n.id from notes n where n.item = i.id order by 1) from items i order by size, id limit 2;
select (select (select count(*) from notes m where m.item = i.id + n.id) from notes n where n.item = i.id order by n.id limit 1)
from items i order by size, id limit 2;
-- Large limits keep the order, also by a hash.
select count(*), min(d) from (
  select id, lag(id) over () - id as d, c from (
    select -id as id, (select sum(n.size) from notes n where n.item = i.id) as c from items i order by id limit 450) as s) as t;
-- With locks and in a cursor.
begin;
select id, (select count(*) from notes n where n.item = i.id) from items i order by size, id limit 2 for update;
declare c cursor for select id, (select count(*) from notes n where n.item = i.id) from items i order by size, id limit 5;
fetch 2 from c;
fetch 9 from c;
commit;
prepare p (int) as select id, (select count(*) from notes n where n.item = i.id and n.size < $1) from items i order by size, id limit $1;
execute p (2);
execute p (null);
execute p (-1);
create table made as select id, (select count(*) from notes n where n.item = i.id) as c from items i order by size, id limit 3;
select * from made order by id;
drop table items, notes, made;
