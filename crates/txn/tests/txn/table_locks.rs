//! Table locks and advisory locks: conflicts, queues, counts, savepoints.

use crate::common::aside::{aside, waiters};
use crate::common::{Bench, until};
use txn::{AdvisoryKey, AdvisoryLock, Isolation, LockedObject, TableGrant, TableLock, Wait};

use AdvisoryLock::{Exclusive, Share};
use Isolation::ReadCommitted;

const KEY: AdvisoryKey = AdvisoryKey { database: 1, key: 1, class: 1 };

const TABLE_MODES: [TableLock; 8] = [
    TableLock::AccessShare,
    TableLock::RowShare,
    TableLock::RowExclusive,
    TableLock::ShareUpdateExclusive,
    TableLock::Share,
    TableLock::ShareRowExclusive,
    TableLock::Exclusive,
    TableLock::AccessExclusive,
];

#[test]
fn table_locks_conflict_as_postgresql_says() {
    // PostgreSQL's table, one string for each held mode; x marks an asked mode that conflicts.
    let conflicts =
        [".......x", "......xx", "....xxxx", "...xxxxx", "..xx.xxx", "..xxxxxx", ".xxxxxxx", "xxxxxxxx"];
    Bench::new("tables").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        for (held, row) in TABLE_MODES.into_iter().zip(conflicts) {
            for (asked, conflict) in TABLE_MODES.into_iter().zip(row.chars()) {
                a.begin(ReadCommitted, false);
                b.begin(ReadCommitted, false);
                assert_eq!(a.lock_table(5, held, Wait::Block), Ok(true));
                assert_eq!(b.lock_table(5, asked, Wait::Skip), Ok(conflict == '.'), "{held:?} {asked:?}");
                assert_eq!(b.lock_table(6, asked, Wait::NoWait), Ok(true), "another table is free");
                b.commit(true).unwrap();
                a.commit(true).unwrap();
                assert!(engine.locks().is_empty(), "{held:?} {asked:?}: {:?}", engine.locks());
            }
        }
    });
}

#[test]
fn strong_table_locks_wait_for_weak_ones_and_hold_newcomers_back() {
    Bench::new("strong").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.set_label(71);
        a.begin(ReadCommitted, false);
        a.lock_table(5, TableLock::AccessShare, Wait::Block).unwrap();
        let fast = engine.locks();
        assert_eq!(fast.len(), 1);
        assert!(fast[0].fast_path && fast[0].session == 71 && fast[0].object == LockedObject::Table(5));
        let strong = aside(engine, |s| {
            s.begin(ReadCommitted, false);
            s.lock_table(5, TableLock::AccessExclusive, Wait::Block).unwrap();
            s.commit(true).unwrap();
        });
        until(|| waiters(engine) == 1);
        b.begin(ReadCommitted, false);
        assert_eq!(b.lock_table(5, TableLock::AccessShare, Wait::Skip), Ok(false));
        assert_eq!(a.lock_table(5, TableLock::RowExclusive, Wait::Skip), Ok(true), "a holder may take more");
        a.commit(true).unwrap();
        strong.wait();
        assert_eq!(b.lock_table(5, TableLock::AccessShare, Wait::Skip), Ok(true));
        b.commit(true).unwrap();
        assert!(engine.locks().is_empty());
    });
}

#[test]
fn a_session_holds_more_table_locks_than_fit_its_slot() {
    Bench::new("many").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.begin(ReadCommitted, false);
        b.begin(ReadCommitted, false);
        for table in 1..100 {
            assert_eq!(a.lock_table(table, TableLock::RowExclusive, Wait::Block), Ok(true));
            assert_eq!(b.lock_table(table, TableLock::Share, Wait::Skip), Ok(false));
        }
        a.commit(true).unwrap();
        for table in 1..100 {
            assert_eq!(b.lock_table(table, TableLock::AccessExclusive, Wait::Skip), Ok(true));
        }
        b.rollback().unwrap();
        assert!(engine.locks().is_empty());
    });
}

#[test]
fn a_table_lock_given_up_leaves_those_taken_before() {
    use TableLock::{AccessExclusive, AccessShare, RowExclusive};
    Bench::new("given-up").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        // The lock is taken alone, beside locks of the same table, and after a strong locker has
        // moved those.
        for (before, taken) in
            [(None, AccessShare), (None, AccessExclusive), (Some(AccessShare), RowExclusive)]
                .into_iter()
                .chain([(Some(AccessShare), AccessExclusive), (Some(AccessExclusive), AccessShare)])
        {
            for moved in [false, true] {
                a.begin(ReadCommitted, false);
                b.begin(ReadCommitted, false);
                if let Some(before) = before {
                    assert_eq!(a.grant_table(5, before, Wait::Block), Ok(TableGrant::New));
                }
                assert_eq!(a.grant_table(5, taken, Wait::Block), Ok(TableGrant::New));
                assert_eq!(a.grant_table(5, taken, Wait::Block), Ok(TableGrant::Held));
                if moved {
                    assert_eq!(b.grant_table(5, AccessExclusive, Wait::Skip), Ok(TableGrant::Refused));
                }
                a.unlock_table(5, taken);
                assert!(!a.holds_table(5, taken) || before.is_some_and(|before| before > taken));
                let kept = match before {
                    None => Ok(true),
                    Some(_) => Ok(false),
                };
                assert_eq!(
                    b.lock_table(5, AccessExclusive, Wait::Skip),
                    kept,
                    "{before:?} {taken:?} {moved}"
                );
                assert_eq!(b.lock_table(5, AccessShare, Wait::Skip), Ok(before != Some(AccessExclusive)));
                b.rollback().unwrap();
                assert_eq!(a.lock_table(5, taken, Wait::Skip), Ok(true));
                a.commit(true).unwrap();
                assert!(engine.locks().is_empty(), "{:?}", engine.locks());
            }
        }
    });
}

#[test]
fn a_table_lock_given_up_lets_a_waiter_go_on() {
    Bench::new("given-up-waiter").run(|engine| {
        let a = engine.session().unwrap();
        a.begin(ReadCommitted, false);
        a.lock_table(4, TableLock::RowExclusive, Wait::Block).unwrap();
        let savepoint = a.savepoint();
        a.lock_table(5, TableLock::AccessExclusive, Wait::Block).unwrap();
        a.lock_table(6, TableLock::AccessExclusive, Wait::Block).unwrap();
        let b = aside(engine, |b| {
            b.begin(ReadCommitted, false);
            b.lock_table(5, TableLock::RowExclusive, Wait::Block).unwrap();
            b.commit(true).unwrap();
        });
        until(|| waiters(engine) == 1);
        a.unlock_table(5, TableLock::AccessExclusive);
        b.wait();
        a.rollback_to(savepoint).unwrap();
        assert_eq!(engine.locks().len(), 1, "the lock from before the savepoint stays");
        a.commit(true).unwrap();
        assert!(engine.locks().is_empty());
    });
}

#[test]
fn a_stronger_table_lock_goes_with_its_savepoint() {
    Bench::new("raised").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        let is_free = |mode| {
            b.begin(ReadCommitted, false);
            let free = b.lock_table(5, mode, Wait::Skip).unwrap();
            b.rollback().unwrap();
            free
        };
        for _ in 0..2 {
            a.begin(ReadCommitted, false);
            a.lock_table(5, TableLock::AccessShare, Wait::Block).unwrap();
            let outer = a.savepoint();
            a.lock_table(5, TableLock::Share, Wait::Block).unwrap();
            let inner = a.savepoint();
            a.lock_table(5, TableLock::AccessExclusive, Wait::Block).unwrap();
            assert!(!is_free(TableLock::AccessShare));
            a.rollback_to(inner).unwrap();
            assert!(is_free(TableLock::AccessShare));
            assert!(!is_free(TableLock::RowExclusive));
            a.lock_table(5, TableLock::AccessExclusive, Wait::Block).unwrap();
            a.release(inner).unwrap();
            a.rollback_to(outer).unwrap();
            assert!(is_free(TableLock::RowExclusive));
            assert!(!is_free(TableLock::AccessExclusive));
            a.release(outer).unwrap();
            a.lock_table(5, TableLock::Exclusive, Wait::Block).unwrap();
            let last = a.savepoint();
            a.rollback_to(last).unwrap();
            assert!(!is_free(TableLock::RowExclusive), "a mode from before the savepoint stays");
            a.commit(true).unwrap();
            assert!(engine.locks().is_empty(), "{:?}", engine.locks());
        }
    });
}

#[test]
fn advisory_locks_outlive_transactions() {
    Bench::new("advisory").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.begin(ReadCommitted, false);
        assert_eq!(a.lock_advisory(KEY, Share, true, Wait::Block), Ok(true));
        a.rollback().unwrap();
        assert_eq!(b.lock_advisory(KEY, Share, true, Wait::Skip), Ok(true));
        assert_eq!(b.lock_advisory(KEY, Exclusive, true, Wait::Skip), Ok(false));
        assert!(!a.unlock_advisory(KEY, Exclusive));
        assert!(a.unlock_advisory(KEY, Share));
        assert!(!a.unlock_advisory(KEY, Share));
        assert_eq!(b.lock_advisory(KEY, Exclusive, true, Wait::Skip), Ok(true));
        assert!(b.unlock_advisory(KEY, Exclusive));
        assert_eq!(a.lock_advisory(KEY, Share, true, Wait::Skip), Ok(true));
        a.unlock_all_advisory();
        b.unlock_all_advisory();
        assert!(engine.locks().is_empty());
        for class in [1, 2] {
            let other = AdvisoryKey { database: 2, ..KEY };
            assert_eq!(a.lock_advisory(AdvisoryKey { class, ..KEY }, Exclusive, true, Wait::Skip), Ok(true));
            assert_eq!(
                b.lock_advisory(AdvisoryKey { class, ..other }, Exclusive, true, Wait::Skip),
                Ok(true)
            );
        }
        drop((a, b));
        until(|| engine.locks().is_empty());
    });
}

#[test]
fn advisory_locks_are_counted() {
    Bench::new("counted").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        let is_free = || {
            let free = b.lock_advisory(KEY, Exclusive, true, Wait::Skip) == Ok(true);
            free && b.unlock_advisory(KEY, Exclusive)
        };
        let take = |for_session| a.lock_advisory(KEY, Exclusive, for_session, Wait::Block).unwrap();
        a.begin(ReadCommitted, false);
        take(false);
        take(true);
        take(true);
        take(false);
        a.commit(true).unwrap();
        assert!(!is_free());
        assert!(a.unlock_advisory(KEY, Exclusive) && !is_free());
        assert!(a.unlock_advisory(KEY, Exclusive) && is_free());
        // A savepoint takes back later locks and leaves earlier ones.
        a.begin(ReadCommitted, false);
        take(false);
        let first = a.savepoint();
        take(false);
        take(true);
        take(false);
        let second = a.savepoint();
        take(false);
        a.rollback_to(second).unwrap();
        assert!(!a.unlock_advisory(KEY, Share) && a.unlock_advisory(KEY, Exclusive) && !is_free());
        take(false);
        a.rollback_to(first).unwrap();
        assert!(!a.unlock_advisory(KEY, Exclusive) && !is_free());
        a.rollback().unwrap();
        assert!(is_free());
        a.begin(ReadCommitted, false);
        let only = a.savepoint();
        take(false);
        a.rollback_to(only).unwrap();
        assert!(is_free());
        take(false);
        a.unlock_all_advisory();
        assert!(!is_free());
        a.commit(true).unwrap();
        assert!(is_free());
        assert!(engine.locks().is_empty());
    });
}
