//! Columns that are added with a default: rows from before read its value and are not rewritten.

use crate::common::{Folder, behind, close_sound, fails, rows, run, until_used, used};
use sql::database::Database;
use sql::embedded::EmbeddedSession;

fn session(database: &Database, core: usize) -> EmbeddedSession {
    database.session("postgres", core).expect("a session")
}

/// A table of 20,000 rows, some 200 pages, and an index on it.
fn filled(database: &Database) -> EmbeddedSession {
    let mut s = session(database, 0);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, n int, body text); CREATE INDEX ON t (n)");
    run(&mut s, "INSERT INTO t SELECT g, g % 100, repeat('x', 50) FROM generate_series(1, 20000) g");
    s
}

#[test]
fn a_column_with_one_value_for_all_rows_rewrites_none() {
    let folder = Folder::new("missing-pages");
    let database = folder.open();
    let mut s = filled(&database);
    for (added, rewrites) in [
        ("c int DEFAULT 7", false),
        ("c text NOT NULL DEFAULT 'a' || 1, ADD d timestamptz DEFAULT now(), ADD e int DEFAULT NULL", false),
        ("c int DEFAULT 7 CHECK (c < 8)", false),
        ("c text DEFAULT repeat('y', 65536)", false),
        ("c text DEFAULT repeat('y', 100)", false),
        ("c float8 DEFAULT random()", true),
        ("c int DEFAULT 7 + 0 * random()", true),
        ("c serial", true),
        ("c int GENERATED ALWAYS AS IDENTITY", true),
        ("c int DEFAULT 7, ADD d float8 DEFAULT random()", true),
    ] {
        let before = used(&database);
        run(&mut s, "BEGIN");
        run(&mut s, &format!("ALTER TABLE t ADD COLUMN {added}"));
        let more = used(&database).saturating_sub(before);
        assert_eq!(more > 100, rewrites, "{added}: {more} pages");
        assert_eq!(rows(&mut s, "SELECT count(*) FROM t WHERE c IS NOT NULL"), ["20000"], "{added}");
        run(&mut s, "ROLLBACK");
        until_used(&database, before + 2);
    }
    run(&mut s, "BEGIN");
    fails(&mut s, "ALTER TABLE t ADD COLUMN c int DEFAULT 7 CHECK (c > 7)", "23514");
    run(&mut s, "ROLLBACK; BEGIN");
    fails(&mut s, "ALTER TABLE t ADD COLUMN c int DEFAULT 7 UNIQUE", "23505");
    run(&mut s, "ROLLBACK; BEGIN");
    fails(&mut s, "ALTER TABLE t ADD COLUMN c int NOT NULL", "23502");
    run(&mut s, "ROLLBACK");
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn a_value_too_long_for_the_definition_is_written_to_every_row() {
    let folder = Folder::new("missing-long");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
    run(&mut s, "ALTER TABLE t ADD c text DEFAULT repeat('y', 65536), ADD d text DEFAULT repeat('z', 5)");
    let missing = "SELECT attname FROM pg_attribute WHERE attrelid = 't'::regclass AND atthasmissing";
    assert_eq!(rows(&mut s, &format!("{missing} ORDER BY 1")), ["c", "d"]);
    // The rewrite writes the other values to the rows as well.
    run(&mut s, "ALTER TABLE t ADD e text DEFAULT repeat('y', 65537)");
    assert!(rows(&mut s, missing).is_empty());
    let lengths = "SELECT id, length(c), length(d), length(e) FROM t ORDER BY id";
    assert_eq!(rows(&mut s, lengths), ["1|65536|5|65537", "2|65536|5|65537"]);
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn an_older_snapshot_reads_the_value_in_the_rows_it_sees() {
    let folder = Folder::new("missing-snapshot");
    let database = folder.open();
    let mut s = filled(&database);
    let mut old = session(&database, 1);
    run(&mut old, "BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE held CURSOR FOR SELECT * FROM t");
    assert_eq!(rows(&mut old, "SELECT count(*) FROM t WHERE id <= 3"), ["3"]);
    run(&mut old, "COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
    run(&mut s, "ALTER TABLE t ADD c int DEFAULT 7");
    run(
        &mut s,
        "UPDATE t SET c = 8 WHERE id = 1; DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (0, 0, '')",
    );
    let first = "SELECT id, c FROM t WHERE id <= 3 ORDER BY id";
    assert_eq!(rows(&mut old, first), ["1|7", "2|7", "3|7"]);
    assert_eq!(rows(&mut s, first), ["0|7", "1|8", "3|7"]);
    // The snapshot lacks rows, and adding a column needs none.
    run(&mut old, "ALTER TABLE t ADD d int DEFAULT 9; UPDATE t SET d = c WHERE id = 3");
    assert_eq!(
        rows(&mut old, "SELECT id, c, d FROM t WHERE id <= 3 ORDER BY id"),
        ["1|7|9", "2|7|9", "3|7|7"]
    );
    fails(&mut old, "UPDATE t SET d = 0 WHERE id = 1", "40001");
    run(&mut old, "ROLLBACK");
    assert_eq!(rows(&mut old, "SELECT * FROM t WHERE id <= 3 AND body = '' ORDER BY id"), ["0|0||7"]);
    drop((s, old));
    close_sound(&folder, database);
}

#[test]
fn a_statement_that_waited_for_a_row_reads_the_value_again() {
    let folder = Folder::new("missing-waits");
    let database = folder.open();
    let (mut one, mut two) = (session(&database, 0), session(&database, 1));
    run(&mut one, "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)");
    run(&mut one, "ALTER TABLE t ADD c int DEFAULT 7; CREATE INDEX ON t (c)");
    run(&mut one, "BEGIN; UPDATE t SET n = 10 WHERE id = 1; SELECT * FROM t WHERE id = 2 FOR UPDATE");
    behind(&database, &mut one, || run(&mut two, "UPDATE t SET n = n + c WHERE c = 7 AND id < 3"));
    assert_eq!(rows(&mut one, "SELECT * FROM t ORDER BY id"), ["1|17|7", "2|9|7", "3|3|7"]);
    run(&mut one, "BEGIN; UPDATE t SET c = 8 WHERE id = 3");
    behind(&database, &mut one, || run(&mut two, "DELETE FROM t WHERE c = 7"));
    assert_eq!(rows(&mut one, "SELECT * FROM t"), ["3|3|8"]);
    drop((one, two));
    close_sound(&folder, database);
}

#[test]
fn a_value_outlives_a_restart_and_statistics_count_it() {
    let folder = Folder::new("missing-restart");
    let database = folder.open();
    let mut s = filled(&database);
    run(
        &mut s,
        "ALTER TABLE t ADD c int DEFAULT 7, ADD d text DEFAULT 'd', ADD made timestamptz DEFAULT now()",
    );
    run(&mut s, "ALTER TABLE t ALTER c SET DEFAULT 70, ALTER d DROP DEFAULT");
    run(&mut s, "UPDATE t SET n = -1 WHERE id % 4 = 0; CREATE INDEX ON t (c, d)");
    let made = rows(&mut s, "SELECT DISTINCT made FROM t");
    drop(s);
    close_sound(&folder, database);
    let database = folder.open();
    let mut s = session(&database, 1);
    assert_eq!(rows(&mut s, "SELECT DISTINCT made FROM t"), made);
    run(&mut s, "INSERT INTO t (id) VALUES (0); ANALYZE t");
    assert_eq!(
        rows(&mut s, "SELECT c, d, count(*) FROM t GROUP BY c, d ORDER BY c"),
        ["7|d|20000", "70|-|1"]
    );
    assert_eq!(rows(&mut s, "SELECT count(*) FROM t WHERE c = 7 AND d = 'd' AND id <= 10"), ["10"]);
    let common = "SELECT most_common_vals[1] FROM pg_stats WHERE tablename = 't' AND attname IN ('c', 'd')";
    assert_eq!(rows(&mut s, &format!("{common} ORDER BY attname")), ["7", "d"]);
    drop(s);
    close_sound(&folder, database);
}
