//! Many sessions at once, on all cores, with invariants that hold for any interleaving.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Bench, CORES, Short, table, until};
use runtime::{fiber, random};
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use txn::{Direction, Engine, Error, Isolation, LockOutcome, Outcome, Range, RowLock, TxnSession, Wait};

use Isolation::{ReadCommitted, RepeatableRead};

const ACCOUNTS: u64 = 20;
const START: u64 = 1000;

fn key(account: u64) -> String {
    format!("account {account:03}")
}

/// Runs `body(worker)` in `workers` fibers spread over the cores, each on its own session, and
/// waits for all.
fn everywhere(bench: &Bench, workers: usize, body: impl Fn(usize, &TxnSession) + Send + Sync + 'static) {
    let body = Arc::new(body);
    let running = Arc::new(AtomicU64::new(workers as u64));
    for worker in 0..workers {
        let (body, running, engine) = (Arc::clone(&body), Arc::clone(&running), Arc::clone(bench.engine()));
        bench.runtime.spawn(worker % CORES, move || {
            let session = engine.session().unwrap();
            body(worker, &session);
            drop(session);
            running.fetch_sub(1, Ordering::SeqCst);
        });
    }
    bench.run(|_| until(|| running.load(Ordering::SeqCst) == 0));
}

fn value(session: &TxnSession, key: &str) -> u64 {
    session.read(key).expect("is there").parse().expect("a number")
}

/// Adds to an account as a read-committed statement does: after a change it begins again with the
/// newest row, locked.
fn add(session: &TxnSession, account: u64, amount: i64) -> Result<(), Error> {
    let key = key(account);
    session.statement_start()?;
    let mut row = Vec::new();
    let mut seen = session.get(&table(), key.as_bytes(), &mut row)?.expect("is there");
    loop {
        let balance: u64 = crate::common::text(&row).parse().expect("a number");
        let next = balance.wrapping_add_signed(amount).to_string();
        match session.update(&table(), key.as_bytes(), seen, next.as_bytes())? {
            Outcome::Done => return Ok(()),
            Outcome::Changed => match session.lock_row(
                &table(),
                key.as_bytes(),
                RowLock::NoKeyUpdate,
                Wait::Block,
                &mut row,
            )? {
                LockOutcome::Locked(newest) => seen = newest,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }
}

fn total(session: &TxnSession) -> (u64, usize) {
    let all = session.all();
    (all.iter().map(|(_, row)| row.parse::<u64>().expect("a number")).sum(), all.len())
}

fn fill(engine: &Arc<Engine>) {
    let session = engine.session().unwrap();
    session.alone(|| {
        for account in 0..ACCOUNTS {
            session.put(&key(account), &START.to_string());
        }
    });
}

fn transfers(isolation: Isolation, name: &str) {
    let bench = Bench::new(name);
    bench.run(fill);
    let stop = Arc::new(AtomicBool::new(false));
    let (done, given_up) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (ended, counts) = (Arc::clone(&stop), (Arc::clone(&done), Arc::clone(&given_up)));
    let writers = Arc::new(AtomicU64::new(8));
    everywhere(&bench, 12, move |worker, session| {
        if worker >= 8 {
            // Readers: every snapshot sees the same sum.
            let direction = if worker % 2 == 0 { Direction::Forward } else { Direction::Backward };
            while !ended.load(Ordering::SeqCst) {
                session.start(if worker < 10 { ReadCommitted } else { RepeatableRead });
                assert_eq!(total(session), (ACCOUNTS * START, ACCOUNTS as usize), "{direction:?}");
                fiber::yield_now();
                session.commit(false).unwrap();
            }
            return;
        }
        for round in 0..400 {
            let (from, to) = (random::u64() % ACCOUNTS, random::u64() % ACCOUNTS);
            session.begin(isolation, false);
            let moved = add(session, from, -1).and_then(|()| {
                if round % 7 == 0 {
                    fiber::yield_now();
                }
                add(session, to, 1)
            });
            match moved {
                Ok(()) if round % 11 != 0 => {
                    session.commit(round % 5 != 0).unwrap();
                    counts.0.fetch_add(1, Ordering::SeqCst);
                }
                Ok(()) => session.rollback().unwrap(),
                Err(Error::Deadlock | Error::Serialization) => {
                    session.rollback().unwrap();
                    counts.1.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) => panic!("{error}"),
            }
        }
        if writers.fetch_sub(1, Ordering::SeqCst) == 1 {
            ended.store(true, Ordering::SeqCst);
        }
    });
    bench.run(|engine| {
        let session = engine.session().unwrap();
        session.start(ReadCommitted);
        assert_eq!(total(&session), (ACCOUNTS * START, ACCOUNTS as usize));
        session.commit(true).unwrap();
        assert!(engine.locks().is_empty(), "{:?}", engine.locks());
        assert!(done.load(Ordering::SeqCst) > 100, "{done:?} done, {given_up:?} given up");
        // Nothing holds the horizon back, though other cores are idle now.
        until(|| engine.horizon() == engine.next_txid());
    });
}

#[test]
fn transfers_keep_the_sum_in_read_committed() {
    transfers(ReadCommitted, "transfers-rc");
}

#[test]
fn transfers_keep_the_sum_in_repeatable_read() {
    transfers(RepeatableRead, "transfers-rr");
}

#[test]
fn no_increment_of_a_hot_row_is_lost() {
    let bench = Bench::new("hot");
    bench.run(fill);
    everywhere(&bench, 16, |_, session| {
        for _ in 0..100 {
            session.begin(ReadCommitted, false);
            add(session, 0, 1).expect("one row can't deadlock");
            session.commit(true).unwrap();
        }
    });
    bench.run(|engine| {
        let session = engine.session().unwrap();
        assert_eq!(session.alone(|| value(&session, &key(0))), START + 1600);
    });
}

#[test]
fn snapshot_isolation_loses_no_update_and_allows_write_skew() {
    Bench::new("skew").run(|engine| {
        fill(engine);
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        // Lost update: both read, both write the same row; the second is refused.
        a.start(RepeatableRead);
        b.start(RepeatableRead);
        let (seen, read) = (b.stamp(&key(1)).unwrap(), value(&a, &key(1)));
        a.set(&key(1), &(read + 1).to_string());
        a.commit(true).unwrap();
        assert_eq!(b.update(&table(), key(1).as_bytes(), seen, b"0"), Err(Error::Serialization));
        b.rollback().unwrap();
        // Write skew: each reads both and writes one. Snapshot isolation lets both commit.
        a.start(RepeatableRead);
        b.start(RepeatableRead);
        let sums = [&a, &b].map(|session| value(session, &key(2)) + value(session, &key(3)));
        assert_eq!(sums, [2 * START, 2 * START]);
        assert_eq!((a.set(&key(2), "0"), b.set(&key(3), "0")), (Outcome::Done, Outcome::Done));
        a.commit(true).unwrap();
        b.commit(true).unwrap();
        assert_eq!(a.alone(|| value(&a, &key(2)) + value(&a, &key(3))), 0);
    });
}

#[test]
fn unique_keys_stay_unique_under_races_of_insert_and_delete() {
    let bench = Bench::new("unique");
    let live = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&live);
    everywhere(&bench, 8, move |worker, session| {
        for round in 0..300 {
            let key = format!("key {}", random::u64() % 5);
            session.start(ReadCommitted);
            if (worker + round) % 2 == 0 {
                let inserted = session.put(&key, &worker.to_string()) == txn::InsertOutcome::Done;
                session.commit(false).unwrap();
                count.fetch_add(u64::from(inserted), Ordering::SeqCst);
            } else {
                let seen = session.stamp(&key);
                let deleted = seen.is_some_and(|seen| {
                    session.delete(&table(), key.as_bytes(), seen).unwrap() == Outcome::Done
                });
                session.commit(false).unwrap();
                count.fetch_sub(u64::from(deleted), Ordering::SeqCst);
            }
        }
    });
    bench.run(|engine| {
        let session = engine.session().unwrap();
        assert_eq!(session.alone(|| session.all()).len() as u64, live.load(Ordering::SeqCst));
        assert!(engine.locks().is_empty());
    });
}

#[test]
fn sessions_that_die_anywhere_leave_nothing_behind() {
    let bench = Bench::new("dying");
    bench.run(fill);
    everywhere(&bench, 8, |_, _| {
        // This round is no measurement: it warms the cores' fibers.
    });
    for core in 0..CORES {
        for _ in 0..50 {
            let engine = Arc::clone(bench.engine());
            bench.runtime.spawn(core, move || {
                let session = engine.session().unwrap();
                session.begin(ReadCommitted, false);
                for _ in 0..random::u64() % 5 {
                    // The sessions take keys in order, so that none deadlocks before it dies.
                    if add(&session, random::u64() % 2, 7).is_err() {
                        break;
                    }
                }
                // The session is dropped here, in the middle of its transaction.
            });
        }
    }
    bench.run(|engine| {
        let session = engine.session().unwrap();
        until(|| engine.locks().is_empty());
        assert_eq!(session.alone(|| total(&session)), (ACCOUNTS * START, ACCOUNTS as usize));
        until(|| engine.horizon() == engine.next_txid());
    });
}

#[test]
fn one_old_snapshot_reads_the_same_through_a_storm_of_changes_and_vacuums() {
    let bench = Bench::with_frames("storm", 128);
    bench.run(fill);
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    everywhere(&bench, 6, move |worker, session| match worker {
        0 => {
            for _ in 0..10 {
                session.start(RepeatableRead);
                let first = session.all();
                for _ in 0..10 {
                    fiber::sleep(Duration::from_millis(1));
                    assert_eq!(session.all(), first);
                    let mut backward = session.scan(&table(), Range::ALL, Direction::Backward);
                    let last =
                        backward.next(session).unwrap().map(|(key, row, _)| (key.to_vec(), row.to_vec()));
                    let expected =
                        first.last().map(|(key, row)| (key.clone().into_bytes(), row.clone().into_bytes()));
                    assert_eq!(last, expected);
                }
                session.commit(true).unwrap();
            }
            ended.store(true, Ordering::SeqCst);
        }
        1 => {
            while !ended.load(Ordering::SeqCst) {
                session.engine().vacuum(&table()).unwrap();
                fiber::sleep(Duration::from_millis(2));
            }
        }
        _ => {
            while !ended.load(Ordering::SeqCst) {
                // The name belongs to this worker, so that no session waits.
                let key = format!("row {worker} {:03}", random::u64() % 200);
                session.start(ReadCommitted);
                match session.stamp(&key) {
                    Some(seen) if random::u64().is_multiple_of(2) => {
                        drop(session.delete(&table(), key.as_bytes(), seen))
                    }
                    Some(seen) => drop(session.update(&table(), key.as_bytes(), seen, &[b'x'; 700])),
                    None => drop(session.put(&key, "new")),
                }
                if random::u64().is_multiple_of(10) {
                    session.rollback().unwrap()
                } else {
                    session.commit(false).unwrap()
                }
                // The pace lets versions pile up on every row faster than the reader reads, but not
                // without bound.
                if random::u64().is_multiple_of(8) {
                    fiber::sleep(Duration::from_millis(1));
                }
            }
        }
    });
    let range =
        Range { lower: Bound::Included(b"account".as_slice()), upper: Bound::Excluded(b"b".as_slice()) };
    bench.run(|engine| {
        let session = engine.session().unwrap();
        session.start(ReadCommitted);
        let mut scan = session.scan(&table(), range, Direction::Forward);
        let mut found = 0;
        while scan.next(&session).unwrap().is_some() {
            found += 1;
        }
        session.commit(true).unwrap();
        assert_eq!(found, ACCOUNTS);
    });
}
