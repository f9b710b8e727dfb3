//! A definition that refers to an object which another session drops: it looks the object up anew
//! after its wait.

use super::script::{Stage, sections};

/// Outcomes that both servers give.
const SCRIPTS: &str = "
## set default, waits for table
s: create sequence q; create table t (a int default nextval('q'), b int)
a: begin; drop sequence q cascade
b: alter table t alter b set default nextval('q') => waits
a: commit
b => error 42P01

## foreign key
s: create table p (a int primary key); create table t (a int)
a: begin; drop table p
b: alter table t add foreign key (a) references p => waits
a: commit
b => error 42P01

## foreign key of column
s: create table p (a int primary key); create table t (a int)
a: begin; alter table p drop constraint p_pkey
b: create table c (a int references p (a)) => waits
a: commit
b => error 42830

## owned by
s: create sequence q; create table t (a int)
a: begin; drop table t
b: alter sequence q owned by t.a => waits
a: commit
b => error 42P01

## owned by column
s: create sequence q; create table t (a int, b int)
a: begin; alter table t drop a
b: alter sequence q owned by t.a => waits
a: commit
b => error 42703

## create sequence owned by
s: create table t (a int)
a: begin; drop table t
b: create sequence q owned by t.a => waits
a: commit
b => error 42P01

## create index
s: create table t (a int)
a: begin; alter table t drop a
b: create index on t (a) => waits
a: commit
b => error 42703

## set schema
s: create schema SCHEMA_2; create table t (a int)
a: begin; drop schema SCHEMA_2
b: alter table t set schema SCHEMA_2 => waits
a: commit
b => error 3F000

## create in schema
s: create schema SCHEMA_3
a: begin; drop schema SCHEMA_3
b: create table SCHEMA_3.t (a int) => waits
a: commit
b => error 3F000

## create sequence in schema
s: create schema SCHEMA_4
a: begin; drop schema SCHEMA_4
b: create sequence SCHEMA_4.q => waits
a: commit
b => error 3F000

## sequence set schema
s: create schema SCHEMA_5; create sequence q
a: begin; drop schema SCHEMA_5
b: alter sequence q set schema SCHEMA_5 => waits
a: commit
b => error 3F000

## check on column
s: create table t (a int, b int)
a: begin; alter table t drop b
b: alter table t add check (b > 0) => waits
a: commit
b => error 42703
";

/// PostgreSQL binds these without a lock: the drop does not see them, and what is left fails at its
/// use (XX000).
const LOCKED: &str = "
## set default, no wait
s: create sequence q; create table t (a int, b int)
a: begin; drop sequence q cascade
b: alter table t alter b set default nextval('q') => waits
a: commit
b => error 42P01

## set default, plain drop
s: create sequence q; create table t (a int, b int)
a: begin; drop sequence q
b: alter table t alter b set default nextval('q') => waits
a: commit
b => error 42P01

## set default, extended
s: create sequence q; create table t (a int, b int)
a: begin; drop sequence q
b: extended alter table t alter b set default nextval('q') => waits
a: commit
b => error 42P01

## set default, rollback
s: create sequence q; create table t (a int, b int)
a: begin; drop sequence q
b: alter table t alter b set default nextval('q') => waits
a: rollback
b => count 0

## set default by regclass
s: create sequence q; create table t (a int, b int)
a: begin; drop sequence q
b: alter table t alter b set default nextval('q'::regclass) => waits
a: commit
b => error 42P01

## create table
s: create sequence q
a: begin; drop sequence q
b: create table t (a int default nextval('q')) => waits
a: commit
b => error 42P01

## add column
s: create sequence q; create table t (a int)
a: begin; drop sequence q
b: alter table t add b int default nextval('q') => waits
a: commit
b => error 42P01

## add column, rows
s: create sequence q; create table t (a int); insert into t values (1)
a: begin; drop sequence q
b: alter table t add b int default nextval('q') => waits
a: commit
b => error 42P01

## check
s: create sequence q; create table t (a int)
a: begin; drop sequence q
b: alter table t add check (nextval('q') > 0) => waits
a: commit
b => error 42P01

## regclass constant of a table
s: create table u (a int); create table t (a oid)
a: begin; drop table u
b: alter table t alter a set default 'u'::regclass => waits
a: commit
b => error 42P01

## regclass constant in a check
s: create table u (a int); create table t (a oid)
a: begin; drop table u
b: alter table t add check (a <> 'u'::regclass) => waits
a: commit
b => error 42P01

## made anew
s: create sequence q; create table t (a int, b int)
a: begin; drop sequence q; create sequence q
b: alter table t alter b set default nextval('q') => waits
a: commit
b => count 0
s: drop sequence q => error 2BP01

## renamed
s: create sequence q; create table t (a int, b int)
a: begin; alter sequence q rename to r
b: alter table t alter b set default nextval('q') => waits
a: commit
b => error 42P01

## swapped
s: create sequence q; create sequence r start 100; create table t (a int, b int)
a: begin; alter sequence q rename to p; alter sequence r rename to q; alter sequence p rename to r
b: alter table t alter b set default nextval('q') => waits
a: commit
b => count 0
s: insert into t values (1)
s: select b from t => (100)

## schema of default
s: create schema SCHEMA_1; create sequence SCHEMA_1.q; create table t (a int, b int)
a: begin; drop schema SCHEMA_1 cascade
b: alter table t alter b set default nextval('SCHEMA_1.q') => waits
a: commit
b => error 42P01

## own default and the drop waits
s: create sequence q; create table t (a int, b int)
a: begin; alter table t alter b set default nextval('q')
b: drop sequence q => waits
a: commit
b => error 2BP01

## own default and the drop cascade waits
s: create sequence q; create table t (a int, b int)
a: begin; alter table t alter b set default nextval('q')
b: drop sequence q cascade => waits
a: commit
b => count 0
s: insert into t values (1)
s: select * from t => (1, null)

## create table by the extended protocol
s: create sequence q
a: begin; drop sequence q
b: extended create table t (a int default nextval('q')) => waits
a: commit
b => error 42P01

## an index that a constant names
s: create table u (a int); create index i on u (a); create table t (a oid)
a: begin; drop index i
b: alter table t alter a set default 'i'::regclass => waits
a: commit
b => error 42P01

## drop of a table's sequence
s: create table u (a serial); create table t (a int)
a: begin; alter table t alter a set default nextval('u_a_seq')
b: drop table u => waits
a: commit
b => error 2BP01
b: drop table u cascade => count 0

## drop of a table that a check names
s: create table u (a int); create table t (a oid)
a: begin; alter table t add check (a <> 'u'::regclass)
b: drop table u cascade => waits
a: commit
b => count 0
s: insert into t values (1)

## a schema's cascade
s: create schema SCHEMA_9; create sequence SCHEMA_9.q; create table t (a int)
a: begin; alter table t alter a set default nextval('SCHEMA_9.q')
b: drop schema SCHEMA_9 cascade => waits
a: commit
b => count 0
s: insert into t default values
s: select a from t => (null)

## nextval goes on beside a default that is being bound
s: create sequence q; create table t (a int)
a: begin; alter table t alter a set default nextval('q')
b: select nextval('q') => (1)
a: commit
";

#[test]
fn a_definition_binds_no_object_that_is_dropped_meanwhile() {
    let stage = Stage::open();
    let schema = format!("dangling_{}", std::process::id());
    stage.play(&sections(&SCRIPTS.replace("SCHEMA", &schema)));
    if stage.is_allcore() {
        stage.play(&sections(&LOCKED.replace("SCHEMA", &schema)));
    }
}
