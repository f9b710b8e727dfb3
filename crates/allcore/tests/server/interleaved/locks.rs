//! Waits for locks of rows and tables, and circles of waits.

use super::script::Stage;

/// A lock on a row passes those who wait, unless it conflicts with a holder.
const ROWS_ARE_PASSED: &str = "
s: create table t (id int primary key, v int); insert into t values (1, 1)
a: begin
a: select * from t for share => (1, 1)
b: begin
b: select * from t for update => waits
c: begin
c: select * from t for share => (1, 1)
d: begin
d: select * from t for key share => (1, 1)
e: select * from t for no key update nowait => error 55P03
a: commit
b => waits
c: commit
b => waits
e: update t set v = 2 => count 1
d: commit
b => (1, 2)
a: begin
a: select * from t for key share => waits
b: commit
a => (1, 2)
b: begin
b: delete from t => waits
c: update t set v = 3 => count 1
a: commit
b => count 1
b: rollback
";

/// PostgreSQL's upgrades of row locks without a deadlock.
const ROWS_ARE_UPGRADED: &str = "
s: create table t (id int primary key, v int); insert into t values (1, 1)
a: begin
a: select * from t for share => (1, 1)
b: begin
b: select * from t for share => (1, 1)
c: update t set v = 5 => waits
a: select * from t for update => waits
b: rollback
a => (1, 1)
a: commit
c => count 1
a: begin
a: select * from t for no key update => (1, 5)
b: begin
b: select * from t for key share => (1, 5)
c: delete from t => waits
a: update t set v = 6 => count 1
b: update t set v = 7 => waits
a: commit
b => count 1
b: commit
c => count 1
";

/// A session stands behind one that waits for its own blocker: it passes.
const A_QUEUE_IS_REORDERED: &str = "
s: create table one (i int); create table two (i int)
a: begin
a: lock table one in access share mode
b: begin
b: lock table two in access share mode
c: begin
c: lock table one in access exclusive mode => waits
b: lock table one in access share mode => waits
a: lock table two in access exclusive mode => waits
b => count 0
b: commit
a => count 0
a: commit
c => count 0
c: commit
";

/// The one who passes stands behind several.
const SEVERAL_ARE_PASSED: &str = "
s: create table one (i int); create table two (i int)
a: begin
a: lock table one in share update exclusive mode
b: begin
b: lock table two in access share mode
b: lock table one in share update exclusive mode => waits
c: begin
c: lock table two in access exclusive mode => waits
d: begin
d: lock table two in access exclusive mode => waits
a: lock table two in share update exclusive mode
a: commit
b => count 0
b: commit
c => count 0
c: commit
d => count 0
d: commit
";

/// ADD FOREIGN KEY lets readers and row lockers of both tables pass.
const A_KEY_IS_ADDED: &str = "
s: create table parent (i int primary key); create table child (i int, p int)
s: insert into parent values (1), (2); insert into child values (1, 1)
a: begin
a: alter table child add foreign key (p) references parent
b: select * from child => (1, 1)
b: select * from parent order by i for update => (1) (2)
b: select * from child for update => (1, 1)
b: insert into child values (3, 3) => waits
c: delete from parent where i = 1 => waits
d: create index on parent (i) => waits
a: commit
b => error 23503
c => error 23503
d => count 0
b: insert into child values (2, 2)
";

/// VALIDATE CONSTRAINT lets writers pass too.
const A_KEY_IS_VALIDATED: &str = "
s: create table parent (i int primary key); create table child (i int, p int)
s: insert into parent values (1), (2); insert into child values (1, 1)
s: alter table child add constraint k foreign key (p) references parent not valid
s: alter table child add constraint c check (i > 0) not valid
b: begin
b: insert into child values (5, 2)
a: begin
a: alter table child validate constraint k
b: insert into child values (2, 2)
b: commit
b: insert into child values (3, 3) => error 23503
b: update child set i = 4 where i = 2 => count 1
b: delete from parent where i = 1 => error 23503
b: insert into parent values (4)
b: create index on child (p) => waits
a: commit
b => count 0
a: begin
a: alter table child validate constraint c
b: insert into child values (6, 4) => count 1
b: insert into child values (0, 4) => error 23514
b: alter table child validate constraint k => waits
a: commit
b => count 0
c: select count(*) from pg_constraint where conname in ('k', 'c') and convalidated => (2)
a: begin
a: insert into parent values (9)
b: begin
b: alter table child add constraint j foreign key (p) references parent not valid => waits
a: commit
b => count 0
c: insert into child values (9, 9) => waits
b: commit
c => count 1
";

/// Storage parameters and statistics targets let readers and writers pass, and a key that is
/// validated lets them pass.
const PARAMETERS_LET_WRITERS_PASS: &str = "
a: create table parent (i int primary key); create table child (i int); insert into parent values (1)
a: alter table child add constraint k foreign key (i) references parent not valid
a: begin
a: alter table child validate constraint k
b: alter table parent alter i set statistics 10
b: alter table parent set (fillfactor = 90)
a: commit
a: begin
a: alter table parent set (fillfactor = 80), alter i set statistics 20
b: insert into parent values (2)
b: select count(*) from parent => (2)
b: alter table parent reset (fillfactor) => waits
a: commit
b => count 0
a: begin
a: alter table parent alter i set statistics 10, add column j int
b: select count(*) from parent => waits
a: commit
b => (2)
";

/// Parameters of an index, and its new name, let readers and writers pass.
const PARAMETERS_OF_AN_INDEX_LET_WRITERS_PASS: &str = "
s: create table t (i int primary key, v int); create index k on t (v); insert into t values (1, 1)
a: begin
a: alter index k set (fillfactor = 80)
b: insert into t values (2, 2)
b: select count(*) from t where v > 0 => (2)
b: drop index k => waits
a: commit
b => count 0
s: create index k on t (v)
a: begin
a: alter index t_pkey rename to other
b: insert into t values (1, 1) => error 23505
b: update t set v = 3 where i = 2 => count 1
b: alter index other rename to more => error 42P01
b: alter index t_pkey rename to more => waits
a: commit
b => error 42P01
a: insert into t values (1, 1) => error 23505
a: begin
a: alter index other rename to t_pkey
b: alter index other rename to more => waits
a: rollback
b => count 0
a: begin
a: alter table t set (user_catalog_table = false)
b: select count(*) from t => waits
a: commit
b => (2)
";

/// A foreign key that existing rows violate is neither added nor validated.
const A_BROKEN_KEY: &str = "
s: create table parent (i int primary key); create table child (p int)
s: insert into child values (1)
a: alter table child add foreign key (p) references parent => error 23503
a: alter table child add constraint k foreign key (p) references parent not valid
b: begin
b: delete from child
a: alter table child validate constraint k => error 23503
b: commit
a: alter table child validate constraint k
";

/// CREATE INDEX lets readers and row lockers pass.
const AN_INDEX_IS_MADE: &str = "
s: create table t (i int primary key); insert into t values (1)
a: begin
a: create index on t (i)
b: select * from t for update => (1)
b: update t set i = 2 => waits
a: commit
b => count 1
";

/// FOR KEY SHARE shows the version that the snapshot sees, unless a key was changed since.
const KEYS_ARE_LOCKED: &str = "
s: create table t (id int primary key, v int, u int unique); insert into t values (1, 1, 1)
a: begin isolation level repeatable read
a: select count(*) from t => (1)
b: update t set v = 2
b: begin
b: update t set v = 3
a: select * from t for key share => (1, 1, 1)
b: commit
a: select * from t for key share => (1, 1, 1)
a: select * from t for share => error 40001
a: rollback
a: begin isolation level repeatable read
a: select * from t for key share => (1, 3, 1)
b: update t set v = 4
a: select * from t for key share => (1, 3, 1)
b: delete from t => waits
a: commit
b => count 1
s: insert into t values (1, 1, 1)
a: begin isolation level repeatable read
a: select count(*) from t => (1)
b: update t set u = 2
a: select * from t for key share => error 40001
a: rollback
a: begin isolation level repeatable read
a: select count(*) from t => (1)
b: update t set id = 2
a: select * from t for key share => error 40001
a: rollback
a: begin isolation level repeatable read
a: select count(*) from t => (1)
b: delete from t
a: select * from t for key share => error 40001
a: rollback
s: insert into t values (1, 1, 1)
b: select pg_advisory_lock(51)
a: select * from t where pg_advisory_xact_lock(51) is not null and id = 1 for key share => waits
b: update t set v = 5
b: select pg_advisory_unlock(51)
a => (1, 1, 1)
b: select pg_advisory_lock(51)
a: select * from t where pg_advisory_xact_lock_shared(51) is not null and v = 5 for key share => waits
b: update t set v = 6
b: select pg_advisory_unlock(51)
a => (1, 5, 1)
b: select pg_advisory_lock(51)
a: select * from t where pg_advisory_xact_lock_shared(51) is not null and v = 6 for share => waits
b: update t set v = 7
b: select pg_advisory_unlock(51)
a => no rows
b: select pg_advisory_lock(51)
a: select * from t where pg_advisory_xact_lock_shared(51) is not null and id = 1 for key share => waits
b: update t set u = 8
b: select pg_advisory_unlock(51)
a => (1, 7, 8)
";

/// In repeatable read, a query that waits for a table's lock has its snapshot from before the wait.
const A_SNAPSHOT_IS_OLDER_THAN_A_WAIT: &str = "
s: create table u (id int primary key, v int); insert into u values (1, 1)
b: begin
b: lock table u in access exclusive mode
b: update u set v = 2
a: begin isolation level repeatable read
a: select * from u => waits
b: commit
a => (1, 1)
a: select * from u => (1, 1)
a: commit
b: begin
b: lock table u in access exclusive mode
b: update u set v = 3
a: begin isolation level repeatable read
a: update u set v = v + 10 => waits
b: commit
a => error 40001
a: rollback
b: begin
b: lock table u in access exclusive mode
b: insert into u values (2, 2)
a: begin isolation level repeatable read
a: prepare p as select count(*) from u => waits
b: commit
a => count 0
a: execute p => (1)
a: commit
b: begin
b: lock table u in access exclusive mode
b: insert into u values (3, 3)
a: begin isolation level repeatable read
a: lock table u in share mode => waits
b: commit
a => count 0
a: select count(*) from u => (3)
a: commit
b: begin
b: alter table u add column w int
b: insert into u values (4, 4, 4)
a: begin isolation level repeatable read
a: select * from u where id > 2 => waits
b: commit
a => (3, 3, null)
a: commit
a: begin isolation level repeatable read
a: savepoint x
a: select * from nosuch => error 42P01
a: rollback to x
b: update u set v = 40 where id = 4
a: select v from u where id = 4 => (4)
a: update u set v = 41 where id = 4 => error 40001
a: rollback
b: begin
b: lock table u in access exclusive mode
a: begin isolation level repeatable read
a: savepoint x
a: select nocol from u => waits
b: update u set v = 4 where id = 4
b: commit
a => error 42703
a: rollback to x
a: select v from u where id = 4 => (40)
a: rollback
b: begin
b: lock table u in access exclusive mode
b: insert into u values (5, 5, 5)
a: begin
a: select count(*) from u => waits
b: commit
a => (5)
a: commit
";

/// A row that was deleted and inserted again is another row for a session that waited.
const A_ROW_COMES_AGAIN: &str = "
s: create table t (id int primary key, v int); insert into t values (1, 1)
a: begin
a: delete from t
a: insert into t values (1, 3)
b: select * from t for key share nowait => error 55P03
b: select * from t for key share skip locked => no rows
b: select * from t for key share => waits
a: commit
b => no rows
b: select * from t for key share => (1, 3)
a: begin
a: savepoint s
a: delete from t
a: insert into t values (1, 4)
b: select * from t for key share => waits
a: rollback to s
b => (1, 3)
a: update t set id = 2
a: update t set id = 1, v = 5
b: select * from t for key share => waits
a: commit
b => (1, 5)
";

/// FOR KEY SHARE passes a session that waits only for an update, and excludes it from then on.
const CLAIMS_ARE_PASSED: &str = "
s: create table t (id int primary key, v int); insert into t values (1, 1), (2, 2)
s: create table child (p int references t)
a: begin
a: update t set v = 3 where id = 1
b: delete from t where id = 1 => waits
c: begin
c: select id from t where id = 1 for key share => (1)
d: select id from t where id = 1 for share nowait => error 55P03
a: commit
b => waits
c: commit
b => count 1
a: begin
a: update t set v = 4 where id = 2
b: begin
b: select * from t for update => waits
c: select id from t for key share => (2)
a: commit
b => (2, 4)
c: select id from t for key share nowait => error 55P03
b: rollback
a: begin
a: update t set v = 5
b: begin
b: update t set id = 3 => waits
c: begin
c: insert into child values (2) => count 1
a: rollback
b => waits
c: commit
b => error 23503
b: rollback
s: delete from child
a: begin
a: delete from t
b: delete from t => waits
c: select id from t for key share => waits
a: rollback
b => count 1
c => no rows
";

/// For sessions that waited for the key, an update under an explicit FOR UPDATE counts as a change
/// of keys. So does a key that was changed and changed back. An update before FOR UPDATE does not.
const KEYS_ARE_READ_ANEW: &str = "
s: create table t (id int primary key, k int unique, n int); insert into t values (1, 1, 10), (2, 2, 20), (3, 3, 30)
a: begin
a: select n from t where id = 1 for update => (10)
a: update t set n = 11 where id = 1
b: select n from t where id = 1 and n < 15 for key share => waits
c: select n from t where id = 1 and n = 10 for key share => waits
a: commit
b => (11)
c => no rows
a: begin
a: update t set k = 22 where id = 2
a: update t set k = 2, n = 21 where id = 2
b: select n from t where id = 2 for key share => waits
a: commit
b => (21)
a: begin
a: update t set n = 31 where id = 3
b: select n from t where id = 3 for key share => (30)
a: select n from t where id = 3 for update => (31)
b: select n from t where id = 3 for key share => waits
a: commit
b => (30)
";

/// A list of keys is gone through in the keys' order, so that two lists of the same keys make no
/// deadlock.
const LISTS_ARE_SORTED: &str = "
s: create table t (id int primary key, n int); insert into t select g, 0 from generate_series(1, 2000) g; analyze t
a: begin
a: update t set n = 1 where id = 1
b: begin
b: update t set n = 2 where id in (9, 1, 5) => waits
a: update t set n = 1 where id in (5, 9)
a: commit
b => count 3
a: update t set n = 3 where id = any ('{9,5,5}') => waits
b: commit
a => count 2
a: select id, n from t where id in (9, 9, 1, 5) => (1, 2) (5, 3) (9, 3)
";

#[test]
fn keys_are_locked_as_postgresql_does() {
    Stage::open().play(&[
        ("keys", KEYS_ARE_LOCKED),
        ("snapshot", A_SNAPSHOT_IS_OLDER_THAN_A_WAIT),
        ("again", A_ROW_COMES_AGAIN),
        ("claims", CLAIMS_ARE_PASSED),
        ("read", KEYS_ARE_READ_ANEW),
    ]);
}

#[test]
fn rows_are_locked_in_postgresqls_order() {
    Stage::open().play(&[
        ("passed", ROWS_ARE_PASSED),
        ("upgraded", ROWS_ARE_UPGRADED),
        ("lists", LISTS_ARE_SORTED),
    ]);
}

#[test]
fn a_circle_that_a_queues_order_closes_has_no_victim() {
    Stage::open().play(&[("one", A_QUEUE_IS_REORDERED), ("several", SEVERAL_ARE_PASSED)]);
}

#[test]
fn definitions_let_pass_what_they_bear() {
    Stage::open().play(&[
        ("added", A_KEY_IS_ADDED),
        ("validated", A_KEY_IS_VALIDATED),
        ("parameters", PARAMETERS_LET_WRITERS_PASS),
        ("index parameters", PARAMETERS_OF_AN_INDEX_LET_WRITERS_PASS),
        ("broken", A_BROKEN_KEY),
        ("index", AN_INDEX_IS_MADE),
    ]);
}
