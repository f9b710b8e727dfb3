-- DELETE of many rows: index entries are removed after the rows, in the order of their keys.
create table item (id int primary key, code text unique, a int, b text, c numeric);
create index item_a on item (a);
create index item_b on item (b desc nulls first, a);
create unique index item_c on item (c);
insert into item select g, 'code ' || g, nullif(g % 13, 5), nullif(repeat('b', g % 7), ''), nullif(g, g / 11 * 11) from generate_series(1, 3000) g;
analyze item;
select count(*), count(a), count(b), count(c) from item;
begin;
delete from item where id % 3 = 0;
-- Each index agrees with the table.
select count(*), sum(id) from item;
select count(*), sum(a) from item where a >= 0;
select count(*), max(length(b)) from item where b >= 'b';
select count(*) from item where a = 4;
select code from item where code between 'code 10' and 'code 1010' order by code limit 5;
select c from item where c < 20 order by c;
-- The same keys again, in the same transaction.
insert into item select g, 'code ' || g, 1, 'again', g + 0.5 from generate_series(3, 3000, 3) g;
select count(*), sum(id) from item where a = 1;
insert into item values (1, 'code none', 0, '', 0);
rollback;
select count(*), sum(id), sum(a) from item;
select count(*) from item where a = 4;
-- Up to a savepoint.
begin;
delete from item where id <= 40;
savepoint s;
delete from item where id <= 1000;
select count(*) from item where a = 4;
rollback to s;
select count(*) from item where a = 4;
commit;
select count(*), min(id) from item where a is not null;
-- What is returned, and what fails in the middle.
with gone as (select 1) select count(*) from gone;
delete from item where id between 41 and 62 returning id, code, a;
delete from item where 100 / (id - 2000) > -100000;
select count(*), count(distinct code) from item;
-- Rows of other tables, and of the table itself.
create table parent (id int primary key, name text unique);
create table child (id int primary key, parent int references parent on delete cascade, note text unique);
create index child_parent on child (parent);
insert into parent select g, 'p' || g from generate_series(1, 200) g;
insert into child select g, g % 200 + 1, 'n' || g from generate_series(1, 1000) g;
delete from parent where id % 2 = 0;
select count(*), sum(parent), count(distinct note) from child;
select count(*) from child where parent = 51;
select count(*) from child where parent = 50;
delete from parent p using child c where c.parent = p.id and c.id < 300;
select count(*) from parent;
select count(*), min(id) from child;
insert into parent select g, 'p' || g from generate_series(2, 200, 2) g;
select count(*), count(distinct name) from parent where name > 'p';
-- All rows, twice, and into the empty table.
delete from item;
delete from item;
select count(*) from item where a >= 0;
insert into item select g, 'code ' || g, g, 'b', g from generate_series(1, 100) g;
select count(*), min(code), max(c) from item where a >= 0;
drop table item, child, parent;
