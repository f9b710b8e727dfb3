//! Advisory locks between sessions: who waits, who goes first, what ends a wait, and circles
//! through rows.

use super::script::Stage;

/// Share beside share, exclusive alone, for transactions and for sessions.
const MODES: &str = "
a: begin
a: select pg_advisory_xact_lock_shared(1)
b: select pg_try_advisory_lock_shared(1), pg_try_advisory_lock(1), pg_try_advisory_lock(1, 1) => (t, f, t)
b: select pg_advisory_unlock_shared(1) => (t)
b: begin
b: select pg_advisory_xact_lock(1) => waits
c: select pg_try_advisory_xact_lock_shared(1) => (f)
c: select pg_advisory_lock_shared(1) => waits
d: select classid, objid, objsubid, mode, granted from pg_locks where locktype = 'advisory' and objid = 1
   and classid = 0 and not granted order by mode => (0, 1, 1, ExclusiveLock, f) (0, 1, 1, ShareLock, f)
d: select cardinality(pg_blocking_pids(pid)) from pg_locks where locktype = 'advisory' and objid = 1 and not granted
   => (1) (1)
a: select pg_advisory_xact_lock_shared(1)
a: commit
b => ()
c => waits
a: select pg_advisory_lock(1) => waits
b: commit
c => ()
c: select pg_advisory_unlock_shared(1), pg_advisory_unlock_shared(1) => (t, f)
a => ()
c: select pg_try_advisory_lock_shared(1) => (f)
a: rollback
c: select pg_try_advisory_lock_shared(1) => (f)
a: select pg_advisory_unlock_all() => ()
c: select pg_try_advisory_lock_shared(1) => (t)
c: discard all
a: select pg_try_advisory_lock(1) => (t)
";

/// A holder that wants more goes before those who wait.
const MORE: &str = "
a: select pg_advisory_lock_shared(11)
b: select pg_advisory_lock_shared(11)
c: select pg_advisory_lock(11) => waits
a: select pg_advisory_lock(11) => waits
b: select pg_advisory_unlock(11), pg_advisory_unlock_shared(11) => (f, t)
a => ()
a: select pg_advisory_unlock(11) => (t)
a: select pg_advisory_unlock_shared(11) => (t)
c => ()
";

/// A lock taken after a savepoint goes with it; one taken before stays.
const SAVEPOINTS: &str = "
a: begin
a: select pg_advisory_xact_lock(21)
a: savepoint s
a: select pg_advisory_xact_lock(21), pg_advisory_xact_lock(22), pg_advisory_lock(23)
b: select pg_advisory_lock(22) => waits
a: rollback to s
b => ()
b: select pg_try_advisory_lock(21), pg_try_advisory_lock(23) => (f, f)
a: select 1 / 0 => error 22012
b: select pg_try_advisory_lock(21) => (f)
a: rollback to s
a: select pg_advisory_xact_lock(21), 1 / 0 => error 22012
a: rollback to s
b: select pg_try_advisory_lock(21) => (f)
a: rollback
b: select pg_try_advisory_lock(21), pg_try_advisory_lock(23) => (t, f)
a: select pg_advisory_unlock(23) => (t)
b: select pg_try_advisory_lock(23) => (t)
";

/// The session's end gives its locks up; so does another one's word.
const ENDS: &str = "
a: select pg_advisory_lock(31), pg_advisory_lock(31)
b: select pg_advisory_lock_shared(31) => waits
c: select count(pg_terminate_backend(pid)) from pg_locks where locktype = 'advisory' and granted and objid = 31 => (1)
b => ()
b: begin
b: select pg_advisory_xact_lock(31)
d: select pg_advisory_lock(31) => waits
c: select count(pg_cancel_backend(pid)) from pg_locks where locktype = 'advisory' and objid = 31
   and not granted => (1)
d => error 57014
d: set lock_timeout to 10
d: select pg_advisory_lock(31) => error 55P03
d: select pg_advisory_xact_lock_shared(31) => error 55P03
d: set lock_timeout to 0; set statement_timeout to 50
d: select pg_advisory_lock(31) => error 57014
d: select mode, granted from pg_locks where locktype = 'advisory' and objid = 31 order by 1
   => (ExclusiveLock, t) (ShareLock, t)
";

/// Circles of advisory locks, and of advisory locks with rows and tables. The one that closes the
/// circle looks first.
const CIRCLES: &str = "
s: create table t (id int primary key, v int); insert into t values (1, 1), (2, 2)
a: set deadlock_timeout to '100s'
b: set deadlock_timeout to '10ms'
a: begin
a: select pg_advisory_xact_lock(41)
b: begin
b: select pg_advisory_xact_lock(42)
a: select pg_advisory_xact_lock(42) => waits
b: select pg_advisory_xact_lock_shared(41) => error 40P01
a => ()
a: rollback
b: rollback
a: begin
a: update t set v = 5 where id = 1
b: begin
b: select pg_advisory_lock(41)
a: select pg_advisory_xact_lock(41) => waits
b: update t set v = 6 where id = 1 => error 40P01
b: rollback
b: select pg_advisory_unlock(41) => (t)
a => ()
a: rollback
a: begin
a: lock table t in share mode
b: begin
b: select pg_advisory_lock_shared(43)
a: select pg_advisory_xact_lock(43) => waits
b: delete from t => error 40P01
b: rollback
b: select pg_advisory_unlock_shared(43) => (t)
a => ()
a: commit
";

#[test]
fn advisory_locks_exclude_as_postgresqls_do() {
    Stage::open().play(&[("modes", MODES), ("more", MORE), ("savepoints", SAVEPOINTS)]);
}

#[test]
fn waits_for_advisory_locks_end() {
    Stage::open().play(&[("ends", ENDS)]);
}

#[test]
fn circles_through_advisory_locks_are_found() {
    Stage::open().play(&[("circles", CIRCLES)]);
}
