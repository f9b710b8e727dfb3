//! A full disk: what must work without space works, and what waits for space goes on when there is some.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{Bench, Short, open_engine, start_runtime, table, test_folder};
use runtime::fiber;
use storage::Error as StorageError;
use sync::stop;
use txn::{Engine, Error, Isolation, TxnSession};

use Isolation::ReadCommitted;

const ROWS: usize = 1500;
/// Rows shortened, and so leaves that putting them back splits: some 24, and 200. 32 pages are held back.
const FEW: usize = 24;
const MANY: usize = ROWS;

fn key(row: usize) -> String {
    format!("{row:06}")
}

fn long(row: usize) -> String {
    format!("{row:0>1000}")
}

fn fill_disk() {
    // No space left on device.
    stop::arm_all("storage.space.grow=fail:28; log.segment.make=fail:28").unwrap();
}

/// Long rows.
fn prepare(engine: &Arc<Engine>) {
    let session = engine.session().unwrap();
    session.alone(|| {
        for row in 0..ROWS {
            session.put(&key(row), &long(row));
        }
    });
}

/// Makes the first `rows` of every leaf-full short in an open transaction, and lets another one fill the pages up until
/// the disk is full. Gives how many rows it put there.
fn shorten_and_fill(engine: &Arc<Engine>, session: &TxnSession, rows: usize) -> usize {
    session.start(ReadCommitted);
    let step = ROWS / rows;
    for row in (0..ROWS).step_by(step) {
        session.set(&key(row), "short");
    }
    fill_disk();
    let other = engine.session().unwrap();
    let mut put = 0;
    for row in (0..ROWS).step_by(step) {
        for part in 0..2 {
            other.start(ReadCommitted);
            let key = format!("{}-{part}", key(row));
            match other.insert(&table(), key.as_bytes(), &[b'o'; 480]) {
                Ok(_) => {
                    other.commit(false).unwrap();
                    put += 1;
                }
                Err(Error::Storage(StorageError::DiskFull(_))) => other.rollback().unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
    }
    put
}

/// Every long row is back, and what the other one put is there.
fn check(engine: &Arc<Engine>, put: usize) {
    let session = engine.session().unwrap();
    session.start(ReadCommitted);
    let all = session.all();
    assert_eq!(all.iter().filter(|(key, _)| key.len() == 8).count(), put);
    let long_rows: Vec<_> = all.iter().filter(|(key, _)| key.len() == 6).collect();
    assert_eq!(long_rows.len(), ROWS);
    assert!(long_rows.iter().all(|(key, row)| *row == long(key.parse().unwrap())));
    session.commit(true).unwrap();
}

/// The one test here: stop points are the process's.
#[test]
fn what_was_done_is_taken_back_on_a_full_disk() {
    let bench = Bench::new("full-disk");
    bench.run(|engine| {
        prepare(engine);
        // What is held back does.
        let session = engine.session().unwrap();
        let put = shorten_and_fill(engine, &session, FEW);
        assert!(put > FEW, "{put} rows found room");
        session.rollback().unwrap();
        check(engine, put);
        // Nothing for others.
        let refused = (0..).map(|row| {
            let other = engine.session().unwrap();
            other.start(ReadCommitted);
            let key = format!("{row:06}-z");
            let refused = other.insert(&table(), key.as_bytes(), &[b'o'; 2000]).is_err();
            other.rollback().unwrap();
            refused
        });
        assert!(refused.take(ROWS).any(|refused| refused));
        stop::clear();
    });
    drop(bench);

    // More than is held back: the rollback waits, and goes on when there is space.
    let bench = Bench::new("full-disk-long");
    bench.run(|engine| {
        prepare(engine);
        let session = engine.session().unwrap();
        let put = shorten_and_fill(engine, &session, MANY);
        fiber::spawn_local(|| {
            fiber::sleep(Duration::from_millis(1500));
            stop::clear();
        });
        let begun = runtime::time::precise();
        session.rollback().unwrap();
        assert!(runtime::time::precise() - begun > 1_000_000_000, "what is held back was enough");
        check(engine, put);
    });
    drop(bench);

    // Recovery takes back the same way.
    let folder = test_folder("full-disk-recovery");
    let _ = std::fs::remove_dir_all(&folder);
    let runtime = start_runtime();
    let engine = open_engine(&runtime, &folder, 1024);
    let put = runtime.call(0, || {
        prepare(&engine);
        let session = engine.session().unwrap();
        let put = shorten_and_fill(&engine, &session, MANY);
        engine.store().wal.wait_durable(engine.store().wal.position()).unwrap();
        engine.store().abandon();
        // Its changes stay for recovery.
        std::mem::forget(session);
        put
    });
    std::mem::forget(engine);
    runtime.shutdown();
    // That life holds its folder's lock for ever: what it left is copied.
    let left = test_folder("full-disk-left");
    let _ = std::fs::remove_dir_all(&left);
    copy(&folder, &left);
    let runtime = start_runtime();
    let waiter = std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(2500));
        stop::clear();
    });
    let begun = runtime::time::precise();
    let engine = open_engine(&runtime, &left, 1024);
    assert!(runtime::time::precise() - begun > 1_000_000_000, "recovery had space enough");
    waiter.join().unwrap();
    runtime.call(0, || {
        check(&engine, put);
        engine.close().unwrap();
    });
    drop(engine);
    runtime.shutdown();
    let _ = std::fs::remove_dir_all(&folder);
    let _ = std::fs::remove_dir_all(&left);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}
