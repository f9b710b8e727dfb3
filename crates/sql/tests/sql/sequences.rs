//! Sequences used beside commands that change them: the later session waits, and goes by the first
//! one's result.

use crate::common::{Folder, close_sound, ended, fails, lines, rows, run, waits};
use sql::database::Database;
use sql::embedded::EmbeddedSession;

fn session(database: &Database, core: usize) -> EmbeddedSession {
    database.session("postgres", core).expect("a session")
}

/// The sequences q and t_id_seq, each of which has returned 1.
fn set_up(database: &Database) -> EmbeddedSession {
    let mut s = session(database, 0);
    run(&mut s, "DROP TABLE IF EXISTS t; DROP SEQUENCE IF EXISTS q");
    run(&mut s, "CREATE SEQUENCE q; SELECT nextval('q')");
    run(&mut s, "CREATE TABLE t (id serial, n int); INSERT INTO t (n) VALUES (1)");
    s
}

#[test]
fn a_user_of_a_sequence_waits_for_its_changer() {
    let folder = Folder::new("sequences-wait");
    let database = folder.open();
    let insert = "INSERT INTO t (n) VALUES (2) RETURNING id";
    // The next number when the change is committed, and when it is rolled back.
    let cases = [
        ("ALTER SEQUENCE q INCREMENT 10", "SELECT nextval('q')", "11", "2"),
        ("ALTER SEQUENCE q RESTART WITH 100", "SELECT nextval('q')", "100", "2"),
        ("ALTER SEQUENCE q MAXVALUE 7", "SELECT setval('q', 7)", "7", "7"),
        ("ALTER SEQUENCE q MAXVALUE 7", "SELECT setval('q', 8)", "22003", "8"),
        ("DROP SEQUENCE q", "SELECT nextval('q')", "XX000", "2"),
        ("DROP SEQUENCE q", "SELECT setval('q', 3)", "XX000", "3"),
        ("DROP TABLE t", "SELECT nextval('t_id_seq')", "XX000", "2"),
        ("ALTER SEQUENCE t_id_seq INCREMENT 10", insert, "11", "2"),
        ("TRUNCATE t RESTART IDENTITY", "SELECT nextval('t_id_seq')", "1", "2"),
        // The session has definitions of its own, and other sessions commit theirs later.
        (
            "ALTER SEQUENCE q INCREMENT 10",
            "CREATE TABLE x (n int); DROP TABLE x; SELECT nextval('q')",
            "11",
            "2",
        ),
        (
            "ALTER SEQUENCE q INCREMENT 10",
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT nextval('q'); COMMIT",
            "11",
            "2",
        ),
    ];
    for (change, usage, committed, rolled_back) in cases {
        for (end, expected) in [("COMMIT", committed), ("ROLLBACK", rolled_back)] {
            let mut s = set_up(&database);
            run(&mut s, &format!("BEGIN; {change}"));
            let waiter = waits(&database, usage);
            run(&mut s, end);
            let actual = match waiter.join().expect("a session ends") {
                Ok(answer) => lines(&answer).concat(),
                Err(error) => error.code.as_str().to_owned(),
            };
            assert_eq!(actual, expected, "{change}; {end}; {usage}");
        }
    }
    close_sound(&folder, database);
}

#[test]
fn a_changer_of_a_sequence_waits_for_its_user() {
    let folder = Folder::new("sequences-used");
    let database = folder.open();
    for usage in ["SELECT nextval('q')", "SELECT setval('q', 2)"] {
        let mut s = set_up(&database);
        run(&mut s, &format!("BEGIN; {usage}"));
        let waiter = waits(&database, "ALTER SEQUENCE q INCREMENT 10");
        // The session holds the sequence: one that waits does not hold it up.
        assert_eq!(rows(&mut s, "SELECT nextval('q')"), ["3"]);
        run(&mut s, "COMMIT");
        assert_eq!(ended(waiter), "00000");
        assert_eq!(rows(&mut s, "SELECT nextval('q')"), ["13"]);
    }
    close_sound(&folder, database);
}

#[test]
fn a_transaction_goes_by_its_own_changes() {
    let folder = Folder::new("sequences-own");
    let database = folder.open();
    let mut s = set_up(&database);
    run(&mut s, "BEGIN; ALTER SEQUENCE q INCREMENT 10");
    assert_eq!(rows(&mut s, "SELECT nextval('q')"), ["11"]);
    run(&mut s, "CREATE SEQUENCE own START 5; SAVEPOINT a; ALTER SEQUENCE own RESTART WITH 7");
    assert_eq!(rows(&mut s, "SELECT nextval('own'), currval('own')"), ["7|7"]);
    // The session keeps its own definitions over those that others commit.
    run(&mut session(&database, 1), "CREATE TABLE other (n int)");
    run(&mut s, "ROLLBACK TO a");
    assert_eq!(rows(&mut s, "SELECT nextval('own'), nextval('q')"), ["5|21"]);
    run(&mut s, "COMMIT");
    assert_eq!(rows(&mut s, "SELECT nextval('own'), nextval('q')"), ["6|31"]);
    close_sound(&folder, database);
}

/// After ALTER SEQUENCE, all that its transaction does to the sequence goes back with it.
#[test]
fn numbers_taken_after_a_change_are_taken_back_with_it() {
    let folder = Folder::new("sequences-taken-back");
    let database = folder.open();
    let mut s = set_up(&database);
    let changes = ["INCREMENT 1", "CACHE 1", "CYCLE", "MAXVALUE 99", "MINVALUE 1", "START 2", "AS int"];
    for change in changes {
        run(&mut s, &format!("BEGIN; ALTER SEQUENCE q {change}"));
        assert_eq!(rows(&mut s, "SELECT nextval('q')"), ["2"], "{change}");
        assert_eq!(rows(&mut s, "SELECT setval('q', 50)"), ["50"], "{change}");
        run(&mut s, "ROLLBACK");
        run(&mut s, &format!("BEGIN; SAVEPOINT a; ALTER SEQUENCE q {change}"));
        assert_eq!(rows(&mut s, "SELECT setval('q', 60)"), ["60"], "{change}");
        run(&mut s, "ROLLBACK TO a; COMMIT");
        assert_eq!(rows(&mut s, "SELECT last_value FROM pg_sequences WHERE sequencename = 'q'"), ["1"]);
    }
    // OWNED BY leaves the numbers alone.
    run(&mut s, "BEGIN; ALTER SEQUENCE q OWNED BY t.n; SELECT setval('q', 70); ROLLBACK");
    assert_eq!(rows(&mut s, "SELECT nextval('q')"), ["71"]);
    // Committed numbers stay, in the next session and after a restart.
    run(&mut s, "BEGIN; ALTER SEQUENCE q INCREMENT 5; SELECT setval('q', 80); COMMIT");
    assert_eq!(rows(&mut s, "SELECT nextval('q')"), ["85"]);
    run(&mut s, "BEGIN; ALTER SEQUENCE q INCREMENT 2; COMMIT");
    drop(s);
    close_sound(&folder, database);
    let database = folder.open();
    let mut s = session(&database, 0);
    assert_eq!(rows(&mut s, "SELECT nextval('q')"), ["87"]);
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn a_change_that_leaves_the_last_value_out_of_bounds_is_refused() {
    let folder = Folder::new("sequences-bounds");
    let database = folder.open();
    let mut s = set_up(&database);
    run(&mut s, "SELECT setval('q', 10)");
    fails(&mut s, "ALTER SEQUENCE q MAXVALUE 7", "22023");
    fails(&mut s, "ALTER SEQUENCE q MINVALUE 11 START 12", "22023");
    run(&mut s, "ALTER SEQUENCE q MINVALUE 11 START 12 RESTART");
    assert_eq!(rows(&mut s, "SELECT nextval('q')"), ["12"]);
    fails(&mut s, "SELECT nextval('t')", "42809");
    fails(&mut s, "SELECT nextval(999999999)", "XX000");
    drop(s);
    close_sound(&folder, database);
}
