//! A full disk. Operations that need no space work, and those that wait for space go on when there
//! is some.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Bench, Short, open_engine, start_runtime, store_of, table, test_folder};
use runtime::fiber;
use runtime::stop;
use storage::Error as StorageError;
use txn::{Engine, Error, Isolation, TxnSession};

use Isolation::ReadCommitted;

const ROWS: usize = 1500;
/// Rows that the test shortens. Each makes a leaf that a rollback must split: about 24, and 200.
/// The store holds 32 pages back.
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

/// Fills the table with long rows.
fn prepare(engine: &Arc<Engine>) {
    let session = engine.session().unwrap();
    session.alone(|| {
        for row in 0..ROWS {
            session.put(&key(row), &long(row));
        }
    });
}

/// Shortens `rows` rows, spread over the table, in an open transaction. Lets another transaction
/// fill the pages until the disk is full. Returns the number of rows that the other one put there.
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

/// Checks that every long row is back, and that the other transaction's rows are there.
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

/// The only test of this file, because stop points belong to the process.
#[test]
fn a_rollback_works_on_a_full_disk() {
    let bench = Bench::new("full-disk");
    bench.run(|engine| {
        prepare(engine);
        // Here the reserve suffices.
        let session = engine.session().unwrap();
        let put = shorten_and_fill(engine, &session, FEW);
        assert!(put > FEW, "{put} rows found room");
        session.rollback().unwrap();
        check(engine, put);
        // Other sessions get nothing of the reserve.
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

    // More rows than the reserve covers: the rollback waits, and goes on when there is space.
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

    recovery_works_on_a_full_disk();
}

/// Recovery rolls back in the same way.
fn recovery_works_on_a_full_disk() {
    let folder = test_folder("full-disk-recovery");
    let _ = std::fs::remove_dir_all(&folder);
    let runtime = start_runtime();
    let engine = open_engine(&runtime, &folder, 1024);
    let put = runtime.call(0, || {
        prepare(&engine);
        let session = engine.session().unwrap();
        let put = shorten_and_fill(&engine, &session, MANY);
        store_of(&engine).wal().wait_durable(store_of(&engine).wal().position()).unwrap();
        store_of(&engine).abandon();
        // Recovery finds its changes.
        std::mem::forget(session);
        put
    });
    std::mem::forget(engine);
    runtime.shutdown();
    // The forgotten store holds its folder's lock for ever, so the test copies the folder.
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
