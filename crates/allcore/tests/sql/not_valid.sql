-- Constraints added NOT VALID: new rows are held to them, those that are there only once they are validated.
create table t (a int, b int);
insert into t values (-1, 0), (1, 0);
alter table t add constraint positive check (a > 0);
alter table t add constraint positive check (a > 0) not valid;
insert into t values (-2, 0);
update t set b = 1 where a = -1;
update t set a = 2 where a = 1;
\d t
select conname, contype, convalidated from pg_constraint where conrelid = 't'::regclass;
select pg_get_constraintdef(oid) from pg_constraint where conname = 'positive';
alter table t validate constraint positive;
alter table t alter column b type bigint;
select a, b from t order by a;
select conname, convalidated from pg_constraint where conrelid = 't'::regclass;
begin;
delete from t where a < 0;
alter table t validate constraint positive;
select convalidated from pg_constraint where conname = 'positive';
rollback;
select convalidated from pg_constraint where conname = 'positive';
update t set a = 5 where a < 0;
alter table t validate constraint positive;
alter table t validate constraint positive;
select convalidated from pg_constraint where conname = 'positive';
\d t
alter table t validate constraint nothere;
create table p (id int primary key);
insert into p values (1), (2);
alter table p validate constraint p_pkey;
create table c (id int primary key, p int);
insert into c values (1, 1), (2, 9), (3, null);
\set VERBOSITY sqlstate
alter table c add constraint c_p foreign key (p) references p;
\set VERBOSITY verbose
alter table c add constraint c_p foreign key (p) references p on delete cascade not valid;
\d c
select conname, convalidated from pg_constraint where conname = 'c_p';
insert into c values (4, 8);
insert into c values (4, 2);
update c set p = 7 where id = 1;
delete from p where id = 2;
select id, p from c order by id;
\set VERBOSITY sqlstate
alter table c validate constraint c_p;
\set VERBOSITY verbose
delete from c where id = 2;
alter table c validate constraint c_p;
\d c
select conname, convalidated from pg_constraint where conname = 'c_p';
create table self (id int primary key, up int);
insert into self values (1, 5);
alter table self add foreign key (up) references self not valid;
\set VERBOSITY sqlstate
alter table self validate constraint self_up_fkey;
\set VERBOSITY verbose
insert into self values (5, 1);
alter table self validate constraint self_up_fkey;
-- A new table has no rows that could be left out.
create table n (a int, check (a > 0) not valid);
select conname, convalidated from pg_constraint where conrelid = 'n'::regclass;
drop table n, self, c, p, t;
