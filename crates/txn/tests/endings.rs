//! Sessions dropped away from home: on another core, on no worker, or on a worker of another
//! folder's runtime. Each case runs before and after the engine was closed.

mod common;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::common::{Bench, CORES, Short, open_engine, start_runtime, store_of, test_folder};
use runtime::stop::{self, Action};
use runtime::{Options, Runtime};
use txn::{Engine, Isolation, TableLock, TxnSession, Wait};

/// An event that takes longer than this counts as missing.
const LONG: Duration = Duration::from_secs(60);

/// Runs one test at a time, because stop points belong to the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A runtime other than the engine's, with more cores: its highest core number does not exist in
/// the engine's.
fn larger_runtime() -> Arc<Runtime> {
    let options = Options { cores: Some(CORES + 2), pin: false, ..Options::default() };
    Runtime::start(options).expect("the runtime starts")
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::yield_now();
    }
}

/// A session of core 1 with an open transaction.
fn unfinished(runtime: &Runtime, engine: &Arc<Engine>) -> TxnSession {
    runtime.call(1, || {
        let session = engine.session().expect("a session");
        session.start(Isolation::ReadCommitted);
        (0..100).for_each(|row| {
            session.put(&format!("new{row}"), "never");
        });
        session.set("old", "never");
        session.lock_table(77, TableLock::AccessExclusive, Wait::Block).expect("locks");
        session
    })
}

fn put_old(runtime: &Runtime, engine: &Arc<Engine>) {
    runtime.call(0, || {
        let session = engine.session().expect("a session");
        session.alone(|| session.put("old", "kept"));
    });
}

fn rows(runtime: &Runtime, engine: &Arc<Engine>) -> Vec<(String, String)> {
    runtime.call(0, || {
        let session = engine.session().expect("a session");
        session.alone(|| session.all())
    })
}

#[test]
fn a_session_is_taken_back_at_home_wherever_it_is_dropped() {
    let _alone = alone();
    let bench = Bench::new("endings-home");
    let (engine, larger) = (bench.engine(), larger_runtime());
    put_old(&bench.runtime, engine);
    type Place<'p> = (&'p str, Box<dyn Fn(TxnSession) + 'p>);
    let places: [Place<'_>; 5] = [
        ("its own core", Box::new(|session| bench.runtime.call(1, || drop(session)))),
        ("another core", Box::new(|session| bench.runtime.call(0, || drop(session)))),
        ("no worker", Box::new(drop)),
        ("the larger runtime's core of that number", Box::new(|session| larger.call(1, || drop(session)))),
        ("the larger runtime's core beyond", Box::new(|session| larger.call(CORES + 1, || drop(session)))),
    ];
    for (place, drop_there) in places {
        drop_there(unfinished(&bench.runtime, engine));
        until(place, || engine.locks().is_empty());
        assert_eq!(rows(&bench.runtime, engine), [("old".to_owned(), "kept".to_owned())], "{place}");
        // A session without a transaction gives its slot back, too. Otherwise later sessions would
        // use ever more slots.
        let idle = bench.runtime.call(1, || engine.session().expect("a session"));
        drop_there(idle);
    }
    assert_eq!(larger.call(CORES + 1, || 7), 7);
    larger.shutdown();
}

#[test]
fn a_session_that_outlives_its_engine_touches_nothing() {
    let _alone = alone();
    let folder = test_folder("endings-late");
    let _ = std::fs::remove_dir_all(&folder);
    let larger = larger_runtime();
    let first = start_runtime();
    let engine = open_engine(&first, &folder, 1024);
    put_old(&first, &engine);
    let late: Vec<TxnSession> = (0..2).map(|_| unfinished_row(&first, &engine)).collect();
    first.call(0, || engine.close().expect("closes"));
    let end = store_of(&engine).wal().position();
    // The engine is closed, but its workers still run.
    let mut late = late.into_iter();
    let session = late.next().expect("two sessions");
    first.call(1, move || drop(session));
    first.call(1, runtime::fiber::yield_now);
    assert_eq!(store_of(&engine).wal().position(), end, "a closed engine's log goes on");
    first.shutdown();
    // Another engine has its folder by now.
    let second = start_runtime();
    let successor = open_engine(&second, &folder, 1024);
    late.for_each(|session| larger.call(1, || drop(session)));
    larger.call(1, || runtime::fiber::sleep(Duration::from_millis(1)));
    assert_eq!(store_of(&engine).wal().position(), end, "a closed engine's log goes on");
    // Nothing keeps the closed engine alive, not even a message that no worker receives.
    let left = Arc::downgrade(&engine);
    drop(engine);
    until("the engine goes with its last session", || left.strong_count() == 0);
    assert_eq!(rows(&second, &successor), [("old".to_owned(), "kept".to_owned())]);
    second.call(0, || successor.close().expect("closes"));
    drop(successor);
    second.shutdown();
    larger.shutdown();
    let _ = std::fs::remove_dir_all(&folder);
}

/// A session of core 1 that has added one row; the row differs between sessions.
fn unfinished_row(runtime: &Runtime, engine: &Arc<Engine>) -> TxnSession {
    runtime.call(1, || {
        let session = engine.session().expect("a session");
        session.start(Isolation::ReadCommitted);
        session.put(&format!("new{}", session.txid().expect("a number")), "never");
        session
    })
}

#[test]
fn a_rollback_ends_where_its_engine_is_closed() {
    let _alone = alone();
    let mut bench = Bench::new("endings-closed");
    put_old(&bench.runtime, bench.engine());
    let session = unfinished(&bench.runtime, bench.engine());
    stop::arm("txn.rollback.step", Action::Park, Some(3));
    bench.runtime.call(1, || drop(session));
    until("the rollback comes to the point", || stop::hits("txn.rollback.step") == 3);
    let engine = Arc::clone(bench.engine());
    bench.runtime.call(0, || engine.close().expect("closes"));
    let end = store_of(&engine).wal().position();
    stop::release("txn.rollback.step");
    // Once this has run, every fiber that was ready on the core has run.
    bench.runtime.call(1, || (0..1000).for_each(|_| runtime::fiber::yield_now()));
    assert_eq!((stop::hits("txn.rollback.step"), store_of(&engine).wal().position()), (3, end));
    stop::clear();
    drop(engine);
    bench.reopen();
    assert_eq!(rows(&bench.runtime, bench.engine()), [("old".to_owned(), "kept".to_owned())]);
}

#[test]
fn a_session_goes_on_while_its_long_transaction_is_taken_back() {
    const ROWS: usize = 1100;
    let _alone = alone();
    let bench = Bench::new("endings-apart");
    let engine = bench.engine();
    put_old(&bench.runtime, engine);
    bench.runtime.call(0, || {
        let session = engine.session().expect("a session");
        session.set_label(7);
        session.start(Isolation::ReadCommitted);
        session.lock_table(77, TableLock::RowExclusive, Wait::Block).expect("locks");
        (0..ROWS).for_each(|row| {
            session.put(&format!("new{row}"), "never");
        });
        session.set("old", "never");
        assert_eq!(engine.kept_log().expect("it has written").session, 7);
        // The sleep makes the first changes take longer than the session's own part of a rollback.
        stop::arm("txn.rollback.step", Action::Sleep(Duration::from_millis(1)), None);
        session.rollback_apart().expect("begins to take back");
        stop::clear();
        assert!(!session.in_transaction());
        // The rest has not begun: this fiber has not let another one run.
        assert!(engine.locks().iter().all(|lock| lock.session == 7) && !engine.locks().is_empty());
        // The server must end no session for the log that it keeps.
        assert_eq!(engine.kept_log(), None);
        session.start(Isolation::ReadCommitted);
        assert_eq!(session.all(), [("old".to_owned(), "kept".to_owned())]);
        // These statements wait for the rollback.
        session.put("new0", "anew");
        session.set("old", "newer");
        session.lock_table(77, TableLock::AccessExclusive, Wait::Block).expect("locks");
        session.commit(true).expect("commits");
        // A small rollback is over when the call returns.
        session.start(Isolation::ReadCommitted);
        session.put("new1", "never");
        session.rollback_apart().expect("takes back");
        assert!(engine.locks().is_empty());
        drop(session);
    });
    let kept = [("new0".to_owned(), "anew".to_owned()), ("old".to_owned(), "newer".to_owned())];
    assert_eq!(rows(&bench.runtime, engine), kept);
}
