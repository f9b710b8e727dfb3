//! Autovacuum removes deleted entries without a VACUUM and without a session noticing it.

use std::time::{Duration, Instant};

use crate::common::{Folder, LONG, close_sound, rows, run, until_used, used};
use sql::database::{Database, Options};
use sql::embedded::EmbeddedSession;

const PAUSE: Duration = Duration::from_millis(5);
fn open(folder: &Folder) -> Database {
    folder.open_with(Options { autovacuum_pause: PAUSE, ..Options::default() })
}

fn session(database: &Database) -> EmbeddedSession {
    database.session("postgres", 0).expect("a session")
}

#[test]
fn a_queue_does_not_grow() {
    let folder = Folder::new("vacuum-queue");
    let database = open(&folder);
    let mut s = session(&database);
    run(&mut s, "CREATE TABLE q (id int8 PRIMARY KEY, body text); CREATE INDEX ON q (body)");
    let empty = used(&database);
    for round in 0..40 {
        let first = round * 1000;
        run(
            &mut s,
            &format!(
                "INSERT INTO q SELECT g, repeat('x', 100) || g FROM generate_series({first}, {first} + 999) g;
                 DELETE FROM q WHERE id < {first}"
            ),
        );
        // A round's rows take some 40 pages in table and index, all rounds' 1600.
        until_used(&database, empty + 150);
    }
    assert_eq!(rows(&mut s, "SELECT count(*), min(id) FROM q"), ["1000|39000"]);
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn replaced_long_values_do_not_pile_up() {
    let folder = Folder::new("vacuum-out-of-line");
    let database = open(&folder);
    let mut s = session(&database);
    run(&mut s, "CREATE TABLE w (id int PRIMARY KEY, body text)");
    let empty = used(&database);
    run(&mut s, "INSERT INTO w SELECT g, '' FROM generate_series(1, 10) g");
    for round in 0..20 {
        // Each value has 51 chunks; a page holds four.
        run(&mut s, &format!("UPDATE w SET body = repeat('{}', 50000)", 10 + round));
        until_used(&database, empty + 400);
    }
    assert_eq!(rows(&mut s, "SELECT count(*) FROM w WHERE body = repeat('29', 50000)"), ["10"]);
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn an_old_snapshot_keeps_what_it_sees_and_no_longer() {
    let folder = Folder::new("vacuum-snapshot");
    let database = open(&folder);
    let (mut s, mut old) = (session(&database), session(&database));
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, n int, body text); CREATE INDEX ON t (n)");
    let empty = used(&database);
    run(&mut s, "INSERT INTO t SELECT g, g, repeat('a', 5000) FROM generate_series(1, 1000) g");
    let seen = "SELECT count(*), sum(n), count(*) FILTER (WHERE body = repeat('a', 5000)) FROM t";
    run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(rows(&mut old, seen), ["1000|500500|1000"]);
    run(&mut s, "UPDATE t SET body = 'b', n = -n WHERE id > 500; DELETE FROM t WHERE id <= 500");
    for _ in 0..20 {
        std::thread::sleep(4 * PAUSE);
        assert_eq!(rows(&mut old, seen), ["1000|500500|1000"]);
        assert_eq!(rows(&mut old, "SELECT count(*) FROM t WHERE n BETWEEN 1 AND 1000"), ["1000"]);
        // These deletions make autovacuum visit the table again in each round, while the old
        // snapshot still needs the first rows.
        run(&mut s, "INSERT INTO t SELECT g, 0, 'c' FROM generate_series(2000, 2999) g");
        run(&mut s, "DELETE FROM t WHERE id >= 2000");
    }
    let before = used(&database);
    assert!(before > empty + 700, "the snapshot's values take no more than {} pages", before - empty);
    run(&mut old, "COMMIT");
    until_used(&database, empty + 100);
    assert_eq!(rows(&mut s, "SELECT count(*), sum(n) FROM t WHERE body = 'b'"), ["500|-375250"]);
    drop((s, old));
    close_sound(&folder, database);
}

#[test]
fn a_shutdown_does_not_wait_for_it() {
    let folder = Folder::new("vacuum-shutdown");
    for wait in [0, 2, 5, 10, 20, 40, 80] {
        let database = open(&folder);
        let mut s = session(&database);
        run(
            &mut s,
            "DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, n int); CREATE INDEX ON t (n)",
        );
        run(&mut s, "INSERT INTO t SELECT g, g FROM generate_series(1, 20000) g");
        run(&mut s, "DELETE FROM t WHERE id % 3 > 0");
        drop(s);
        std::thread::sleep(Duration::from_millis(wait));
        database.shutdown().expect("closes");
    }
    let database = open(&folder);
    let mut s = session(&database);
    assert_eq!(rows(&mut s, "SELECT count(*), count(n) FROM t"), ["6666|6666"]);
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn tables_and_databases_may_be_dropped_during_autovacuum() {
    let folder = Folder::new("vacuum-drop");
    let database = open(&folder);
    let mut s = session(&database);
    let fill = "CREATE TABLE t (id int PRIMARY KEY, n int, body text); CREATE INDEX i ON t (n);
         INSERT INTO t SELECT g, g, repeat('x', 3000) FROM generate_series(1, 1000) g;
         DELETE FROM t WHERE id % 4 > 0";
    let mut empty = 0;
    for round in 0..12_u64 {
        run(&mut s, fill);
        std::thread::sleep(Duration::from_millis(3 * round));
        run(&mut s, "DROP INDEX i; CREATE INDEX j ON t (n, id)");
        assert_eq!(rows(&mut s, "SELECT count(*), sum(n) FROM t"), ["250|125500"]);
        run(&mut s, if round % 2 == 0 { "DROP TABLE t" } else { "TRUNCATE t; DROP TABLE t" });
        run(&mut s, "CREATE DATABASE d");
        let mut other = database.session("d", 1).expect("a session");
        run(&mut other, fill);
        drop(other);
        std::thread::sleep(Duration::from_millis(3 * round));
        let start = Instant::now();
        while let Err(error) = s.run("DROP DATABASE d") {
            // The other session may not have ended yet.
            assert_eq!(error.code.as_str(), "55006", "{error:?}");
            assert!(start.elapsed() < LONG);
        }
        if round == 0 {
            empty = used(&database);
        }
    }
    // Every page is freed, also those of the system's own tables.
    until_used(&database, empty + 50);
    drop(s);
    close_sound(&folder, database);
}
