-- INCLUDE: columns that an index names beside its keys.
create table t (a int, b int, "c d" text, e int, f int);
insert into t select g, least(g, 99), 'x' || g, g % 3, -g from generate_series(1, 100) g;
create unique index u on t (a) include (b, "c d");
create index on t (b desc) include (a);
create index on t (b, b) include (b, e);
create unique index on t (b) include (a);
create unique index on t (a) include (b);
select indexrelid::regclass, indnatts, indnkeyatts, indisunique, indkey, indoption, indcollation from pg_index where indrelid = 't'::regclass order by 1;
select attname, attnum, atttypid::regtype from pg_attribute where attrelid = 'u'::regclass order by attnum;
select n, pg_get_indexdef('u'::regclass, n, true) from generate_series(-1, 5) n;
select indexdef from pg_indexes where tablename = 't' order by indexname;
-- It is the keys that are unique.
insert into t values (1, 77, 'other');
insert into t (a, b) values (1, 1) on conflict (a) do update set b = 1000 returning a, b;
insert into t (a, b) values (1, 1) on conflict (a, b) do nothing;
select a, "c d" from t where b = 1000;
select a, b from t where a = 7;
-- Constraints.
alter table t add primary key (f) include (a, b);
alter table t add unique (e, a) include ("c d", e, "c d");
alter table t add constraint named unique nulls not distinct (a) include (b);
select conname, contype, conkey, pg_get_constraintdef(oid) from pg_constraint where conrelid = 't'::regclass and contype in ('p', 'u') order by 1;
select constraint_name, column_name, ordinal_position from information_schema.key_column_usage where table_name = 't' order by 1, 3;
select attname, attnotnull from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum;
insert into t (a, f) values (1000, -1);
create table child (r int references t (a), s int references t);
insert into child values (1, -1);
insert into child values (1, 1);
create table made (a int primary key, b int, c int, unique (b) include (c, a), constraint two unique (a, b) include (c));
\d made
create table made2 (a int, b int, primary key (a) include (b));
\d made2
insert into made2 values (1, null), (2, null);
insert into made2 values (1, 3);
update made2 set b = 5 where a = 1;
update made2 set a = 2 where a = 1;
select * from made2 order by a;
create table refused (a int, b int, primary key (a) include (ctid));
-- What cannot be included.
create index on t (a) include (b desc);
create index on t (a) include (b asc);
create index on t (a) include (b nulls first);
create index on t (a) include (b nulls last);
create index on t (a) include ("c d" collate "C");
create index on t (a) include (b int4_ops);
create index on t (a) include ((b + 1));
create index on t (a) include (abs(b));
create index on t (a) include (nope);
create index on t (a) include (ctid);
create index on t include (a);
create index on t (a) include ();
alter table t add unique (a) include (nope);
alter table t add unique (a) include (tableoid);
-- Columns that change, and those that go.
drop table child;
alter table t rename column b to bb;
alter table t alter column "c d" type varchar(20);
alter table t alter column bb type bigint;
\d t
create table child (r int references t (a), s int references t);
\set VERBOSITY sqlstate
set client_min_messages = warning;
alter table t drop column bb;
alter table t drop column bb cascade;
\d t
\d child
drop table child;
reindex table t;
alter table t drop column "c d";
\d t
alter table made drop column c;
\d made
alter table made2 alter column b drop not null;
alter table made2 drop constraint made2_pkey;
\d made2
drop table t, made, made2;
-- A key that only its INCLUDE leads to.
create table own (a int unique, b int references own (a), c int);
alter table own drop column a;
alter table own add constraint k unique (c) include (a);
alter table own drop column a cascade;
\d own
drop table own;
create table refused (a int primary key, b int, unique (b) include (z));
create table refused (a int, b int, primary key (a) include (z));
create table refused (a int, b int, unique (a, a) include (b));
create table own (a int unique, b int references own (a));
alter table own drop column b;
\d own
create table pair (a int, b int, unique (a, b), foreign key (b, a) references pair (a, b));
alter table pair drop column a;
\d pair
drop table own, pair;
create table own (a int unique, b int references own (a));
alter table own drop constraint own_a_key;
alter table own drop constraint own_a_key cascade;
\d own
drop table own;
create table own (a int unique, b int references own (a));
drop index own_a_key cascade;
alter table own drop a cascade;
\d own
drop table own;
