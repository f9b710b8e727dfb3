//! A query is bound before it waits for its tables' locks. It is bound anew if the names stand for
//! other tables after the wait. The same goes for commands around queries and for those that are
//! bound to a table's columns.

use super::script::{Stage, sections};

const SCRIPTS: &str = "
## insert column list into table made anew
s: create table t (a int)
a: begin; drop table t; create table t (b int)
b: insert into t (b) values (1) => waits
c: insert into t (a) values (1) => waits
d: insert into t values (2) => waits
a: commit
b => count 1
c => error 42703
d => count 1
s: select * from t order by 1 => (1) (2)

## added column
s: create table t (a int); insert into t values (1)
a: begin; alter table t add b int default 3
b: select b from t where b = 3 => waits
c: insert into t (b) values (4) => waits
d: update t set b = 9 where nosuch = 1 => waits
a: commit
b => (3)
c => count 1
d => error 42703
s: select * from t order by 2 => (1, 3) (null, 4)

## stale lock is released: alter waits, insert by third
s: create table r1 (a int); create table r2 (a int)
a: begin; alter table r1 rename to rt; alter table r2 rename to r1; alter table rt rename to r2
b: begin; alter table r2 add column z int => waits
a: commit
b => count 0
c: insert into r1 values (1) => count 1
c: select * from r1 => (1)
b: insert into r1 values (2) => count 1
b: commit

## stale lock held before stays
s: create table r1 (a int); create table r2 (a int)
b: begin; select * from r2 => no rows
a: begin; lock table r1; insert into r1 values (1)
c: alter table r2 rename to r3 => waits
b: select * from r1 => waits
a: commit
b => (1)
b: commit
c => count 0

## repeatable read
s: create table t (a int); insert into t values (1)
b: begin isolation level repeatable read; select 1 => (1)
a: begin; drop table t; create table t (b int); insert into t values (5)
b: truncate t => waits
a: commit
b => count 0
b: select * from t => no rows
b: commit

## repeatable read insert
s: create table t (a int)
b: begin isolation level repeatable read; select 1 => (1)
a: begin; drop table t; create table t (b int)
b: insert into t (b) values (4) => waits
a: commit
b => count 1
b: select * from t => (4)
b: commit
s: select * from t => (4)

## savepoint rolled back
s: create table r1 (a int); create table r2 (a int)
a: begin; alter table r1 rename to rt; alter table r2 rename to r1; alter table rt rename to r2
b: begin; savepoint s; truncate r2 => waits
a: commit
b => count 0
b: rollback to s
c: insert into r1 values (1); insert into r2 values (1) => count 1
b: commit

## savepoint of the renamer rolled back
s: create table r1 (a int); create table r2 (a int); insert into r2 values (2)
a: begin; savepoint s; alter table r1 rename to rt; alter table r2 rename to r1;
  alter table rt rename to r2
b: truncate r2 => waits
a: rollback to s
b => count 0
s: select * from r2 => no rows
a: commit

## PREPARE waits
s: create table t (a int)
a: begin; drop table t; create table t (b int)
b: prepare q as select b from t => waits
c: prepare q as select a from t => waits
d: prepare q as select * from nosuch, t => error 42P01
a: commit
b => count 0
c => error 42703
b: execute q => no rows

## ctas, explain, declare
s: create table t (a int)
a: begin; drop table t; create table t (b int); insert into t values (3)
b: create table t2 as select b from t => waits
c: explain (costs off) select b from t => waits
d: begin; declare c cursor for select b from t => waits
e: explain (costs off) insert into t (b) values (1) => waits
f: create table t3 as select a from t => waits
a: commit
b => count 1
c => (Seq Scan on t)
d => count 0
e => (Insert on t) (  ->  Result)
f => error 42703
d: fetch all from c => (3)
s: select * from t2 => (3)

## ctas too many names
s: create table t (a int)
a: begin; lock table t
b: create table t2 (x, y) as select * from t => waits
a: commit
b => error 42601

## alter table bound to a definition
s: create table t (a int)
a: begin; drop table t; create table t (b text)
b: alter table t alter b set default 'x' => waits
c: alter table t add check (b <> 'y') => waits
d: create index on t (b) => waits
e: alter table t add c int check (b <> 'y') => waits
f: alter table t add constraint k check (nosuch > 1) => waits
a: commit
b => count 0
c => count 0
d => count 0
e => count 0
f => error 42703
s: insert into t default values; select * from t => (x, null)

## alter type under a prepared default
s: create table t (a int)
a: begin; alter table t alter a type text
b: alter table t alter a set default 'x' => waits
a: commit
b => count 0
s: insert into t default values; select * from t => (x)

## several statements in one text
s: create table t (a int); create table u (a int)
a: begin; drop table t; create table t (b int)
b: insert into u values (1); insert into t (b) values (2); select b from t => waits
a: commit
b => (2)

## deadlock-free by release: b re-resolves, c holds new table
s: create table r1 (a int); create table r2 (a int)
a: begin; alter table r1 rename to rt; alter table r2 rename to r1; alter table rt rename to r2
b: begin; truncate r2 => waits
c: begin; insert into r1 values (1) => waits
a: commit
b => count 0
c => count 1
c: insert into r2 values (1) => waits
b: commit
c => count 1
c: commit

## a search path finds a table that is made before the one it found
s: create table t (a int); insert into t values (1)
s: create schema resolved_path
b: select set_config('search_path', 'resolved_path,' || current_schema, false) is null => (f)
c: select set_config('search_path', 'resolved_path,' || current_schema, false) is null => (f)
d: select set_config('search_path', 'resolved_path,' || current_schema, false) is null => (f)
a: begin; lock table t; create table resolved_path.t (b int); insert into resolved_path.t values (7)
b: select b from t => waits
c: begin
c: lock table t in access share mode => waits
a: commit
b => (7)
c => count 0
s: begin; lock table t nowait
s: rollback
c: commit
d: truncate t
s: select a from t => (1)
s: select b from resolved_path.t => no rows
s: drop schema resolved_path cascade

## a wait that lock_timeout ends
s: create table t (a int)
a: begin; drop table t; create table t (b int)
b: set lock_timeout = '50ms'
b: insert into t (b) values (1) => error 55P03
b: truncate t => error 55P03
b: begin; savepoint s
b: update t set b = 1 => error 55P03
b: rollback to s
a: commit
b: insert into t (b) values (1) => count 1
b: commit

## a wait that is cancelled
s: create table t (a int); create table u (a int)
a: begin; drop table t; create table t (b int)
b: begin; savepoint s
b: insert into t (b) values (1) /* the first to be cancelled */ => waits
c: begin
c: truncate u, t /* the second to be cancelled */ => waits
s: select pg_cancel_backend(pid) from pg_stat_activity
  where wait_event_type = 'Lock' and query like '%to be cancelled%' => (t) (t)
b => error 57014
c => error 57014
b: rollback to s
d: insert into u values (1)
a: commit
b: insert into t (b) values (1) => count 1
b: commit
c: rollback

## prepared statements
s: create table r1 (a int); create table r2 (a int)
s: insert into r1 values (1); insert into r2 values (2)
b: prepare q as select a from r2
c: prepare q as insert into r2 values (7)
a: begin; alter table r1 rename to rt; alter table r2 rename to r1; alter table rt rename to r2
b: execute q => waits
a: commit
b => (1)
a: begin; alter table r1 rename to rt; alter table r2 rename to r1; alter table rt rename to r2
c: execute q => waits
a: commit
c => count 1
s: select a from r1 => (1)
s: select a from r2 order by 1 => (2) (7)

## the extended protocol
s: create table t (a int)
a: begin; drop table t; create table t (b text); insert into t values ('x')
b: extended select * from t where b = 'x' => waits
c: extended insert into t (b) values ('y') => waits
d: extended select a from t => waits
a: commit
b => count 1
c => count 1
d => error 42703

## no lock is kept but for the new table's
s: create table r1 (a int); create table r2 (a int)
a: begin; alter table r1 rename to rt; alter table r2 rename to r1; alter table rt rename to r2
b: begin
b: insert into r2 values (1) => waits
a: commit
b => count 1
c: begin; lock table r1 nowait
c: commit
c: begin
c: lock table r2 nowait => error 55P03
c: rollback
b: commit

## a lock from before the statement stays
s: create table r1 (a int); create table r2 (a int)
b: begin; lock table r1 in row share mode
a: begin; lock table r2; insert into r2 values (1)
b: select * from r2, r1 => waits
a: alter table r2 rename to r3; create table r2 (c int)
a: commit
b => no rows
c: begin
c: lock table r1 in exclusive mode nowait => error 55P03
c: rollback
c: begin; lock table r3 nowait
c: rollback
b: commit

## a failed block does not wait
s: create table t (a int)
a: begin; lock table t
b: begin
b: select 1/0 => error 22012
b: select nosuch from t => error 25P02
b: rollback
a: commit

## a refused statement waits for the tables before the fault
s: create table t (a int); create table u (a int)
a: begin; lock table u
b: insert into t select nocol from u => waits
d: select * from nosuch, u => error 42P01
a: commit
b => error 42703
";

#[test]
fn a_query_reads_what_has_the_name_after_the_wait() {
    Stage::open().play(&sections(SCRIPTS));
}
