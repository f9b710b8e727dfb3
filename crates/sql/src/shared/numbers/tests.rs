//! Counters whose sequences change while they are in use.

use std::time::{Duration, Instant};

use super::*;
use crate::database::{Database, Options};
use crate::embedded::EmbeddedSession;

struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("allcore-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn open(&self) -> Database {
        let options = Options { cores: Some(2), pin: false, memory: Some(32 << 20), ..Options::default() };
        Database::open(&self.0, options).expect("the folder opens")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs statements that must succeed; returns the last row's last value.
#[track_caller]
fn last(session: &mut EmbeddedSession, sql: &str) -> String {
    let answer = session.run(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    answer.texts.last().and_then(|row| row.last().cloned()).flatten().unwrap_or_default()
}

/// The number of counters that have records.
fn records(database: &Database) -> usize {
    let shared = &database.shared;
    let list = || shared.internal(|txn| system::list(txn, system::SEQUENCES, &[])).expect("reads").len();
    shared.runtime.call(0, list)
}

/// A sequence as the newest catalog has it.
fn seen(database: &Database, name: &str) -> Arc<Sequence> {
    let catalog = database.shared.database("postgres").expect("is there").catalog();
    let mut sequences = catalog.sequences();
    Arc::clone(sequences.find(|sequence| sequence.name == name).expect("is there"))
}

#[test]
fn a_statement_that_sees_an_old_definition_counts_on() {
    let folder = Folder::new("counters-old");
    let mut database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    last(&mut s, "CREATE SEQUENCE s; CREATE TABLE t (id serial)");
    drop(s);
    let steps = [
        ("s", "ALTER SEQUENCE s RESTART", "1"),
        ("s", "ALTER SEQUENCE s RESTART WITH 5", "5"),
        ("t_id_seq", "TRUNCATE t RESTART IDENTITY", "1"),
        ("s", "DROP SEQUENCE s; CREATE SEQUENCE s", "1"),
    ];
    for (name, change, then) in steps {
        for reopen in [false, true] {
            let mut s = database.session("postgres", 0).expect("a session");
            let next = format!("SELECT nextval('{name}')");
            let before: i64 =
                (0..3).map(|_| last(&mut s, &next).parse().expect("a number")).max().unwrap_or(0);
            let kept = records(&database);
            if reopen {
                drop(s);
                database.shutdown().expect("closes");
                drop(database);
                database = folder.open();
                s = database.session("postgres", 0).expect("a session");
            }
            // A statement that began before uses this definition.
            let sequence = seen(&database, name);
            last(&mut s, change);
            assert_eq!(last(&mut s, &next), then, "{change}");
            let value = database.shared.runtime.call(0, || database.shared.sequence_next(&sequence));
            let (value, _) = value.expect("has a next value");
            assert!(value > before, "{change}: {value} again after {before}");
            assert_eq!(records(&database), kept, "{change}");
            // The counter writes no record either when it goes on for long.
            let many = || (0..100).try_for_each(|_| database.shared.sequence_next(&sequence).map(drop));
            database.shared.runtime.call(0, many).expect("has next values");
            assert_eq!(records(&database), kept, "{change}");
            drop(s);
        }
    }
    database.shutdown().expect("closes");
}

#[test]
fn no_record_stays_of_a_counter_that_nobody_uses() {
    let folder = Folder::new("counters-left");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    assert_eq!(last(&mut s, "CREATE SEQUENCE s; SELECT nextval('s')"), "1");
    let again = "ALTER SEQUENCE s RESTART WITH 50; SELECT nextval('s')";
    assert_eq!(last(&mut s, &format!("BEGIN; {again}")), "50");
    assert_eq!((last(&mut s, "ROLLBACK; SELECT nextval('s')"), records(&database)), ("2".to_owned(), 1));
    // Errors in a block, and outside of one.
    assert!(s.run(&format!("BEGIN; {again}; SELECT 1 / 0")).is_err());
    assert_eq!((last(&mut s, "ROLLBACK; SELECT nextval('s')"), records(&database)), ("3".to_owned(), 1));
    assert!(s.run(&format!("{again}; SELECT 1 / 0")).is_err());
    assert_eq!((last(&mut s, "SELECT nextval('s')"), records(&database)), ("4".to_owned(), 1));
    // A savepoint keeps everything that came before it.
    last(&mut s, &format!("BEGIN; SAVEPOINT a; {again}; ROLLBACK TO a"));
    assert_eq!(
        (last(&mut s, "SELECT nextval('s'); COMMIT; SELECT nextval('s')"), records(&database)),
        ("6".to_owned(), 1)
    );
    last(&mut s, &format!("BEGIN; {again}; SAVEPOINT a; {again}; CREATE SEQUENCE u; SELECT nextval('u')"));
    assert_eq!(records(&database), 4);
    last(&mut s, "ROLLBACK TO a");
    assert_eq!(records(&database), 2);
    assert_eq!((last(&mut s, "COMMIT; SELECT nextval('s')"), records(&database)), ("51".to_owned(), 1));
    // A session that ends in the middle of its transaction.
    let mut gone = database.session("postgres", 1).expect("a session");
    last(&mut gone, &format!("BEGIN; {again}; CREATE TABLE t (id serial); INSERT INTO t DEFAULT VALUES"));
    assert_eq!(records(&database), 3);
    drop(gone);
    let start = Instant::now();
    while records(&database) > 1 {
        assert!(start.elapsed() < Duration::from_secs(60), "{} records stay", records(&database));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(last(&mut s, "SELECT nextval('s')"), "52");
    last(&mut s, "DROP SEQUENCE s");
    assert_eq!(records(&database), 0);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn one_changes_a_sequence_after_another() {
    let folder = Folder::new("counters-locks");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    last(&mut s, "CREATE SEQUENCE s");
    // The lock's definition counts, not that of an old snapshot.
    let mut old = database.session("postgres", 1).expect("a session");
    last(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    last(&mut s, "BEGIN; ALTER SEQUENCE s INCREMENT 10");
    let waiting = std::thread::spawn(move || last(&mut old, "ALTER SEQUENCE s MAXVALUE 15; COMMIT"));
    let start = Instant::now();
    while database.locks().iter().all(|lock| lock.granted) {
        assert!(!waiting.is_finished(), "it does not wait for the first one");
        assert!(start.elapsed() < Duration::from_secs(60), "it neither ends nor waits");
        std::thread::yield_now();
    }
    last(&mut s, "COMMIT");
    waiting.join().expect("is next");
    assert_eq!(last(&mut s, "SELECT nextval('s'); SELECT nextval('s')"), "11");
    let error = s.run("SELECT nextval('s')").expect_err("has a maximum");
    assert_eq!(error.code.as_str(), "2200H");
    drop(s);
    database.shutdown().expect("closes");
}
