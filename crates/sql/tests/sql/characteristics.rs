//! A transaction's characteristics and its cursors at savepoints, errors and the end. The expected
//! answers are those of PostgreSQL 18 to the same statements.

use crate::common::{Folder, fails, rows, run};
use sql::embedded::EmbeddedSession;

/// The running transaction's isolation, whether it is read only, and whether it is deferrable.
#[track_caller]
fn shown(s: &mut EmbeddedSession) -> [String; 3] {
    ["transaction_isolation", "transaction_read_only", "transaction_deferrable"].map(|name| {
        let value = rows(s, &format!("SHOW {name}")).concat();
        assert_eq!(rows(s, &format!("SELECT current_setting('{name}')")).concat(), value);
        value
    })
}

#[track_caller]
fn read_only(s: &mut EmbeddedSession) -> String {
    rows(s, "SHOW transaction_read_only").concat()
}

fn with_session(name: &str, body: impl FnOnce(&mut EmbeddedSession)) {
    let folder = Folder::new(&format!("characteristics-{name}"));
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2)");
    run(&mut s, "CREATE SEQUENCE sq");
    body(&mut s);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_setting_ends_with_its_subtransaction() {
    with_session("nesting", |s| {
        run(s, "BEGIN; SAVEPOINT a; SET TRANSACTION READ ONLY");
        assert_eq!(read_only(s), "on");
        run(s, "ROLLBACK TO a");
        assert_eq!(read_only(s), "off");
        run(s, "SET transaction_read_only = on; RELEASE a");
        assert_eq!(read_only(s), "off");
        run(s, "SAVEPOINT b; SAVEPOINT c; SET TRANSACTION READ ONLY; SAVEPOINT d");
        fails(s, "SELECT 1/0", "22012");
        run(s, "ROLLBACK TO d");
        assert_eq!(read_only(s), "on");
        run(s, "RELEASE b");
        assert_eq!(read_only(s), "off");
        run(s, "INSERT INTO t VALUES (3, 3); ROLLBACK");
    });
}

#[test]
fn an_error_inside_a_savepoint_keeps_the_transaction_read_only() {
    with_session("errors", |s| {
        for begin in
            ["BEGIN READ ONLY", "BEGIN; SET TRANSACTION READ ONLY", "BEGIN; SET transaction_read_only = on"]
        {
            run(s, begin);
            run(s, "SAVEPOINT a");
            fails(s, "SELECT 1/0", "22012");
            run(s, "ROLLBACK TO a");
            assert_eq!(read_only(s), "on", "{begin}");
            fails(s, "INSERT INTO t VALUES (9, 9)", "25006");
            run(s, "ROLLBACK TO a; RELEASE a");
            assert_eq!(read_only(s), "on", "{begin}");
            fails(s, "DELETE FROM t", "25006");
            run(s, "ROLLBACK");
        }
    });
}

#[test]
fn a_query_and_a_savepoint_settle_the_characteristics() {
    with_session("late", |s| {
        let mut refused = |before: &str, set: &str, message: &str| {
            run(s, "BEGIN");
            run(s, before);
            assert_eq!(fails(s, set, "25001").message, message, "{before}; {set}");
            run(s, "ROLLBACK");
        };
        let level = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
        for before in [
            "SELECT 1",
            "PREPARE p AS SELECT 1; DEALLOCATE p",
            "CLOSE ALL",
            "DEALLOCATE ALL",
            "DISCARD PLANS",
            "DECLARE c CURSOR FOR SELECT 1",
            "COPY t TO STDOUT",
            "EXPLAIN SELECT 1",
            "CREATE TABLE u (i int)",
            "ANALYZE t",
        ] {
            refused(before, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", level);
            refused(before, "SET transaction_isolation = 'repeatable read'", level);
        }
        let write = "transaction read-write mode must be set before any query";
        refused("SET TRANSACTION READ ONLY; SELECT 1", "SET TRANSACTION READ WRITE", write);
        refused("SELECT 1; SET TRANSACTION READ ONLY", "SET TRANSACTION READ WRITE", write);
        refused("SELECT 1; SET TRANSACTION READ ONLY", "SET transaction_read_only = off", write);
        refused(
            "SELECT 1; SET TRANSACTION READ ONLY",
            "SELECT set_config('transaction_read_only', 'off', true)",
            write,
        );
        let deferrable = "SET TRANSACTION [NOT] DEFERRABLE must be called before any query";
        refused("SELECT 1", "SET TRANSACTION NOT DEFERRABLE", deferrable);
        let inside = "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction";
        refused("SAVEPOINT a", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", inside);
        let inside = "cannot set transaction read-write mode inside a read-only transaction";
        refused("SET TRANSACTION READ ONLY; SAVEPOINT a", "SET TRANSACTION READ WRITE", inside);
        let inside = "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction";
        refused("SAVEPOINT a", "SET TRANSACTION DEFERRABLE", inside);
        // Setting the same value again is no change.
        run(s, "BEGIN; SELECT 1; SET TRANSACTION READ WRITE; SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
        run(
            s,
            "SAVEPOINT a; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET TRANSACTION READ WRITE; ROLLBACK",
        );
        for before in
            ["LOCK TABLE t", "SHOW work_mem", "SHOW ALL", "SET work_mem = '4MB'", "CHECKPOINT", "RESET ALL"]
        {
            run(s, "BEGIN");
            run(s, before);
            run(s, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY, DEFERRABLE");
            assert_eq!(shown(s), ["repeatable read", "on", "on"], "{before}");
            run(s, "ROLLBACK");
        }
    });
}

#[test]
fn a_lock_taken_before_set_transaction_is_kept() {
    let folder = Folder::new("characteristics-lock");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    let mut other = database.session("postgres", 1).expect("a session");
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)");
    run(&mut s, "BEGIN; LOCK TABLE t; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    let error = fails(&mut other, "BEGIN; LOCK TABLE t IN ACCESS SHARE MODE NOWAIT", "55P03");
    assert_eq!(error.message, "could not obtain lock on relation \"t\"");
    run(&mut other, "ROLLBACK; SET lock_timeout = 20");
    for waits in
        ["SELECT * FROM t", "LOCK TABLE t; SELECT 1", "DECLARE c CURSOR FOR SELECT * FROM t; SELECT 1"]
    {
        assert_eq!(fails(&mut other, waits, "55P03").message, "canceling statement due to lock timeout");
    }
    fails(&mut other, "LOCK TABLE t", "25P01");
    run(&mut s, "ROLLBACK");
    // A row lock taken before BEGIN in the same query string counts as a query, too.
    run(&mut s, "SELECT * FROM t FOR UPDATE; BEGIN");
    fails(&mut other, "SELECT * FROM t FOR UPDATE NOWAIT", "55P03");
    run(&mut s, "ROLLBACK");
    drop((s, other));
    database.shutdown().expect("closes");
}

#[test]
fn chained_transactions_keep_their_characteristics() {
    with_session("chain", |s| {
        for end in ["COMMIT", "ROLLBACK"] {
            run(s, "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY, DEFERRABLE");
            run(s, &format!("{end} AND CHAIN"));
            assert_eq!(shown(s), ["repeatable read", "on", "on"], "{end}");
            run(s, &format!("{end} AND CHAIN"));
            fails(s, "INSERT INTO t VALUES (9, 9)", "25006");
            // An error ends what BEGIN said, but not what the chain brought.
            run(s, "ROLLBACK AND CHAIN");
            assert_eq!(shown(s), ["repeatable read", "on", "on"], "{end}");
            run(s, "ROLLBACK");
        }
        run(s, "BEGIN; SAVEPOINT a; SET TRANSACTION READ ONLY; COMMIT AND CHAIN");
        assert_eq!(read_only(s), "on");
        run(s, "ROLLBACK");
        for (begin, end) in [
            ("BEGIN READ ONLY, ISOLATION LEVEL REPEATABLE READ", "ROLLBACK AND CHAIN"),
            ("BEGIN READ ONLY, ISOLATION LEVEL REPEATABLE READ", "COMMIT AND CHAIN"),
            ("BEGIN; SAVEPOINT a; SET TRANSACTION READ ONLY", "ROLLBACK AND CHAIN"),
        ] {
            run(s, begin);
            fails(s, "SELECT 1/0", "22012");
            run(s, end);
            assert_eq!(shown(s), ["read committed", "off", "off"], "{begin}; {end}");
            run(s, "ROLLBACK");
        }
        run(s, "BEGIN READ ONLY; SET default_transaction_read_only = off; COMMIT AND CHAIN");
        assert_eq!(read_only(s), "on");
        run(s, "COMMIT");
        assert_eq!(read_only(s), "off");
    });
}

#[test]
fn the_defaults_apply_to_later_transactions_only() {
    with_session("defaults", |s| {
        run(s, "BEGIN; SET default_transaction_read_only = on");
        assert_eq!(read_only(s), "off");
        run(s, "INSERT INTO t VALUES (3, 3); COMMIT");
        assert_eq!(read_only(s), "on");
        fails(s, "INSERT INTO t VALUES (4, 4)", "25006");
        run(s, "BEGIN READ WRITE; INSERT INTO t VALUES (4, 4)");
        fails(s, "SELECT 1/0", "22012");
        run(s, "ROLLBACK AND CHAIN");
        assert_eq!(read_only(s), "on");
        run(s, "ROLLBACK; BEGIN; SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE; ROLLBACK");
        assert_eq!(read_only(s), "on");
        run(s, "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE");
        run(
            s,
            "SET default_transaction_isolation = 'read uncommitted'; SET default_transaction_deferrable = on",
        );
        assert_eq!(shown(s), ["read uncommitted", "off", "on"]);
        run(
            s,
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY, NOT DEFERRABLE",
        );
        assert_eq!(shown(s), ["repeatable read", "on", "off"]);
        assert_eq!(
            rows(
                s,
                "SELECT name || '=' || setting FROM pg_settings WHERE name ~ '^(default_)?transaction_[dir]' ORDER BY name"
            ),
            [
                "default_transaction_deferrable=off",
                "default_transaction_isolation=repeatable read",
                "default_transaction_read_only=on",
                "transaction_deferrable=off",
                "transaction_isolation=repeatable read",
                "transaction_read_only=on",
            ]
        );
        run(s, "RESET ALL");
        assert_eq!(shown(s), ["read committed", "off", "off"]);
        for name in ["transaction_isolation", "transaction_read_only", "transaction_deferrable"] {
            let error = fails(s, &format!("RESET {name}"), "0A000");
            assert_eq!(error.message, format!("parameter \"{name}\" cannot be reset"));
        }
        run(s, "BEGIN READ ONLY; RESET ALL");
        assert_eq!(read_only(s), "on");
        run(s, "ROLLBACK");
    });
}

#[test]
fn set_transaction_lasts_as_long_as_its_transaction() {
    with_session("implicit", |s| {
        // Alone, the setting ends with its statement; in a string of statements, with the string.
        run(s, "SET TRANSACTION READ ONLY");
        run(s, "INSERT INTO t VALUES (3, 3)");
        fails(s, "SET TRANSACTION READ ONLY; INSERT INTO t VALUES (4, 4)", "25006");
        fails(s, "SET LOCAL transaction_read_only = on; INSERT INTO t VALUES (4, 4)", "25006");
        fails(s, "SELECT 1; BEGIN ISOLATION LEVEL REPEATABLE READ", "25001");
        assert_eq!(s.status(), b'I');
        run(s, "SET work_mem = '4MB'; BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY");
        assert_eq!(shown(s), ["repeatable read", "on", "off"]);
        run(s, "ROLLBACK");
        run(s, "INSERT INTO t VALUES (5, 5); BEGIN READ ONLY; SELECT 1");
        fails(s, "INSERT INTO t VALUES (6, 6)", "25006");
        run(s, "ROLLBACK");
        assert_eq!(rows(s, "SELECT id FROM t ORDER BY id"), ["1", "2", "3"]);
    });
}

#[test]
fn a_read_only_transaction_refuses_what_postgresql_refuses() {
    with_session("refused", |s| {
        run(s, "SELECT nextval('sq'); PREPARE w AS INSERT INTO t VALUES (8, 8)");
        for (statement, what) in [
            ("INSERT INTO t VALUES (3, 3)", "INSERT"),
            ("INSERT INTO t SELECT 3, 3 WHERE false", "INSERT"),
            ("UPDATE t SET v = 0 WHERE false", "UPDATE"),
            ("DELETE FROM t", "DELETE"),
            ("SELECT * FROM t FOR UPDATE", "SELECT FOR UPDATE"),
            ("SELECT * FROM t FOR NO KEY UPDATE", "SELECT FOR NO KEY UPDATE"),
            ("SELECT * FROM t ORDER BY v LIMIT 1 FOR SHARE", "SELECT FOR SHARE"),
            ("SELECT * FROM t FOR KEY SHARE", "SELECT FOR KEY SHARE"),
            ("DECLARE c CURSOR FOR SELECT * FROM t FOR UPDATE", "SELECT FOR UPDATE"),
            ("COPY t FROM STDIN", "COPY FROM"),
            ("EXPLAIN (ANALYZE) INSERT INTO t VALUES (3, 3)", "INSERT"),
            ("EXECUTE w", "INSERT"),
            ("SELECT nextval('sq')", "nextval()"),
            ("SELECT setval('sq', 5)", "setval()"),
            ("SELECT setval('sq', 5, false)", "setval()"),
            ("CREATE TABLE x (i int)", "CREATE TABLE"),
            ("CREATE TABLE x AS SELECT 1", "CREATE TABLE AS"),
            ("SELECT 1 AS i INTO x", "SELECT INTO"),
            ("CREATE INDEX ON t (v)", "CREATE INDEX"),
            ("CREATE SCHEMA x", "CREATE SCHEMA"),
            ("CREATE SEQUENCE x", "CREATE SEQUENCE"),
            ("CREATE DATABASE x", "CREATE DATABASE"),
            ("ALTER TABLE t ADD COLUMN w int", "ALTER TABLE"),
            ("ALTER SEQUENCE sq RESTART", "ALTER SEQUENCE"),
            ("ALTER SCHEMA public OWNER TO postgres", "ALTER SCHEMA"),
            ("DROP TABLE t", "DROP TABLE"),
            ("DROP TABLE IF EXISTS nothing", "DROP TABLE"),
            ("DROP INDEX t_pkey", "DROP INDEX"),
            ("DROP SEQUENCE sq", "DROP SEQUENCE"),
            ("DROP SCHEMA public CASCADE", "DROP SCHEMA"),
            ("DROP DATABASE nothing", "DROP DATABASE"),
            ("TRUNCATE t", "TRUNCATE TABLE"),
        ] {
            run(s, "BEGIN READ ONLY");
            let error = fails(s, statement, "25006");
            assert_eq!(
                error.message,
                format!("cannot execute {what} in a read-only transaction"),
                "{statement}"
            );
            run(s, "ROLLBACK");
        }
        assert_eq!(rows(s, "SELECT currval('sq'), lastval()"), ["1|1"]);
        assert_eq!(rows(s, "SELECT * FROM t"), ["1|1", "2|2"]);
    });
}

#[test]
fn a_read_only_transaction_runs_what_postgresql_runs() {
    with_session("allowed", |s| {
        run(s, "SELECT nextval('sq'); BEGIN READ ONLY");
        for statement in [
            "SELECT * FROM t",
            "SELECT currval('sq'), lastval()",
            "SELECT nextval(NULL)",
            "COPY t TO STDOUT",
            "EXPLAIN INSERT INTO t VALUES (3, 3)",
            "EXPLAIN SELECT * FROM t FOR UPDATE",
            "PREPARE w AS INSERT INTO t VALUES (8, 8)",
            "DEALLOCATE w",
            "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
            "FETCH c",
            "CLOSE c",
            "LOCK TABLE t",
            "ANALYZE t",
            "ANALYZE",
            "REINDEX TABLE t",
            "REINDEX INDEX t_pkey",
            "CHECKPOINT",
            "UNLISTEN *",
            "SET work_mem = '5MB'",
            "SET CONSTRAINTS ALL DEFERRED",
            "DISCARD PLANS",
        ] {
            run(s, statement);
        }
        run(s, "COMMIT; SET default_transaction_read_only = on");
        run(s, "VACUUM t");
        run(s, "VACUUM ANALYZE");
        run(s, "REINDEX TABLE t");
        assert_eq!(rows(s, "SELECT v FROM t WHERE id = 2"), ["2"]);
    });
}

#[test]
fn a_held_cursor_stays_only_when_its_transaction_commits() {
    with_session("hold", |s| {
        let declare = "DECLARE h CURSOR WITH HOLD FOR SELECT generate_series(1, 9)";
        for end in ["ROLLBACK", "ROLLBACK AND CHAIN; ROLLBACK"] {
            run(s, &format!("BEGIN; {declare}; FETCH h; {end}"));
            fails(s, "FETCH h", "34000");
        }
        run(s, &format!("BEGIN; {declare}"));
        fails(s, "SELECT 1/0", "22012");
        run(s, "COMMIT");
        fails(s, "FETCH h", "34000");
        run(s, &format!("BEGIN; SAVEPOINT a; {declare}; ROLLBACK TO a; COMMIT"));
        fails(s, "FETCH h", "34000");
        run(s, &format!("BEGIN; SAVEPOINT a; {declare}; RELEASE a; COMMIT"));
        assert_eq!(rows(s, "FETCH h"), ["1"]);
        // A held cursor outlives later transactions, and keeps its position however they end.
        run(s, "BEGIN; SAVEPOINT a; FETCH h; ROLLBACK TO a");
        assert_eq!(rows(s, "FETCH h"), ["3"]);
        fails(s, "SELECT 1/0", "22012");
        run(s, "ROLLBACK TO a; ROLLBACK; BEGIN");
        fails(s, "SELECT 1/0", "22012");
        run(s, "ROLLBACK");
        assert_eq!(rows(s, "FETCH h"), ["4"]);
        run(s, "BEGIN; CLOSE h; ROLLBACK");
        fails(s, "FETCH h", "34000");
    });
}

#[test]
fn a_cursor_goes_with_the_savepoint_it_was_opened_after() {
    with_session("cursors", |s| {
        let series = "CURSOR FOR SELECT generate_series(1, 9)";
        run(s, &format!("BEGIN; DECLARE a {series}; SAVEPOINT s; DECLARE b {series}; FETCH 2 a; FETCH b"));
        run(s, "ROLLBACK TO s");
        assert_eq!(rows(s, "FETCH a"), ["3"]);
        fails(s, "FETCH b", "34000");
        run(s, "ROLLBACK TO s");
        // A closed cursor stays closed, and its name may be taken again.
        run(s, &format!("CLOSE a; ROLLBACK TO s; DECLARE a {series}"));
        assert_eq!(rows(s, "FETCH a"), ["1"]);
        run(s, "ROLLBACK");
        // After RELEASE the cursor belongs to the enclosing transaction, and goes with that one's
        // savepoint.
        run(
            s,
            &format!(
                "BEGIN; SAVEPOINT s; SAVEPOINT t; DECLARE b {series}; RELEASE t; SAVEPOINT u; ROLLBACK TO u"
            ),
        );
        assert_eq!(rows(s, "FETCH b"), ["1"]);
        run(s, "ROLLBACK TO s");
        fails(s, "FETCH b", "34000");
        run(s, "ROLLBACK");
    });
}

#[test]
fn an_error_closes_the_cursors_of_its_subtransaction_alone() {
    with_session("cursor-errors", |s| {
        let series = "CURSOR FOR SELECT generate_series(1, 9)";
        run(s, &format!("BEGIN; DECLARE a {series}; SAVEPOINT s; DECLARE b {series}; SAVEPOINT t"));
        run(s, &format!("DECLARE c {series}; FETCH a"));
        fails(s, "SELECT 1/0", "22012");
        fails(s, "FETCH a", "25P02");
        run(s, "ROLLBACK TO t");
        assert_eq!(rows(s, "FETCH a"), ["2"]);
        assert_eq!(rows(s, "FETCH b"), ["1"]);
        fails(s, "FETCH c", "34000");
        run(s, "ROLLBACK TO s");
        assert_eq!(rows(s, "FETCH a"), ["3"]);
        fails(s, "FETCH b", "34000");
        run(s, "ROLLBACK");
        fails(s, "FETCH a", "34000");
    });
}
