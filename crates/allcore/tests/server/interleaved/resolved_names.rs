//! After a wait for a lock, a command acts on the object that has its name then. It keeps no lock
//! on the object that had the name before.

use super::script::{Stage, sections};

const SCRIPTS: &str = "
## truncate swap
s: create table r1 (a int); create table r2 (a int); insert into r1 values (1);
  insert into r2 values (2)
a: begin; alter table r1 rename to rt; alter table r2 rename to r1; alter table rt rename to r2
b: truncate r2 => waits
a: commit
b => count 0
s: select (select array_agg(a) from r1), (select array_agg(a) from r2) => ({2}, null)

## truncate made anew
s: create table t (a int); insert into t values (1)
a: begin; drop table t; create table t (b int); insert into t values (2)
b: truncate t => waits
a: commit
b => count 0
s: select * from t => no rows

## truncate cascade
s: create table p (a int primary key); create table c (a int references p);
  insert into p values (1); insert into c values (1)
a: begin; alter table p rename to p0; create table p (a int primary key);
  create table c2 (a int references p); insert into p values (1); insert into c2 values (1)
b: truncate p cascade => waits
d: truncate p => waits
a: commit
b => count 0
d => error 0A000
s: select (select count(*) from p), (select count(*) from c), (select count(*) from c2), (select count(*) from p0) => (0, 1, 0, 1)

## truncate gone
s: create table t (a int)
a: begin; drop table t
b: truncate t => waits
a: commit
b => error 42P01

## lock swap
s: create table r1 (a int); create table r2 (a int)
a: begin; alter table r1 rename to rt; alter table r2 rename to r1; alter table rt rename to r2
b: begin; lock table r2 => waits
a: commit
b => count 0
c: insert into r1 values (1) => count 1
d: insert into r2 values (1) => waits
b: commit
d => count 1

## lock anew
s: create table t (a int)
a: begin; drop table t; create table t (b int)
b: begin; lock table t => waits
a: commit
b => count 0
c: insert into t values (1) => waits
b: commit
c => count 1

## lock nowait, several
s: create table r1 (a int); create table r2 (a int)
a: begin; lock table r2
b: begin; lock table r1, r2 nowait => error 55P03
b: rollback
b: begin; lock table r1, nosuch nowait => error 42P01

## lock missing among several waits first
s: create table r1 (a int)
a: begin; lock table r1
b: begin; lock table r1, nosuch => waits
a: commit
b => error 42P01

## references
s: create table p (a int primary key); create table q (a int primary key);
  insert into p values (1); insert into q values (2); create table c (a int);
  insert into c values (2)
a: begin; alter table p rename to pt; alter table q rename to p; alter table pt rename to q
b: alter table c add foreign key (a) references p => waits
a: commit
b => count 0
s: insert into c values (1) => error 23503
s: insert into c values (2)

## references create table
s: create table p (a int primary key); create table q (a int primary key);
  insert into p values (1); insert into q values (2)
a: begin; alter table p rename to pt; alter table q rename to p; alter table pt rename to q
b: create table c (a int references p) => waits
a: commit
b => count 0
s: insert into c values (1) => error 23503
s: insert into c values (2)

## reindex
s: create table t (a int primary key, b int); create index i on t (b)
a: begin; drop index i; create index i on t (a)
b: reindex index i => waits
a: commit
b => count 0

## reindex of swapped index
s: create table t (a int primary key, b int); create index i on t (b); create table u (a int, b int)
a: begin; drop index i; create index i on u (a)
b: reindex index i => waits
a: commit
b => count 0

## reindex table
s: create table t (a int primary key, b int)
a: begin; drop table t; create table t (a int primary key)
b: reindex table t => waits
a: commit
b => count 0

## vacuum gone
s: create table t (a int primary key, b int)
a: begin; drop table t
b: vacuum t => waits
c: analyze t => waits
a: commit
b => error 42P01
c => error 42P01

## drop table anew
s: create table t (a int primary key, b int)
a: begin; drop table t; create table t (c int)
b: drop table t => waits
a: commit
b => count 0
s: select * from t => error 42P01

## drop swapped
s: create table r1 (a int); create table r2 (b int)
a: begin; alter table r1 rename to rt; alter table r2 rename to r1; alter table rt rename to r2
b: drop table r2 => waits
a: commit
b => count 0
s: select * from r1 => no rows

## drop sequence anew
s: create sequence q
a: begin; drop sequence q; create sequence q start 7
b: drop sequence q => waits
a: commit
b => count 0
s: select nextval('q') => error 42P01

## drop sequence swapped
s: create sequence q1 start 1; create sequence q2 start 2
a: begin; alter sequence q1 rename to qt; alter sequence q2 rename to q1;
  alter sequence qt rename to q2
b: drop sequence q2 => waits
a: commit
b => count 0
s: select nextval('q1') => (2)

## drop index anew
s: create table t (a int primary key, b int); create index i on t (b)
a: begin; drop index i; create index i on t (a)
b: drop index i => waits
a: commit
b => count 0
s: select indexname from pg_indexes where schemaname = current_schema => (t_pkey)

## drop index on another table
s: create table t (a int primary key, b int); create index i on t (b); create table u (a int)
a: begin; drop index i; create index i on u (a)
b: drop index i => waits
a: commit
b => count 0
s: select indexname from pg_indexes where schemaname = current_schema => (t_pkey)

## drop index: became a table
s: create table t (a int primary key, b int); create index i on t (b); create table u (a int)
a: begin; drop index i; create table i (a int)
b: drop index i => waits
a: commit
b => error 42809

## drop if exists gone
s: create table t (a int); create sequence q; create index i on t (a)
a: begin; drop table t; drop sequence q
b: drop table if exists t => waits
c: drop sequence if exists q => waits
d: drop index if exists i => waits
a: commit
b => count 0
c => count 0
d => count 0

## drop gone
s: create table t (a int); create sequence q; create index i on t (a)
a: begin; drop table t; drop sequence q
b: drop table t => waits
c: drop sequence q => waits
d: drop index i => waits
a: commit
b => error 42P01
c => error 42P01
d => error 42704

## create index anew
s: create table t (a int)
a: begin; drop table t; create table t (b int)
b: create index i on t (b) => waits
a: commit
b => count 0

## alter sequence
s: create sequence q1 start 1; create sequence q2 start 2
a: begin; alter sequence q1 rename to qt; alter sequence q2 rename to q1;
  alter sequence qt rename to q2
b: alter sequence q2 restart 50 => waits
a: commit
b => count 0
s: select nextval('q1'), nextval('q2') => (2, 50)

## alter sequence rename
s: create sequence q1 start 1; create sequence q2 start 2
a: begin; alter sequence q1 rename to qt; alter sequence q2 rename to q1;
  alter sequence qt rename to q2
b: alter sequence q2 rename to q3 => waits
a: commit
b => count 0
s: select nextval('q1'), nextval('q3') => (2, 1)

## nextval, setval
s: create sequence q1 start 1; create sequence q2 start 2
a: begin; alter sequence q1 rename to qt; alter sequence q2 rename to q1;
  alter sequence qt rename to q2
b: select nextval('q2') => waits
a: commit
b => (2)
s: select nextval('q1'), nextval('q2') => (3, 1)

## owned by
s: create table t (a int)
a: begin; alter table t rename to u; create table t (b int)
b: create sequence q owned by t.b => waits
a: commit
b => count 0
s: drop table t
s: select nextval('q') => error 42P01

## owned by, alter
s: create table t (a int); create sequence q
a: begin; alter table t rename to u; create table t (b int)
b: alter sequence q owned by t.b => waits
a: commit
b => count 0
s: drop table t
s: select nextval('q') => error 42P01

## alter index rename
s: create table t (a int, b int); create index i on t (a); create index j on t (b)
a: begin; drop index i; create index i on t (b)
b: alter index i rename to k => waits
a: commit
b => count 0
s: select indexname from pg_indexes where schemaname = current_schema order by 1 => (j) (k)

## TRUNCATE, INSERT: the table becomes a sequence
s: create table t (a int)
a: begin; drop table t; create sequence t
b: truncate t => waits
d: insert into t values (1) => waits
e: begin
e: lock table t => waits
a: commit
b => error 42809
d => error 42809
e => error 42809
e: rollback

## COPY
s: create table t (a int)
a: begin; drop table t; create table t (b int)
b: copy t (a) to stdout => waits
a: commit
b => error 42703

## VACUUM and ANALYZE of a table made anew
s: create table t (a int)
a: begin; drop table t; create table t (b int)
b: vacuum t => waits
c: analyze t (b) => waits
d: analyze t (a) => waits
a: commit
b => count 0
c => count 0
d => error 42703

## a schema made anew
s: create schema resolved_schema
a: begin; drop schema resolved_schema; create schema resolved_schema
a: create table resolved_schema.u (a int)
b: drop schema resolved_schema => waits
a: commit
b => error 2BP01
a: begin; drop schema resolved_schema cascade; create schema resolved_schema
b: create table resolved_schema.t (a int) => waits
a: commit
b => count 0
s: drop table resolved_schema.t
s: drop schema resolved_schema

## REFERENCES: the table made anew
s: create table p (a int primary key)
a: begin; drop table p; create table p (b int primary key); insert into p values (3)
b: create table c (a int references p (b)) => waits
a: commit
b => count 0
s: insert into c values (3)
s: insert into c values (4) => error 23503

## a stronger lock goes with its savepoint
s: create table t (a int)
b: begin; select * from t; savepoint s; lock table t
b: rollback to s
c: begin; insert into t values (1)
c: commit
c: begin
c: lock table t nowait => error 55P03
c: rollback
b: commit

## a read-only transaction refuses before it waits
s: create table t (a int)
a: begin; lock table t
b: begin read only
b: alter table t add b int => error 25006
b: rollback
b: begin read only
b: truncate t => error 25006
b: rollback
b: begin read only
b: create index on t (a) => error 25006
b: rollback
a: commit
";

#[test]
fn a_command_acts_on_what_has_the_name_after_the_wait() {
    Stage::open().play(&sections(SCRIPTS));
}
