//! Concurrent sessions and failing commits keep integrity: references, names, and rows written
//! while a definition changes.

use crate::common::{Folder, behind, fails, rows, run};
use sql::database::Database;
use sql::embedded::EmbeddedSession;

fn session(database: &Database, core: usize) -> EmbeddedSession {
    database.session("postgres", core).expect("a session")
}

#[test]
fn commands_that_waited_for_a_definition_see_it() {
    let folder = Folder::new("integrity-stale");
    let database = folder.open();
    let (mut one, mut two) = (session(&database, 0), session(&database, 1));
    run(&mut one, "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (0, 'x')");
    let rewrite = "BEGIN; ALTER TABLE t ADD COLUMN c int DEFAULT 7; TRUNCATE t";
    run(&mut one, rewrite);
    behind(&database, &mut one, || {
        two.copy_in("COPY t (a, b) FROM STDIN", b"1\tone\n2\ttwo\n").expect("copies")
    });
    assert_eq!(rows(&mut one, "SELECT * FROM t ORDER BY a"), ["1|one|7", "2|two|7"]);
    run(&mut one, "BEGIN; ALTER TABLE t DROP COLUMN b; ALTER TABLE t ALTER a TYPE bigint");
    behind(&database, &mut one, || run(&mut two, "CREATE TABLE u AS SELECT * FROM t"));
    assert_eq!(rows(&mut one, "SELECT * FROM u ORDER BY a"), ["1|7", "2|7"]);
    run(&mut one, "BEGIN; TRUNCATE t; INSERT INTO t VALUES (9, 9)");
    let held = behind(&database, &mut one, || {
        run(&mut two, "DECLARE held CURSOR WITH HOLD FOR SELECT * FROM t");
        rows(&mut two, "FETCH ALL FROM held")
    });
    assert_eq!(held, ["9|9"]);
    run(&mut one, "BEGIN; TRUNCATE t; INSERT INTO t SELECT n, n FROM generate_series(1, 500) n");
    behind(&database, &mut one, || run(&mut two, "VACUUM ANALYZE t"));
    assert_eq!(rows(&mut one, "SELECT count(*), sum(c) FROM t"), ["500|125250"]);
    run(&mut one, "BEGIN; TRUNCATE t");
    behind(&database, &mut one, || run(&mut two, "EXPLAIN ANALYZE INSERT INTO t VALUES (1, 1)"));
    assert_eq!(rows(&mut one, "SELECT * FROM t"), ["1|1"]);
    drop((one, two));
    database.shutdown().expect("closes");
}

#[test]
fn two_objects_never_have_one_name() {
    let folder = Folder::new("integrity-names");
    let database = folder.open();
    let (mut one, mut two) = (session(&database, 0), session(&database, 1));
    for create in ["CREATE TABLE t (a int)", "CREATE SEQUENCE t", "CREATE SCHEMA t"] {
        run(&mut one, &format!("BEGIN; {create}"));
        behind(&database, &mut one, || fails(&mut two, &format!("BEGIN; {create}"), "23505"));
        assert_eq!(two.status(), b'E');
        run(&mut two, "ROLLBACK");
        let drop = create.split(" (").next().expect("a word").replace("CREATE", "DROP");
        run(&mut two, &drop);
    }
    // One transaction may use a name several times, one after the other.
    run(
        &mut one,
        "BEGIN; CREATE TABLE t (a int PRIMARY KEY); ALTER TABLE t RENAME TO u; CREATE TABLE t (b int)",
    );
    run(&mut one, "DROP TABLE u; ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t; COMMIT");
    run(&mut two, "INSERT INTO t (b) VALUES (1); BEGIN; DROP TABLE t; CREATE TABLE t (c int); COMMIT");
    assert_eq!(rows(&mut one, "SELECT count(c) FROM t"), ["0"]);
    drop((one, two));
    database.shutdown().expect("closes");
}

#[test]
fn references_hold_whatever_a_snapshot_sees() {
    let folder = Folder::new("integrity-references");
    let database = folder.open();
    let (mut one, mut two) = (session(&database, 0), session(&database, 1));
    run(&mut one, "CREATE TABLE p (id int PRIMARY KEY)");
    for (action, code) in [
        ("", "23503"),
        ("ON DELETE RESTRICT", "23001"),
        ("ON DELETE CASCADE", "40001"),
        ("ON DELETE SET NULL", "40001"),
    ] {
        run(
            &mut one,
            &format!("CREATE TABLE c (id int, p int REFERENCES p {action}); INSERT INTO p VALUES (1)"),
        );
        run(&mut one, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM c");
        run(&mut two, "INSERT INTO c VALUES (1, 1)");
        fails(&mut one, "DELETE FROM p", code);
        run(&mut one, "ROLLBACK");
        // If nothing happens in between, the check succeeds, and the snapshot is the same after it.
        run(&mut one, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM c");
        run(&mut two, "CREATE TABLE other (a int); INSERT INTO other VALUES (1)");
        run(&mut one, "DELETE FROM c; DELETE FROM p");
        assert_eq!(rows(&mut one, "SELECT count(*) FROM other"), ["0"], "{action}");
        run(&mut one, "COMMIT; DROP TABLE c, other");
    }
    drop((one, two));
    database.shutdown().expect("closes");
}

#[test]
fn actions_reach_every_column_and_keep_the_childs_constraints() {
    let folder = Folder::new("integrity-actions");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(
        &mut s,
        "CREATE TABLE p (id int PRIMARY KEY, k varchar(9) UNIQUE); INSERT INTO p VALUES (1, 'a'), (2, 'b')",
    );
    for (action, left) in [("SET NULL", "1|-|-"), ("SET DEFAULT", "1|2|2")] {
        run(
            &mut s,
            &format!(
                "CREATE TABLE c (id int, a int DEFAULT 2 REFERENCES p ON DELETE {action},
                                 b int DEFAULT 2 REFERENCES p ON DELETE {action});
                 INSERT INTO c VALUES (1, 1, 1); DELETE FROM p WHERE id = 1"
            ),
        );
        assert_eq!(rows(&mut s, "SELECT * FROM c"), [left]);
        run(&mut s, "DROP TABLE c; INSERT INTO p VALUES (1, 'a')");
    }
    run(
        &mut s,
        "CREATE TABLE c (id int, p int REFERENCES p ON UPDATE CASCADE CHECK (p > 0),
                         k varchar(3) REFERENCES p (k) ON UPDATE CASCADE);
         INSERT INTO c VALUES (1, 1, 'a')",
    );
    let error = fails(&mut s, "UPDATE p SET id = -1 WHERE id = 1", "23514");
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (1, -1, a)."));
    fails(&mut s, "UPDATE p SET k = 'abcd' WHERE id = 1", "22001");
    run(&mut s, "UPDATE p SET id = 5, k = 'abc' WHERE id = 1");
    assert_eq!(rows(&mut s, "SELECT * FROM c"), ["1|5|abc"]);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn settings_of_the_transaction_are_obeyed() {
    let folder = Folder::new("integrity-settings");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (a int)");
    run(&mut s, "BEGIN; SET transaction_read_only = on");
    fails(&mut s, "INSERT INTO t VALUES (1)", "25006");
    run(&mut s, "ROLLBACK; BEGIN; SET transaction_isolation = 'repeatable read'");
    assert_eq!(rows(&mut s, "SHOW transaction_isolation"), ["repeatable read"]);
    run(&mut s, "ROLLBACK; BEGIN; SELECT set_config('transaction_read_only', 'on', true)");
    fails(&mut s, "INSERT INTO t VALUES (1)", "25006");
    run(&mut s, "ROLLBACK");
    for refused in [
        "SET default_transaction_isolation = serializable",
        "BEGIN; SET transaction_isolation = serializable",
    ] {
        fails(&mut s, refused, "0A000");
        run(&mut s, "ROLLBACK");
    }
    fails(&mut s, "SET SESSION AUTHORIZATION nobody_here", "22023");
    run(&mut s, "SET SESSION AUTHORIZATION postgres; RESET SESSION AUTHORIZATION; SET work_mem = '1MB'");
    // The setting of a failed statement has no effect on the next one.
    fails(&mut s, "SELECT set_config('work_mem', '2MB', false), 1 / (SELECT 0)", "22012");
    run(&mut s, "SELECT 1");
    assert_eq!(rows(&mut s, "SHOW work_mem"), ["1MB"]);
    run(&mut s, "BEGIN");
    fails(&mut s, "DECLARE c BINARY CURSOR FOR SELECT 1", "0A000");
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_line_of_copy_ends_at_its_own_end() {
    let folder = Folder::new("integrity-copy");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (a int, b text)");
    let mut copied = |options: &str, data: &[u8]| {
        run(&mut s, "TRUNCATE t");
        match s.copy_in(&format!("COPY t FROM STDIN {options}"), data) {
            Ok(_) => rows(&mut s, "SELECT a, replace(b, chr(10), '~') FROM t ORDER BY a"),
            Err(error) => vec![format!("{}: {}", error.code.as_str(), error.message)],
        }
    };
    assert_eq!(copied("", b"1\tone\\\ntwo\n2\t\\\\\n3\tlast\\\n"), ["1|one~two", "2|\\", "3|last~"]);
    let csv = "(FORMAT csv, ESCAPE '\\')";
    assert_eq!(
        copied(csv, b"1,\"a\\\"b\"\n2,\"c\nd\\\\\"\n3,e\\\n4,\"f\\g\"\n"),
        ["1|a\"b", "2|c~d\\", "3|e\\", "4|f\\g"]
    );
    assert_eq!(copied("(FORMAT csv)", b"1,\"a\"\"\n\"\n2,\"\"\n"), ["1|a\"~", "2|"]);
    assert_eq!(copied(csv, b"1,\"a\\\"\n"), ["22P04: unterminated CSV quoted field"]);
    for zero in [&b"1\ta\0b\n"[..], b"1\t\\000\n"] {
        assert_eq!(copied("", zero), ["22021: invalid byte sequence for encoding \"UTF8\": 0x00"]);
    }
    let binary = |flags: u32, length: i32| {
        let mut bytes = b"PGCOPY\n\xff\r\n\0".to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend([0, 2, 255, 255, 255, 255]);
        bytes.extend(length.to_be_bytes());
        bytes.extend([255, 255]);
        bytes
    };
    assert_eq!(copied("(FORMAT binary)", &binary(1, -1)), ["-|-"]);
    assert_eq!(copied("(FORMAT binary)", &binary(0, -2)), ["22P04: invalid field size"]);
    let critical = "22P04: unrecognized critical flags in COPY file header";
    assert_eq!(copied("(FORMAT binary)", &binary(1 << 20, -1)), [critical]);
    drop(s);
    database.shutdown().expect("closes");
}
