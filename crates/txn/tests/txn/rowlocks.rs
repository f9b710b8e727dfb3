//! PostgreSQL's table of row locks, between sessions that really hold them. A transaction may lock
//! a row, change it, do both, or go back to a savepoint. It excludes others exactly as its
//! strongest lock does.

use std::sync::Arc;

use crate::common::{Bench, Short, table};
use runtime::fiber;
use txn::{Engine, Error, Isolation, LockOutcome, Outcome, RowLock, TxnSession, Wait};

use Isolation::ReadCommitted;
use RowLock::{KeyShare, NoKeyUpdate, Share, Update};

const LOCKS: [RowLock; 4] = [KeyShare, Share, NoKeyUpdate, Update];

/// One step of a transaction on the row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Lock(RowLock),
    Change,
    Delete,
    Savepoint,
    RollBackTo,
}

use Step::{Change, Delete, Lock, RollBackTo, Savepoint};

/// The strongest lock that the steps leave; `None` if all was taken back.
fn strength(steps: &[Step]) -> Option<RowLock> {
    let (mut now, mut kept) = (None, None);
    for step in steps {
        match step {
            Lock(lock) => now = now.max(Some(*lock)),
            Change => now = now.max(Some(NoKeyUpdate)),
            Delete => now = Some(Update),
            Savepoint => kept = now,
            RollBackTo => now = kept,
        }
    }
    now
}

/// Table 13.3 of PostgreSQL's documentation.
fn conflicts(held: RowLock, asked: RowLock) -> bool {
    match held {
        KeyShare => asked == Update,
        Share => asked >= NoKeyUpdate,
        NoKeyUpdate => asked >= Share,
        Update => true,
    }
}

fn try_lock(session: &TxnSession, lock: RowLock) -> bool {
    match session.lock_row(&table(), b"k", lock, Wait::NoWait, &mut Vec::new()) {
        Ok(LockOutcome::Locked(_)) => true,
        Err(Error::LockNotAvailable) => false,
        other => panic!("{lock:?}: {other:?}"),
    }
}

fn run(session: &TxnSession, steps: &[Step]) {
    session.start(ReadCommitted);
    let mut savepoint = None;
    for step in steps {
        session.statement_start().unwrap();
        match step {
            Lock(lock) => assert!(try_lock(session, *lock), "{steps:?}"),
            Change => assert_eq!(session.set("k", "changed"), Outcome::Done),
            Delete => assert_eq!(session.remove("k"), Outcome::Done),
            Savepoint => savepoint = Some(session.savepoint()),
            RollBackTo => session.rollback_to(savepoint.unwrap()).unwrap(),
        }
    }
}

/// The locks that others can get while the steps stand.
fn others_can(engine: &Arc<Engine>) -> [bool; 4] {
    LOCKS.map(|lock| {
        let other = engine.session().unwrap();
        other.start(ReadCommitted);
        let locked = try_lock(&other, lock);
        other.rollback().unwrap();
        locked
    })
}

#[test]
fn a_transaction_excludes_what_its_strongest_lock_excludes() {
    let mut cases: Vec<Vec<Step>> = vec![vec![Change], vec![Delete], vec![Change, Delete]];
    for first in LOCKS {
        cases.push(vec![Lock(first)]);
        cases.push(vec![Lock(first), Change]);
        cases.push(vec![Change, Lock(first)]);
        cases.push(vec![Change, Change, Lock(first), Change]);
        cases.push(vec![Lock(first), Delete]);
        cases.push(vec![Change, Lock(first), Savepoint, Delete, RollBackTo]);
        cases.push(vec![Savepoint, Change, Lock(first), RollBackTo]);
        cases.push(vec![Lock(first), Savepoint, Change, RollBackTo]);
        for second in LOCKS {
            cases.push(vec![Lock(first), Lock(second)]);
            cases.push(vec![Lock(first), Change, Lock(second)]);
            cases.push(vec![Change, Lock(first), Lock(second)]);
            cases.push(vec![Lock(first), Savepoint, Lock(second), RollBackTo]);
            cases.push(vec![Lock(first), Savepoint, Change, Lock(second), RollBackTo]);
            cases.push(vec![Change, Lock(first), Savepoint, Lock(second), RollBackTo]);
        }
    }
    Bench::new("matrix").run(|engine| {
        let session = engine.session().unwrap();
        session.alone(|| session.put("k", "row"));
        for steps in &cases {
            run(&session, steps);
            let held = strength(steps);
            let expected = LOCKS.map(|asked| held.is_none_or(|held| !conflicts(held, asked)));
            assert_eq!(others_can(engine), expected, "{steps:?}");
            session.rollback().unwrap();
            assert_eq!(others_can(engine), [true; 4], "left over of {steps:?}");
        }
    });
}

/// A transaction changes a row, and others hold it KEY SHARE, as an update allows. The transaction
/// cannot lock the row FOR UPDATE before they end. While it waits, nobody new gets KEY SHARE.
#[test]
fn a_changed_row_locked_for_update_waits_for_key_share_of_others() {
    Bench::new("key-share").run(|engine| {
        let (session, other) = (engine.session().unwrap(), engine.session().unwrap());
        session.alone(|| session.put("k", "row"));
        run(&session, &[Change]);
        run(&other, &[Lock(KeyShare)]);
        for lock in [KeyShare, Share, NoKeyUpdate] {
            assert!(try_lock(&session, lock), "{lock:?} of the own version");
        }
        assert!(!try_lock(&session, Update), "another holds it KEY SHARE");
        let skipped = session.lock_row(&table(), b"k", Update, Wait::Skip, &mut Vec::new());
        assert_eq!(skipped, Ok(LockOutcome::Skipped));
        let aside = Arc::clone(engine);
        fiber::spawn_local(move || {
            crate::common::until(|| aside.locks().iter().any(|lock| !lock.granted));
            let newcomer = aside.session().unwrap();
            newcomer.start(ReadCommitted);
            assert!(!try_lock(&newcomer, KeyShare), "the one that waits goes first");
            newcomer.rollback().unwrap();
            other.rollback().unwrap();
        });
        session.lock_row(&table(), b"k", Update, Wait::Block, &mut Vec::new()).unwrap();
        assert_eq!(others_can(engine), [false; 4]);
        session.rollback().unwrap();
        assert_eq!(others_can(engine), [true; 4]);
    });
}

/// A skipped row stays locked as it was before. The writer that made the session skip it is no
/// holder in the lock table, so the stronger lock was granted there first.
#[test]
fn a_skipped_row_keeps_the_lock_it_had_and_no_more() {
    Bench::new("skipped").run(|engine| {
        let (session, writer) = (engine.session().unwrap(), engine.session().unwrap());
        session.alone(|| session.put("k", "row"));
        run(&session, &[Lock(KeyShare)]);
        run(&writer, &[Change]);
        for lock in [Share, NoKeyUpdate, Update] {
            let skipped = session.lock_row(&table(), b"k", lock, Wait::Skip, &mut Vec::new());
            assert_eq!(skipped, Ok(LockOutcome::Skipped), "{lock:?}");
            assert!(!try_lock(&session, lock), "{lock:?}");
        }
        writer.rollback().unwrap();
        assert_eq!(others_can(engine), [true, true, true, false], "as beside KEY SHARE");
        session.rollback().unwrap();
        assert_eq!(others_can(engine), [true; 4]);
    });
}
