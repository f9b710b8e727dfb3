//! Waits for rows: locks, queues, deadlocks, timeouts, interrupts.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::common::aside::{Later, aside, waiters};
use crate::common::{Bench, Short, table, text, until};
use runtime::fiber;
use runtime::interrupt::{Interrupt, Interrupted, Reason};
use txn::{
    AdvisoryKey, AdvisoryLock, Engine, Error, InsertOutcome, Isolation, LockOutcome, Outcome, RowLock,
    TableLock, TxnSession, Wait,
};

use AdvisoryLock::{Exclusive, Share};
use Isolation::{ReadCommitted, RepeatableRead};

fn lock(session: &TxnSession, key: &str, lock: RowLock, wait: Wait) -> Result<Option<String>, Error> {
    let mut row = Vec::new();
    session.lock_row(&table(), key.as_bytes(), lock, wait, &mut row).map(|outcome| match outcome {
        LockOutcome::Locked(_) => Some(text(&row)),
        LockOutcome::Gone => Some("gone".to_owned()),
        LockOutcome::Skipped => None,
    })
}

const KEY: AdvisoryKey = AdvisoryKey { database: 1, key: 1, class: 1 };

#[test]
fn an_insert_waits_for_another_of_the_same_key() {
    Bench::new("insert").run(|engine| {
        let a = engine.session().unwrap();
        for (commit, expected) in [(true, InsertOutcome::Duplicate), (false, InsertOutcome::Done)] {
            let key = format!("k{commit}");
            a.start(ReadCommitted);
            a.put(&key, "1");
            let other = key.clone();
            let b = aside(engine, move |b| b.alone(|| b.put(&other, "2")));
            until(|| waiters(engine) == 1);
            assert!(!b.is_done());
            if commit {
                a.commit(true).unwrap()
            } else {
                a.rollback().unwrap()
            }
            assert_eq!(b.wait(), expected);
        }
        assert!(engine.locks().is_empty(), "{:?}", engine.locks());
    });
}

#[test]
fn an_insert_waits_for_a_deletion_of_the_same_key() {
    Bench::new("delete").run(|engine| {
        let a = engine.session().unwrap();
        a.alone(|| (a.put("k1", "1"), a.put("k2", "1")));
        for (key, commit) in [("k1", true), ("k2", false)] {
            a.start(ReadCommitted);
            a.remove(key);
            let b = aside(engine, move |b| b.alone(|| b.put(key, "2")));
            until(|| waiters(engine) == 1);
            if commit {
                a.commit(true).unwrap()
            } else {
                a.rollback().unwrap()
            }
            assert_eq!(b.wait(), if commit { InsertOutcome::Done } else { InsertOutcome::Duplicate });
        }
    });
}

#[test]
fn an_update_waits_and_then_looks_again() {
    Bench::new("update").run(|engine| {
        let a = engine.session().unwrap();
        a.alone(|| a.put("k", "0"));
        a.start(ReadCommitted);
        a.set("k", "1");
        let b = aside(engine, |b| {
            b.start(ReadCommitted);
            let outcome = b.set("k", "2");
            let newest = lock(b, "k", RowLock::NoKeyUpdate, Wait::NoWait).unwrap();
            b.statement_start().unwrap();
            let again = b.set("k", "2");
            b.commit(true).unwrap();
            (outcome, newest, again)
        });
        let c = aside(engine, |c| {
            c.start(RepeatableRead);
            let seen = c.stamp("k").unwrap();
            let result = c.update(&table(), b"k", seen, b"3");
            c.rollback().unwrap();
            result
        });
        until(|| waiters(engine) == 2);
        a.commit(true).unwrap();
        assert_eq!(b.wait(), (Outcome::Changed, Some("1".to_owned()), Outcome::Done));
        assert_eq!(c.wait(), Err(Error::Serialization));
        assert_eq!(a.alone(|| a.read("k")).as_deref(), Some("2"));
        assert!(engine.locks().is_empty(), "{:?}", engine.locks());
    });
}

#[test]
fn a_row_goes_from_waiter_to_waiter_in_order() {
    Bench::new("fifo").run(|engine| {
        let a = engine.session().unwrap();
        a.alone(|| a.put("k", "0"));
        a.start(ReadCommitted);
        a.set("k", "0");
        let order = Rc::new(RefCell::new(Vec::new()));
        let writers: Vec<_> = (0..20)
            .map(|n| {
                let order = Rc::clone(&order);
                let writer = aside(engine, move |s| {
                    s.start(ReadCommitted);
                    let newest = lock(s, "k", RowLock::Update, Wait::Block).unwrap();
                    order.borrow_mut().push(n);
                    s.statement_start().unwrap();
                    assert_eq!(s.read("k"), newest);
                    let next = newest.unwrap().parse::<u32>().unwrap() + 1;
                    assert_eq!(s.set("k", &next.to_string()), Outcome::Done);
                    s.commit(true).unwrap();
                });
                until(|| waiters(engine) == n as usize + 1);
                writer
            })
            .collect();
        a.commit(true).unwrap();
        writers.into_iter().for_each(Later::wait);
        assert_eq!(*order.borrow(), (0..20).collect::<Vec<i32>>());
        assert_eq!(a.alone(|| a.read("k")).as_deref(), Some("20"));
        assert!(engine.locks().is_empty());
    });
}

#[test]
fn row_locks_conflict_as_postgresql_says() {
    Bench::new("modes").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.alone(|| a.put("k", "1"));
        let modes = [RowLock::KeyShare, RowLock::Share, RowLock::NoKeyUpdate, RowLock::Update];
        let compatible =
            [[true, true, true, false], [true, true, false, false], [true, false, false, false], [false; 4]];
        for (held, row) in modes.iter().zip(compatible) {
            for (asked, compatible) in modes.iter().zip(row) {
                a.start(ReadCommitted);
                assert_eq!(lock(&a, "k", *held, Wait::Block).unwrap().as_deref(), Some("1"));
                b.start(ReadCommitted);
                let skipped = lock(&b, "k", *asked, Wait::Skip).unwrap();
                assert_eq!(skipped.is_some(), compatible, "{held:?} {asked:?}");
                let refused = lock(&b, "k", *asked, Wait::NoWait);
                assert_eq!(
                    refused,
                    if compatible { Ok(Some("1".to_owned())) } else { Err(Error::LockNotAvailable) }
                );
                b.rollback().unwrap();
                a.rollback().unwrap();
            }
        }
        assert!(engine.locks().is_empty());
    });
}

#[test]
fn writers_respect_explicit_locks_and_the_other_way_round() {
    Bench::new("explicit").run(|engine| {
        let a = engine.session().unwrap();
        a.alone(|| (a.put("k", "1"), a.put("d", "1")));
        // A share lock stops an update; a key share lock stops a deletion only.
        a.start(ReadCommitted);
        lock(&a, "k", RowLock::Share, Wait::Block).unwrap();
        lock(&a, "d", RowLock::KeyShare, Wait::Block).unwrap();
        let update = aside(engine, |b| b.alone(|| b.set("k", "2")));
        let allowed = aside(engine, |b| b.alone(|| b.set("d", "2")));
        assert_eq!(allowed.wait(), Outcome::Done);
        let delete = aside(engine, |b| b.alone(|| b.remove("d")));
        until(|| waiters(engine) == 2);
        a.commit(true).unwrap();
        assert_eq!((update.wait(), delete.wait()), (Outcome::Done, Outcome::Done));
        // A running update lets KEY SHARE through to the committed version behind it, SHARE not.
        a.start(ReadCommitted);
        a.set("k", "3");
        a.statement_start().unwrap();
        a.set("k", "4");
        let b = engine.session().unwrap();
        b.start(ReadCommitted);
        assert_eq!(lock(&b, "k", RowLock::KeyShare, Wait::NoWait), Ok(Some("2".to_owned())));
        assert_eq!(lock(&b, "k", RowLock::Share, Wait::NoWait), Err(Error::LockNotAvailable));
        assert_eq!(lock(&b, "k", RowLock::Share, Wait::Skip), Ok(None));
        b.rollback().unwrap();
        assert_eq!(lock(&a, "k", RowLock::Update, Wait::NoWait), Ok(Some("4".to_owned())), "its own row");
        a.commit(true).unwrap();
        assert!(engine.locks().is_empty());
    });
}

/// Makes two transactions that each hold a row and want the other's.
fn embrace(engine: &Arc<Engine>, first: &'static str, second: &'static str) -> Result<Outcome, Error> {
    let met = Rc::new(Cell::new(0));
    let run = |own: &'static str, other: &'static str| {
        let met = Rc::clone(&met);
        aside(engine, move |s| {
            s.start(ReadCommitted);
            s.set(own, "x");
            met.set(met.get() + 1);
            until(|| met.get() == 2);
            s.statement_start().unwrap();
            let seen = s.stamp(other).unwrap();
            let result = s.update(&table(), other.as_bytes(), seen, b"y");
            match result {
                Ok(_) => s.commit(true).unwrap(),
                Err(_) => s.rollback().unwrap(),
            }
            result
        })
    };
    let (a, b) = (run(first, second), run(second, first));
    until(|| a.is_done() && b.is_done());
    let (a, b) = (a.wait(), b.wait());
    assert!(a.is_ok() != b.is_ok(), "one victim: {a:?} {b:?}");
    a.and(b)
}

#[test]
fn deadlocks_are_found_and_have_one_victim() {
    Bench::new("deadlock").run(|engine| {
        let s = engine.session().unwrap();
        s.alone(|| (s.put("a", "0"), s.put("b", "0")));
        for _ in 0..3 {
            assert_eq!(embrace(engine, "a", "b"), Err(Error::Deadlock));
        }
        assert!(engine.locks().is_empty(), "{:?}", engine.locks());
    });
}

#[test]
fn waits_end_at_their_limit_and_at_an_interrupt() {
    Bench::new("limits").run(|engine| {
        let a = engine.session().unwrap();
        a.alone(|| a.put("k", "0"));
        a.start(ReadCommitted);
        a.set("k", "1");
        let limited = aside(engine, |b| {
            b.wait_limits().set_lock_timeout(Some(Duration::from_millis(20)));
            b.start(ReadCommitted);
            let seen = b.stamp("k").unwrap();
            let result = b.update(&table(), b"k", seen, b"2");
            b.rollback().unwrap();
            result
        });
        assert_eq!(limited.wait(), Err(Error::LockTimeout));
        let interrupt = Interrupt::new();
        let own = Arc::clone(&interrupt);
        let cancelled = aside(engine, move |b| {
            fiber::obey(Some(own));
            b.start(ReadCommitted);
            let seen = b.stamp("k").unwrap();
            let result = b.update(&table(), b"k", seen, b"2");
            b.rollback().unwrap();
            fiber::obey(None);
            result
        });
        let behind = aside(engine, |b| b.alone(|| b.put("k", "3")));
        until(|| waiters(engine) == 2);
        interrupt.raise(Reason::Cancel);
        assert_eq!(cancelled.wait(), Err(Error::Interrupted(Interrupted(Reason::Cancel))));
        a.commit(true).unwrap();
        assert_eq!(behind.wait(), InsertOutcome::Duplicate);
        assert!(engine.locks().is_empty(), "{:?}", engine.locks());
    });
}

#[test]
fn rolling_back_to_a_savepoint_frees_what_was_locked_after_it() {
    Bench::new("savepoint").run(|engine| {
        let a = engine.session().unwrap();
        a.alone(|| (a.put("k", "0"), a.put("l", "0")));
        a.start(ReadCommitted);
        a.put("own", "0");
        let savepoint = a.savepoint();
        a.set("k", "1");
        lock(&a, "l", RowLock::Update, Wait::Block).unwrap();
        assert_eq!(a.lock_table(7, TableLock::AccessExclusive, Wait::Block), Ok(true));
        let b = aside(engine, |b| {
            b.alone(|| {
                b.lock_table(7, TableLock::AccessShare, Wait::Block).unwrap();
                (b.set("k", "2"), b.set("l", "2"))
            })
        });
        until(|| waiters(engine) == 1);
        a.rollback_to(savepoint).unwrap();
        assert_eq!(b.wait(), (Outcome::Done, Outcome::Done));
        a.commit(true).unwrap();
        assert!(engine.locks().is_empty(), "{:?}", engine.locks());
    });
}

#[test]
fn rolling_back_to_a_savepoint_lets_everybody_in_the_queue_go_on() {
    Bench::new("savepoint-queue").run(|engine| {
        let a = engine.session().unwrap();
        a.alone(|| a.put("k", "0"));
        a.start(ReadCommitted);
        a.put("own", "0");
        let savepoint = a.savepoint();
        a.set("k", "1");
        let write = |row: u32| aside(engine, move |s| s.alone(|| s.set("k", &row.to_string())));
        let later: Vec<_> = (2..6).map(write).collect();
        until(|| waiters(engine) == 4);
        a.rollback_to(savepoint).unwrap();
        // All of them end while the transaction in their way is still open.
        let outcomes: Vec<_> = later.into_iter().map(Later::wait).collect();
        assert_eq!(outcomes, [Outcome::Done, Outcome::Changed, Outcome::Changed, Outcome::Changed]);
        a.commit(true).unwrap();
        assert!(engine.locks().is_empty(), "{:?}", engine.locks());
    });
}

#[test]
fn a_deletion_of_ones_own_row_waits_for_key_share_and_not_for_waiters() {
    Bench::new("own-delete").run(|engine| {
        let a = engine.session().unwrap();
        a.alone(|| (a.put("k", "0"), a.put("l", "0")));
        let b = engine.session().unwrap();
        let shared = Rc::new(Cell::new(false));
        let is_shared = Rc::clone(&shared);
        let deleting = aside(engine, move |s| {
            s.start(ReadCommitted);
            s.set("k", "1");
            s.set("l", "1");
            s.statement_start().unwrap();
            until(|| is_shared.get());
            let removed = (s.remove("l"), s.remove("k"));
            s.commit(true).unwrap();
            removed
        });
        until(|| engine.locks().len() == 1);
        b.start(ReadCommitted);
        assert_eq!(lock(&b, "k", RowLock::KeyShare, Wait::Block), Ok(Some("0".to_owned())));
        shared.set(true);
        let waiting = aside(engine, |s| {
            s.start(ReadCommitted);
            let outcome = lock(s, "l", RowLock::Update, Wait::Block);
            s.rollback().unwrap();
            outcome
        });
        until(|| waiters(engine) == 2);
        fiber::sleep(Duration::from_millis(20));
        assert!(!deleting.is_done() && !waiting.is_done(), "the key is shared");
        b.commit(true).unwrap();
        assert_eq!(deleting.wait(), (Outcome::Done, Outcome::Done));
        assert_eq!(waiting.wait(), Ok(Some("gone".to_owned())));
        assert!(engine.locks().is_empty(), "{:?}", engine.locks());
    });
}

#[test]
fn a_duplicate_is_visible_from_the_next_statement_on() {
    Bench::new("told").run(|engine| {
        let s = engine.session().unwrap();
        s.alone(|| s.put("warm", "0"));
        s.start(ReadCommitted);
        let ready = Rc::new(Cell::new(false));
        let tell = Rc::clone(&ready);
        let committing = aside(engine, move |other| {
            other.start(ReadCommitted);
            other.put("k", "1");
            tell.set(true);
            // The commit's record is in the log at once, and on disk a little later.
            other.commit(true).unwrap();
        });
        while !ready.get() {
            fiber::yield_now();
        }
        assert_eq!(s.put("k", "2"), InsertOutcome::Duplicate);
        s.statement_start().unwrap();
        assert_eq!(s.read("k"), Some("1".to_owned()));
        s.commit(true).unwrap();
        committing.wait();
    });
}

#[test]
fn advisory_locks_and_rows_make_deadlocks() {
    Bench::new("advisory_deadlock").run(|engine| {
        let a = engine.session().unwrap();
        a.begin(ReadCommitted, false);
        assert_eq!(a.lock_advisory(KEY, Exclusive, true, Wait::Block), Ok(true));
        let key = "row";
        assert_eq!(a.insert(&table(), key.as_bytes(), b"x"), Ok(InsertOutcome::Done));
        a.commit(true).unwrap();
        let other = aside(engine, move |b| {
            b.begin(ReadCommitted, false);
            b.statement_start().unwrap();
            lock(b, key, RowLock::Update, Wait::Block).unwrap();
            let taken = b.lock_advisory(KEY, Share, false, Wait::Block);
            b.rollback().unwrap();
            taken
        });
        until(|| waiters(engine) == 1);
        a.begin(ReadCommitted, false);
        a.statement_start().unwrap();
        let locked = lock(&a, key, RowLock::Update, Wait::Block);
        a.rollback().unwrap();
        a.unlock_all_advisory();
        // Either session may be the victim, and exactly one is.
        assert_eq!(u32::from(locked.is_err()) + u32::from(other.wait().is_err()), 1);
        assert!(engine.locks().is_empty());
    });
}
