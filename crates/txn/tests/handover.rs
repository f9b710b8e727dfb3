//! A lock shows a commit to its next holder, even if that commit is neither on disk nor published.
//!
//! The log's flush is parked at a stop point, so these tests have a process of their own.

mod common;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use crate::common::{Bench, Short, table, until};
use runtime::fiber;
use runtime::stop::{self, Action};
use txn::{Engine, Isolation, LockInfo, LockOutcome, LockedObject, Outcome, RowLock, TxnSession, Wait};

use Isolation::{ReadCommitted, RepeatableRead};

const FLUSH: &str = "log.flush.before_write";
/// The label of the session whose commit hangs.
const FIRST: u32 = 7;
/// Stop points belong to the process.
static TURN: Mutex<()> = Mutex::new(());

/// Lets the flush that hangs go on, also where an assertion has failed beside it.
struct Release;

impl Drop for Release {
    fn drop(&mut self) {
        stop::release(FLUSH);
    }
}

fn lock(session: &TxnSession, key: &str, lock: RowLock) {
    let mut row = Vec::new();
    let outcome = session.lock_row(&table(), key.as_bytes(), lock, Wait::Block, &mut row);
    assert!(matches!(outcome, Ok(LockOutcome::Locked(_))), "{outcome:?}");
}

/// Runs `body` on a session and a fiber of its own. The cell is set when it is done.
fn aside(engine: &Arc<Engine>, body: impl FnOnce(&TxnSession) + 'static) -> Rc<Cell<bool>> {
    let done = Rc::new(Cell::new(false));
    let (session, ending) = (engine.session().unwrap(), Rc::clone(&done));
    fiber::spawn_local(move || {
        body(&session);
        ending.set(true);
    });
    done
}

/// Commits a transaction that has inserted "news" and locked "lock", with a flush that hangs. Then
/// runs `next`.
fn beside_a_hanging_commit(name: &str, held: RowLock, next: impl Fn(&Arc<Engine>, &dyn Fn()) + Send + Sync) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Bench::new(name).run(|engine| {
        let setup = engine.session().unwrap();
        setup.alone(|| (setup.put("lock", "1"), setup.put("other", "1")));
        let go = Rc::new(Cell::new(false));
        let ready = Rc::new(Cell::new(false));
        let (told, locked) = (Rc::clone(&go), Rc::clone(&ready));
        let committed = aside(engine, move |first| {
            first.set_label(FIRST);
            first.start(ReadCommitted);
            first.put("news", "1");
            lock(first, "lock", held);
            locked.set(true);
            until(|| told.get());
            first.commit(true).unwrap();
        });
        until(|| ready.get());
        let commit = || {
            stop::clear();
            stop::arm(FLUSH, Action::Park, None);
            go.set(true);
            let holds =
                |lock: &LockInfo| lock.session == FIRST && matches!(lock.object, LockedObject::Row(..));
            until(|| stop::hits(FLUSH) > 0 && !engine.locks().iter().any(holds));
        };
        let release = Release;
        next(engine, &commit);
        assert!(!committed.get(), "the flush hangs");
        drop(release);
        until(|| committed.get());
    });
}

fn sees_the_news(session: &TxnSession) {
    session.statement_start().unwrap();
    assert_eq!(session.read("news").as_deref(), Some("1"));
}

#[test]
fn the_next_holder_sees_what_the_last_one_committed() {
    beside_a_hanging_commit("free", RowLock::Update, |engine, commit| {
        commit();
        let second = engine.session().unwrap();
        second.start(ReadCommitted);
        lock(&second, "lock", RowLock::Update);
        sees_the_news(&second);
        second.rollback().unwrap();
    });
    beside_a_hanging_commit("queued", RowLock::Update, |engine, commit| {
        let second = aside(engine, |second| {
            second.start(ReadCommitted);
            lock(second, "lock", RowLock::Share);
            sees_the_news(second);
            second.rollback().unwrap();
        });
        until(|| engine.locks().iter().any(|lock| !lock.granted));
        commit();
        until(|| second.get());
    });
}

#[test]
fn a_newest_snapshot_includes_the_last_holders_commit() {
    beside_a_hanging_commit("newest", RowLock::KeyShare, |engine, commit| {
        let second = engine.session().unwrap();
        second.start(RepeatableRead);
        assert_eq!(second.read("news"), None);
        commit();
        let seen = second.stamp("lock").unwrap();
        assert_eq!(second.delete(&table(), b"lock", seen), Ok(Outcome::Done));
        assert_eq!(second.with_newest(|| second.read("news")).as_deref(), Some("1"));
        assert_eq!(second.read("news"), None, "its own snapshot stands");
        second.rollback().unwrap();
    });
}

#[test]
fn a_write_takes_the_lock_over_as_a_lock_does() {
    for delete in [false, true] {
        beside_a_hanging_commit("write", RowLock::Share, |engine, commit| {
            commit();
            let second = engine.session().unwrap();
            second.start(ReadCommitted);
            let done = if delete { second.remove("lock") } else { second.set("lock", "2") };
            assert_eq!(done, Outcome::Done);
            sees_the_news(&second);
            second.rollback().unwrap();
        });
    }
}

#[test]
fn an_insert_that_takes_a_deleted_rows_place_sees_the_deletion() {
    Bench::new("place").run(|engine| {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let setup = engine.session().unwrap();
        setup.alone(|| setup.put("place", "1"));
        stop::clear();
        stop::arm(FLUSH, Action::Park, None);
        let committed = aside(engine, |first| {
            first.set_label(FIRST);
            first.start(ReadCommitted);
            first.put("news", "1");
            assert_eq!(first.remove("place"), Outcome::Done);
            first.commit(true).unwrap();
        });
        until(|| stop::hits(FLUSH) > 0);
        let release = Release;
        let second = engine.session().unwrap();
        second.start(ReadCommitted);
        second.put("place", "2");
        sees_the_news(&second);
        second.rollback().unwrap();
        assert!(!committed.get(), "the flush hangs");
        drop(release);
        until(|| committed.get());
    });
}

#[test]
fn a_row_of_ones_own_is_deleted_after_key_share() {
    beside_a_hanging_commit("own", RowLock::KeyShare, |engine, commit| {
        let second = engine.session().unwrap();
        second.start(ReadCommitted);
        assert_eq!(second.set("lock", "2"), Outcome::Done);
        commit();
        second.next_command();
        assert_eq!(second.remove("lock"), Outcome::Done);
        sees_the_news(&second);
        second.rollback().unwrap();
    });
}

#[test]
fn a_holder_passes_on_a_commit_although_it_changed_nothing() {
    beside_a_hanging_commit("on", RowLock::Update, |engine, commit| {
        commit();
        let (second, third) = (engine.session().unwrap(), engine.session().unwrap());
        second.start(ReadCommitted);
        lock(&second, "other", RowLock::Update);
        lock(&second, "lock", RowLock::Update);
        second.rollback().unwrap();
        third.start(ReadCommitted);
        lock(&third, "other", RowLock::Update);
        sees_the_news(&third);
        third.rollback().unwrap();
    });
}
