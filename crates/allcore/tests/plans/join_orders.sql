-- The order of joins, and the settings that keep the written one.
create table facts (id int primary key, a int, b int, c int, v int);
create table da (id int primary key, name text);
create table db (id int primary key, name text);
create table dc (id int primary key, parent int, name text);
create table dd (id int primary key, name text);
insert into facts select i, i % 100, i % 1000, i % 2000, i from generate_series(1, 20000) i;
insert into da select i, 'a' || i from generate_series(0, 99) i;
insert into db select i, 'b' || i % 10 from generate_series(0, 999) i;
insert into dc select i, i % 20, 'c' || i from generate_series(0, 1999) i;
insert into dd select i, 'd' || i from generate_series(0, 19) i;
create index facts_b on facts (b);
create index facts_c on facts (c);
analyze facts, da, db, dc, dd;
-- A star: the dimension that keeps the fewest rows comes first.
explain (costs off) select * from facts f join da on da.id = f.a join db on db.id = f.b join dc on dc.id = f.c where dc.name = 'c7';
explain (costs off) select * from facts f join da on da.id = f.a join db on db.id = f.b join dc on dc.id = f.c where db.id = 7;
explain (costs off) select * from facts f join da on da.id = f.a join db on db.id = f.b where da.name = 'a7' and db.name = 'b7';
explain (costs off) select count(*) from facts f, da, db, dc where da.id = f.a and db.id = f.b and dc.id = f.c;
-- A chain, from its selective end.
explain (costs off) select * from facts f join dc on dc.id = f.c join dd on dd.id = dc.parent where dd.name = 'd3';
explain (costs off) select * from dd join dc on dd.id = dc.parent join facts f on dc.id = f.c where f.id = 77;
explain (costs off) select count(*) from dd join dc on dd.id = dc.parent join facts f on dc.id = f.c;
-- A circle: two conditions close it.
explain (costs off) select * from facts f join dc on dc.id = f.c join da on da.id = f.a and da.id = dc.parent where dc.name = 'c7';
-- Equalities through a third table, without the third being read first.
explain (costs off) select * from da join facts f on f.a = da.id join dd on dd.id = da.id where dd.name = 'd3';
-- Two tables that nothing joins, beside a third.
explain (costs off) select count(*) from da, dd, facts f where f.a = da.id and f.b = dd.id and da.name = 'a7' and dd.name = 'd7';
explain (costs off) select count(*) from da cross join dd;
-- join_collapse_limit = 1 keeps the order of JOINs. Commas stay free.
set join_collapse_limit = 1;
explain (costs off) select * from facts f join da on da.id = f.a join db on db.id = f.b join dc on dc.id = f.c where dc.name = 'c7';
explain (costs off) select * from dc join (db join (da join facts f on da.id = f.a) on db.id = f.b) on dc.id = f.c where dc.name = 'c7';
explain (costs off) select * from (da cross join dd) join facts f on f.a = da.id and f.b = dd.id where f.id = 7;
explain (costs off) select count(*) from da, dd, facts f where f.a = da.id and f.b = dd.id and da.name = 'a7' and dd.name = 'd7';
explain (costs off) select * from facts f left join da on da.id = f.a join dc on dc.id = f.c where dc.name = 'c7';
explain (costs off) select * from facts f join da on da.id = f.a left join db on db.id = f.b join dc on dc.id = f.c where dc.name = 'c7';
explain (costs off) select * from (select f.*, da.name from facts f join da on da.id = f.a) s join dc on dc.id = s.c where dc.name = 'c7';
set join_collapse_limit = 2;
explain (costs off) select * from facts f join da on da.id = f.a join db on db.id = f.b join dc on dc.id = f.c where dc.name = 'c7';
set join_collapse_limit = 3;
explain (costs off, settings) select * from facts f join da on da.id = f.a join db on db.id = f.b join dc on dc.id = f.c where dc.name = 'c7';
reset join_collapse_limit;
set join_collapse_limit = 0;
show join_collapse_limit;
