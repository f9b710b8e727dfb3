//! Everything at once, in a small pool: updates, deletions and insertions of rows of changing
//! length, row locks, savepoints, deadlocks, timeouts, rollbacks and vacuums. Each snapshot sees
//! the same sum throughout.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Bench, CORES, Short, open_engine, start_runtime, store_of, table, test_folder, until};
use runtime::{Runtime, fiber, random, time};
use sync::atomic::{AtomicU64, Ordering};
use txn::{
    Direction, Engine, Error, InsertOutcome, Isolation, LockOutcome, Outcome, Range, RowLock, TxnSession,
    Wait,
};

const ACCOUNTS: u64 = 60;
const START: u64 = 1000;
const SUM: u64 = ACCOUNTS * START;
const WORKERS: usize = 16;
const TIME: Duration = Duration::from_secs(4);
const KILLS: usize = 8;

fn below(bound: u64) -> u64 {
    random::u64() % bound
}

/// An account's key. Keys are far enough apart that separators and prefixes change.
fn key(account: u64) -> Vec<u8> {
    let mut key = format!("account {:03} ", account / 10).into_bytes();
    key.resize(20 + account as usize, b'k');
    key.extend_from_slice(&account.to_be_bytes());
    key
}

/// A row: the balance, then bytes of any length.
fn row(balance: u64) -> Vec<u8> {
    let mut row = balance.to_le_bytes().to_vec();
    row.resize(8 + below(1200) as usize, balance as u8);
    row
}

fn balance(row: &[u8]) -> u64 {
    u64::from_le_bytes(*row.first_chunk().expect("a row has a balance"))
}

/// Outcome of a step: whether the transaction goes on; false means that it must be rolled back.
type Step = Result<bool, Error>;

/// Replaces the balance by a new one, in one of several ways.
fn store(session: &TxnSession, key: &[u8], found: Option<txn::Stamp>, balance: u64) -> Step {
    let new = row(balance);
    let Some(seen) = found else {
        return Ok(balance == 0 || session.insert(&table(), key, &new)? == InsertOutcome::Done);
    };
    if balance > 0 && below(3) > 0 {
        return Ok(session.update(&table(), key, seen, &new)? == Outcome::Done);
    }
    if session.delete(&table(), key, seen)? != Outcome::Done {
        return Ok(false);
    }
    Ok(balance == 0 || session.insert(&table(), key, &new)? == InsertOutcome::Done)
}

/// Locks and reads the newest row of an account. Returns its version, or `None` without such an
/// account, and its balance.
fn find(session: &TxnSession, key: &[u8]) -> Result<(Option<txn::Stamp>, u64), Error> {
    let mut row = Vec::new();
    if below(4) == 0 {
        // Sometimes the session first takes a weaker lock.
        session.lock_row(&table(), key, RowLock::KeyShare, Wait::Block, &mut row)?;
    }
    match session.lock_row(&table(), key, RowLock::Update, Wait::Block, &mut row)? {
        LockOutcome::Locked(stamp) => Ok((Some(stamp), balance(&row))),
        _ => Ok((None, 0)),
    }
}

fn transfer(session: &TxnSession) -> Step {
    session.statement_start()?;
    let (from, to) = (key(below(ACCOUNTS)), key(below(ACCOUNTS)));
    if from == to {
        return Ok(true);
    }
    let (source, there) = find(session, &from)?;
    if below(5) == 0 {
        fiber::yield_now();
    }
    let (target, here) = find(session, &to)?;
    let amount = if below(6) == 0 { there } else { below(there + 1) };
    session.next_command();
    Ok(store(session, &from, source, there - amount)? && store(session, &to, target, here + amount)?)
}

fn transaction(session: &TxnSession, done: &AtomicU64) {
    let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead][below(2) as usize];
    session.begin(isolation, false);
    session.wait_limits().set_lock_timeout(Some(Duration::from_millis([0, 0, 3][below(3) as usize])));
    for _ in 0..=below(3) {
        let savepoint = (below(2) == 0).then(|| session.savepoint());
        let step = transfer(session);
        match (step, savepoint) {
            (Ok(true), Some(savepoint)) if below(2) == 0 => session.rollback_to(savepoint).unwrap(),
            (Ok(true), _) => {}
            (Ok(false) | Err(Error::LockNotAvailable | Error::LockTimeout), Some(savepoint)) => {
                session.rollback_to(savepoint).unwrap();
            }
            (
                Ok(false)
                | Err(
                    Error::Deadlock
                    | Error::Serialization
                    | Error::ConcurrentDelete
                    | Error::LockNotAvailable
                    | Error::LockTimeout,
                ),
                _,
            ) => {
                return session.rollback().unwrap();
            }
            (Err(error), _) => panic!("{error}"),
        }
    }
    if below(8) == 0 {
        return session.rollback().unwrap();
    }
    session.commit(below(2) == 0).unwrap();
    done.fetch_add(1, Ordering::SeqCst);
}

fn sum(session: &TxnSession, direction: Direction) -> u64 {
    let mut scan = session.scan(&table(), Range::ALL, direction);
    let mut sum = 0;
    while let Some(balance) = scan.next(session).expect("scans").map(|(_, row, _)| balance(row)) {
        sum += balance;
        fiber::safe_point();
    }
    sum
}

fn sum_of_points(session: &TxnSession) -> u64 {
    let mut row = Vec::new();
    let mut get =
        |account| session.get(&table(), &key(account), &mut row).unwrap().map_or(0, |_| balance(&row));
    (0..ACCOUNTS).map(&mut get).sum()
}

fn read(session: &TxnSession) {
    let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead][below(2) as usize];
    session.start(isolation);
    for _ in 0..3 {
        let direction = [Direction::Forward, Direction::Backward][below(2) as usize];
        assert_eq!(sum(session, direction), SUM, "{isolation:?} {direction:?}");
        fiber::yield_now();
        assert_eq!(sum_of_points(session), SUM, "{isolation:?}, by key");
        session.statement_end();
        session.statement_start().unwrap();
    }
    session.commit(below(2) == 0).unwrap();
}

fn fill(engine: &Arc<Engine>) {
    let session = engine.session().unwrap();
    session.alone(|| {
        for account in 0..ACCOUNTS {
            session.insert(&table(), &key(account), &row(START)).unwrap();
        }
    });
}

/// Starts all workers. Returns the number that still run, and the number of transactions done.
fn start(runtime: &Runtime, engine: &Arc<Engine>, duration: Duration) -> (Arc<AtomicU64>, Arc<AtomicU64>) {
    let (running, done) = (Arc::new(AtomicU64::new(WORKERS as u64)), Arc::new(AtomicU64::new(0)));
    for worker in 0..WORKERS {
        let (engine, running, done) = (Arc::clone(engine), Arc::clone(&running), Arc::clone(&done));
        runtime.spawn(worker % CORES, move || {
            let session = engine.session().unwrap();
            let end = time::precise() + duration.as_nanos() as u64;
            while time::precise() < end {
                match worker {
                    0 => {
                        engine.vacuum(&table()).unwrap();
                        fiber::sleep(Duration::from_millis(2));
                    }
                    1 => {
                        engine.folder().checkpoint().unwrap();
                        fiber::sleep(Duration::from_millis(below(30)));
                    }
                    2..=5 => read(&session),
                    _ => transaction(&session, &done),
                }
            }
            drop(session);
            running.fetch_sub(1, Ordering::SeqCst);
        });
    }
    (running, done)
}

fn check(engine: &Arc<Engine>) {
    let session = engine.session().unwrap();
    session.start(Isolation::ReadCommitted);
    assert_eq!((sum(&session, Direction::Forward), sum_of_points(&session)), (SUM, SUM));
    session.commit(true).unwrap();
    until(|| engine.locks().is_empty());
    until(|| engine.horizon() == engine.next_txid());
    let report = table().check(&store_of(engine)).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    // The tree's pages, the store's own page and the space map are in use; every other page is
    // free.
    let (pages, free) = engine.folder().pages();
    assert_eq!(u64::from(pages - free), report.pages + 2, "pages in use that nobody refers to");
}

fn turmoil(name: &str, frames: usize) {
    let bench = Bench::with_frames(name, frames);
    bench.run(fill);
    let (running, done) = start(&bench.runtime, bench.engine(), TIME);
    bench.run(|engine| {
        until(|| running.load(Ordering::SeqCst) == 0);
        check(engine);
        assert!(done.load(Ordering::SeqCst) > 100);
    });
}

#[test]
fn every_snapshot_sees_the_same_sum() {
    turmoil("turmoil", 1024);
}

#[test]
fn every_snapshot_sees_the_same_sum_in_a_tiny_pool() {
    turmoil("turmoil-tiny", 64);
}

/// The test starts itself as a child and kills it at a random moment, which may lie in the child's
/// recovery.
#[test]
fn a_kill_changes_no_sum() {
    const CHILD: &str = "ALLCORE_TXN_TURMOIL_CHILD";
    if let Some(folder) = std::env::var_os(CHILD) {
        let runtime = start_runtime();
        let engine = open_engine(&runtime, Path::new(&folder), 128);
        start(&runtime, &engine, 4 * TIME);
        std::thread::sleep(4 * TIME);
        return;
    }
    let folder = test_folder("turmoil-kills");
    let _ = std::fs::remove_dir_all(&folder);
    let open_and = |body: fn(&Arc<Engine>)| {
        let runtime = start_runtime();
        let engine = open_engine(&runtime, &folder, 128);
        runtime.call(0, || {
            body(&engine);
            engine.close().unwrap();
        });
        drop(engine);
        runtime.shutdown();
    };
    open_and(fill);
    for round in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "turmoil::a_kill_changes_no_sum", "--nocapture"])
            .env(CHILD, &folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(20 + below(600)));
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success());
        if round % 3 != 0 {
            open_and(check);
        }
    }
    open_and(check);
    let _ = std::fs::remove_dir_all(&folder);
}
