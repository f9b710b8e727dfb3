//! The views over what the engine counts: pg_stat_database, allcore_buffers, allcore_log and
//! allcore_workers.

use crate::common::{Folder, fails, rows, run};
use sql::embedded::EmbeddedSession;

fn number(session: &mut EmbeddedSession, query: &str) -> i64 {
    rows(session, query)[0].parse().unwrap_or_else(|_| panic!("{query}"))
}

fn transactions(session: &mut EmbeddedSession, database: &str) -> (i64, i64) {
    let of = |session: &mut EmbeddedSession, column: &str| {
        number(session, &format!("SELECT {column} FROM pg_stat_database WHERE datname = '{database}'"))
    };
    (of(session, "xact_commit"), of(session, "xact_rollback"))
}

#[test]
fn each_ended_transaction_counts_once_for_its_database() {
    let folder = Folder::new("transactions");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (a int PRIMARY KEY)");
    run(&mut s, "CREATE DATABASE other");
    let before = transactions(&mut s, "postgres");
    // Each look above takes two transactions, and counts the first one of them.
    assert_eq!(transactions(&mut s, "postgres"), (before.0 + 2, before.1));
    let before = transactions(&mut s, "postgres");
    run(&mut s, "INSERT INTO t VALUES (1)");
    run(&mut s, "BEGIN; INSERT INTO t VALUES (2); SAVEPOINT a; INSERT INTO t VALUES (3); RELEASE a; COMMIT");
    run(&mut s, "BEGIN; COMMIT");
    assert_eq!(transactions(&mut s, "postgres"), (before.0 + 2 + 3, before.1));
    let before = transactions(&mut s, "postgres");
    run(&mut s, "BEGIN; INSERT INTO t VALUES (4); ROLLBACK");
    fails(&mut s, "INSERT INTO t VALUES (1)", "23505");
    fails(&mut s, "SELECT 1 / 0", "22012");
    run(&mut s, "BEGIN");
    fails(&mut s, "SELECT 1 / 0", "22012");
    run(&mut s, "COMMIT");
    assert_eq!(transactions(&mut s, "postgres"), (before.0 + 2, before.1 + 4));

    let mut other = database.session("other", 0).expect("a session");
    let before = transactions(&mut s, "other");
    let begun = "SELECT sessions FROM pg_stat_database WHERE datname = 'other'";
    assert_eq!(number(&mut s, begun), 1);
    drop(database.session("other", 0).expect("a session"));
    assert_eq!(number(&mut s, begun), 2);
    run(&mut other, "CREATE TABLE t (a int)");
    assert_eq!(transactions(&mut s, "other"), (before.0 + 1, before.1));
    assert_eq!(
        rows(&mut s, "SELECT datname, numbackends FROM pg_stat_database WHERE numbackends > 0 ORDER BY 1"),
        ["other|1", "postgres|1"]
    );
    drop(other);
    run(&mut s, "DROP DATABASE other");
    assert_eq!(rows(&mut s, "SELECT count(*) FROM pg_stat_database WHERE datname = 'other'"), ["0"]);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn buffers_log_and_workers_are_counted() {
    let folder = Folder::new("counts");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    let pool = "SELECT frames, in_use, (SELECT sum(f) FROM unnest(free_by_node) f), hand, passes, evictions, \
                write_failures FROM allcore_buffers";
    let row: Vec<i64> = rows(&mut s, pool)[0].split('|').map(|value| value.parse().unwrap()).collect();
    let [frames, in_use, free, hand, ..] = row[..] else { panic!("{row:?}") };
    assert!(0 < in_use && in_use <= frames && 0 < free && free < frames && hand < frames, "{row:?}");
    assert_eq!(&row[4..], [0, 0, 0], "nothing was evicted");
    let allocations = number(&mut s, "SELECT allocations FROM allcore_buffers");
    let log = "SELECT served FROM allcore_log";
    let (served, bytes) = (number(&mut s, log), number(&mut s, "SELECT bytes FROM allcore_log"));
    run(&mut s, "CREATE TABLE t AS SELECT g, repeat('x', 1000) AS x FROM generate_series(1, 2000) g");
    assert!(number(&mut s, "SELECT allocations FROM allcore_buffers") > allocations + 200);
    assert!(number(&mut s, log) > served);
    assert!(number(&mut s, "SELECT bytes FROM allcore_log") > bytes + 2_000_000);
    assert_eq!(
        rows(
            &mut s,
            "SELECT durable <= filled AND filled <= reserved, writes > 0, segments > 0 FROM allcore_log"
        ),
        ["t|t|t"]
    );

    let workers = "SELECT count(*) FROM allcore_workers";
    assert_eq!(
        number(&mut s, workers),
        number(&mut s, "SELECT count(*) FROM allcore_workers WHERE core IS NOT NULL") + 2
    );
    let sums = "SELECT sum(turns), sum(sleeps), sum(events), sum(file_operations) FROM allcore_workers
                WHERE core IS NOT NULL";
    let look = |s: &mut EmbeddedSession| -> Vec<i64> {
        rows(s, sums)[0].split('|').map(|value| value.parse().unwrap()).collect()
    };
    let before = look(&mut s);
    for _ in 0..10 {
        run(&mut s, "INSERT INTO t VALUES (1, '')");
    }
    let after = look(&mut s);
    assert!(after.iter().zip(&before).all(|(after, before)| after > before), "{before:?} {after:?}");
    assert_eq!(
        rows(
            &mut s,
            "SELECT bool_and(user_time >= 0 AND system_time >= 0 AND processor >= 0) FROM allcore_workers"
        ),
        ["t"]
    );
    drop(s);
    database.shutdown().expect("closes");
}
