-- Unique keys that foreign keys are bound to: they go with CASCADE only, and the foreign keys with them.
set client_min_messages = warning;
create table p (i int, j int, k int);
create unique index p_i on p (i);
create table c (i int references p (i));
drop index p_i;
insert into p values (1, 1, 1);
insert into c values (1);
drop index p_i cascade;
insert into c values (2);
select conname from pg_constraint where conrelid = 'c'::regclass order by 1;
drop table c;

-- Of two keys over the same columns the older one is used.
create unique index p_older on p (i, j);
create unique index p_newer on p (j, i);
create table c (i int, j int, foreign key (i, j) references p (i, j));
drop index p_newer;
drop index p_older;
create unique index p_newer on p (j, i);
drop index p_older;
drop index p_newer, p_older cascade;
select conname from pg_constraint where conrelid = 'c'::regclass order by 1;
drop table c;

-- Constraints.
alter table p add constraint p_key primary key (i), add constraint p_u unique (k);
create table c (i int references p, k int references p (k));
alter table p drop constraint p_key;
alter table p drop constraint p_u;
alter table p drop column k;
alter table p drop column i;
alter table p drop column j;
drop index p_key;
drop index p_u;
alter table p drop constraint p_u cascade;
select conname from pg_constraint where conrelid = 'c'::regclass and contype = 'f' order by 1;
alter table p drop column i cascade;
select conname from pg_constraint where conrelid = 'c'::regclass and contype = 'f' order by 1;
drop table c, p;

-- A table that references itself.
create table t (i int constraint t_key primary key, up int constraint t_up references t);
alter table t drop constraint t_key;
alter table t drop constraint t_up, drop constraint t_key;
select conname from pg_constraint where conrelid = 't'::regclass and contype <> 'n' order by 1;
alter table t add constraint t_key primary key (i), add constraint t_up foreign key (up) references t;
alter table t drop constraint t_key cascade;
select conname from pg_constraint where conrelid = 't'::regclass and contype <> 'n' order by 1;
create unique index t_i on t (i);
alter table t add constraint t_up foreign key (up) references t (i);
drop index t_i;
alter table t drop column i;
alter table t drop column up;
drop index t_i;
drop table t;

-- A unique index that is older than the primary key.
create table p (a int not null);
create unique index p_old on p (a);
alter table p add constraint p_new primary key (a);
create table c (a int constraint c_a references p);
select conindid::regclass from pg_constraint where conname = 'c_a';
alter table p drop constraint p_new;
drop index p_old cascade;
insert into c values (77);
alter table p drop constraint p_new cascade;
insert into c values (77);
drop table c, p;

-- Columns named in another order than the key's.
create table p (a int, b int, primary key (a, b));
create table c (a int, b int, constraint c_ba foreign key (b, a) references p (b, a));
select conindid::regclass from pg_constraint where conname = 'c_ba';
drop table c, p;
