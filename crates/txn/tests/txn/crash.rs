//! Kills under load, again and again. Every acknowledged commit is there; every other transaction
//! is there as a whole or absent.
//!
//! The test starts itself as a child with a folder and a stop point. The child runs transfers,
//! notes each acknowledged commit in a file, and kills itself at the stop point. The parent opens
//! the store and compares.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::common::{CORES, Short, open_engine, start_runtime, store_of, table, test_folder, text};
use runtime::fiber;
use runtime::stop;
use txn::{Engine, Isolation, Outcome, TxnSession};

const WORKERS: usize = 4;
const ROWS: usize = 3;
const CHILD: &str = "ALLCORE_TXN_CRASH_CHILD";

fn key(worker: usize, row: usize) -> String {
    format!("worker {worker} row {row}")
}

/// Each transaction sets all rows of its worker to the same number. It does so in two statements,
/// with a savepoint that is rolled back between them. Every third transaction is rolled back.
fn round(session: &TxnSession, worker: usize, number: u64) {
    let value = format!("{number:020}{}", "-".repeat((number % 300) as usize));
    session.start(Isolation::ReadCommitted);
    for row in 0..ROWS {
        assert_eq!(session.set(&key(worker, row), &value), Outcome::Done);
    }
    let savepoint = session.savepoint();
    session.statement_start().unwrap();
    assert_eq!(session.set(&key(worker, 0), "never seen"), Outcome::Done);
    session.put(&format!("worker {worker} extra {number}"), "never seen");
    session.rollback_to(savepoint).unwrap();
    if number.is_multiple_of(3) {
        session.rollback().unwrap();
    } else {
        session.commit(true).unwrap();
    }
}

fn acknowledged(folder: &Path, worker: usize) -> PathBuf {
    folder.with_extension(format!("acknowledged-{worker}"))
}

/// The child. It returns only if its stop point is never reached.
fn run_child(folder: &Path) {
    let runtime = start_runtime();
    let engine = open_engine(&runtime, folder, 128);
    stop::arm_from_environment().expect("a stop point");
    for worker in 0..WORKERS {
        let (engine, folder) = (Arc::clone(&engine), folder.to_owned());
        runtime.spawn(worker % CORES, move || work(&engine, &folder, worker));
    }
    std::thread::sleep(std::time::Duration::from_secs(20));
}

fn work(engine: &Arc<Engine>, folder: &Path, worker: usize) {
    let session = engine.session().unwrap();
    let mut number: u64 = last(folder, worker) + 1;
    let mut log: File =
        OpenOptions::new().create(true).append(true).open(acknowledged(folder, worker)).unwrap();
    loop {
        round(&session, worker, number);
        if !number.is_multiple_of(3) {
            // One write, so the kill comes before or after it.
            log.write_all(format!("{number:020}\n").as_bytes()).unwrap();
        }
        number += 1;
        fiber::safe_point();
    }
}

/// The last commit that was acknowledged to this worker.
fn last(folder: &Path, worker: usize) -> u64 {
    let log = fs::read_to_string(acknowledged(folder, worker)).unwrap_or_default();
    log.lines().last().map_or(0, |line| line.parse().expect("a whole line"))
}

fn check(engine: &Arc<Engine>, folder: &Path) {
    let session = engine.session().unwrap();
    let all = session.alone(|| session.all());
    assert_eq!(all.len(), WORKERS * ROWS, "rows of transactions that were taken back: {all:?}");
    for worker in 0..WORKERS {
        let rows: Vec<&String> = all
            .iter()
            .filter(|(key, _)| key.starts_with(&format!("worker {worker} ")))
            .map(|(_, row)| row)
            .collect();
        assert!(rows.iter().all(|row| *row == rows[0]), "half a transaction of worker {worker}: {rows:?}");
        let number: u64 = rows[0][..20].parse().expect("a number");
        let acknowledged = last(folder, worker);
        // At most one commit was in progress and may have succeeded.
        assert!(
            number >= acknowledged && number <= acknowledged + 3,
            "worker {worker}: {number}, {acknowledged}"
        );
        assert!(number == 0 || !number.is_multiple_of(3), "a transaction that was rolled back");
    }
    // Stored headers are intact too: a look-up finds every key.
    session.start(Isolation::ReadCommitted);
    for (key, row) in &all {
        let mut found = Vec::new();
        assert!(session.get(&table(), key.as_bytes(), &mut found).unwrap().is_some());
        assert_eq!(text(&found), *row);
    }
    session.commit(true).unwrap();
}

#[test]
fn acknowledged_commits_survive_kills() {
    if let Some(folder) = std::env::var_os(CHILD) {
        run_child(Path::new(&folder));
        return;
    }
    let folder = test_folder("crash");
    let _ = fs::remove_dir_all(&folder);
    prepare(&folder);
    let points = [
        "txn.commit.before_append=kill@150",
        "txn.commit.appended=kill@200",
        "txn.commit.before_publish=kill@100",
        "txn.rollback.step=kill@301",
        "log.flush.before_write=kill@120",
        "log.flush.after_write=kill@90",
    ];
    for point in points {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::acknowledged_commits_survive_kills", "--nocapture"])
            .env(CHILD, &folder)
            .env("ALLCORE_STOP", point)
            .output()
            .unwrap();
        assert!(!child.status.success(), "{point} was not reached");
        let said = String::from_utf8_lossy(&child.stderr).into_owned();
        assert!(!said.contains("panicked"), "{point}: {said}");
        let runtime = start_runtime();
        let engine = open_engine(&runtime, &folder, 128);
        runtime.call(0, || check(&engine, &folder));
        if point.contains("rollback") {
            // The check runs once more from the state that recovery left, without a clean end
            // between.
            runtime.call(0, || store_of(&engine).abandon());
        } else {
            runtime.call(0, || engine.close().unwrap());
        }
        drop(engine);
        runtime.shutdown();
    }
    let _ = fs::remove_dir_all(&folder);
    (0..WORKERS).for_each(|worker| drop(fs::remove_file(acknowledged(&folder, worker))));
}

fn prepare(folder: &Path) {
    let runtime = start_runtime();
    let engine = open_engine(&runtime, folder, 128);
    runtime.call(0, || {
        let session = engine.session().unwrap();
        session.alone(|| {
            for worker in 0..WORKERS {
                let _ = fs::remove_file(acknowledged(folder, worker));
                (0..ROWS).for_each(|row| {
                    session.put(&key(worker, row), &format!("{:020}", 0));
                });
            }
        });
        engine.close().unwrap();
    });
    drop(engine);
    runtime.shutdown();
}
