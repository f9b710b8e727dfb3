//! Rows in bulk: into tables made by the same transaction, and into indexes and keys of tables that
//! have rows.

use crate::common::{Folder, fails, rows, run};
use sql::embedded::EmbeddedSession;

/// Rows of COPY's text format with these numbers, each with a note.
fn data(numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    numbers.flat_map(|n| format!("{n}\tnote {n}\n").into_bytes()).collect()
}

/// Numbers below `count` in random order; `count` is a power of two.
fn shuffled(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(move |n| n.wrapping_mul(0x9e37_79b1) % count)
}

/// Checks that the table holds the numbers from 0 to `count`, each with its note.
#[track_caller]
fn holds(session: &mut EmbeddedSession, table: &str, count: u32) {
    let sum = u64::from(count) * u64::from(count.saturating_sub(1)) / 2;
    let expected = format!("{count}|{}|{count}", if count == 0 { "-".into() } else { sum.to_string() });
    let query = format!("SELECT count(*), sum(a), count(*) FILTER (WHERE b = 'note ' || a) FROM {table}");
    assert_eq!(rows(session, &query), [expected]);
}

#[test]
fn a_table_made_by_the_transaction_is_filled() {
    let folder = Folder::new("load-new");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    for (key, n) in [("", 1), ("PRIMARY KEY", 70), ("", 10_000), ("PRIMARY KEY", 10_000)] {
        run(&mut s, &format!("BEGIN; CREATE TABLE t (a int {key}, b text)"));
        s.copy_in("COPY t FROM STDIN", &data(0..n)).expect("copies");
        holds(&mut s, "t", n);
        // The next COPY finds rows there and inserts in the ordinary way.
        s.copy_in("COPY t FROM STDIN", &data(n..2 * n)).expect("copies");
        holds(&mut s, "t", 2 * n);
        run(&mut s, "UPDATE t SET b = b || '!' WHERE a % 7 = 0; DELETE FROM t WHERE a % 7 = 0; COMMIT");
        assert_eq!(rows(&mut s, "SELECT count(*) FROM t"), [(2 * n - (2 * n).div_ceil(7)).to_string()]);
        // A TRUNCATE in the transaction makes the table new again.
        run(&mut s, "BEGIN; TRUNCATE t");
        s.copy_in("COPY t FROM STDIN", &data(0..n)).expect("copies");
        holds(&mut s, "t", n);
        run(&mut s, "COMMIT");
        holds(&mut s, "t", n);
        run(&mut s, "DROP TABLE t");
    }
    run(&mut s, "CREATE TABLE u AS SELECT a, 'note ' || a AS b FROM generate_series(0, 4999) a");
    holds(&mut s, "u", 5000);
    run(&mut s, "BEGIN; CREATE TABLE v (a int PRIMARY KEY, b text)");
    run(&mut s, "INSERT INTO v SELECT * FROM u ORDER BY a; COMMIT");
    holds(&mut s, "v", 5000);
    assert_eq!(rows(&mut s, "SELECT b FROM v WHERE a = 4321"), ["note 4321"]);
    drop(s);
    database.shutdown().expect("closes");
    drop(database);
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    holds(&mut s, "v", 5000);
    run(&mut s, "INSERT INTO u VALUES (5000, 'note 5000')");
    holds(&mut s, "u", 5001);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_load_takes_keys_out_of_order_and_refuses_doubles() {
    let folder = Folder::new("load-order");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "BEGIN; CREATE TABLE t (a int PRIMARY KEY, b text); CREATE INDEX ON t (b)");
    // Some rows in order, then the rest in random order.
    let mixed = (0..3000).chain(shuffled(8192).filter(|n| *n >= 3000));
    s.copy_in("COPY t FROM STDIN", &data(mixed)).expect("copies");
    run(&mut s, "COMMIT");
    holds(&mut s, "t", 8192);
    assert_eq!(
        rows(&mut s, "SELECT a FROM t WHERE b = 'note 2999' OR b = 'note 8191' ORDER BY 1"),
        ["2999", "8191"]
    );
    for (twice, line) in [(2, 4), (0, 4), (2999, 3001)] {
        run(&mut s, "BEGIN; CREATE TABLE u (a int PRIMARY KEY, b text)");
        let keys = (0..line - 1).chain([twice]).chain(5000..5010);
        let error = s.copy_in("COPY u FROM STDIN", &data(keys)).expect_err("a key twice");
        assert_eq!(error.code.as_str(), "23505");
        assert_eq!(error.message, "duplicate key value violates unique constraint \"u_pkey\"");
        assert_eq!(error.detail.as_deref(), Some(&*format!("Key (a)=({twice}) already exists.")));
        assert_eq!(error.context.as_deref(), Some(&*format!("COPY u, line {line}")));
        run(&mut s, "ROLLBACK");
    }
    fails(&mut s, "SELECT * FROM u", "42P01");
    run(&mut s, "BEGIN; TRUNCATE t");
    fails(&mut s, "INSERT INTO t SELECT a / 2, '' FROM generate_series(0, 99) a", "23505");
    run(&mut s, "ROLLBACK");
    holds(&mut s, "t", 8192);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_rollback_takes_back_the_load_and_nothing_else() {
    let folder = Folder::new("load-savepoints");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    let load = |s: &mut EmbeddedSession, n: u32| {
        s.copy_in("COPY t FROM STDIN", &data(0..n)).expect("copies");
        holds(s, "t", n);
    };
    // The table was made before the savepoint: only the rows go.
    run(&mut s, "BEGIN; CREATE TABLE t (a int PRIMARY KEY, b text); SAVEPOINT one");
    load(&mut s, 3000);
    run(&mut s, "ROLLBACK TO one");
    holds(&mut s, "t", 0);
    // The table is truncated after the savepoint: the former rows come back with it.
    load(&mut s, 2000);
    run(&mut s, "SAVEPOINT two; TRUNCATE t");
    load(&mut s, 1000);
    run(&mut s, "ROLLBACK TO two");
    holds(&mut s, "t", 2000);
    run(&mut s, "TRUNCATE t; SAVEPOINT three; RELEASE three");
    load(&mut s, 500);
    run(&mut s, "SAVEPOINT four");
    fails(&mut s, "INSERT INTO t SELECT a, 'x' FROM generate_series(499, 1000) a", "23505");
    run(&mut s, "ROLLBACK TO four; RELEASE four; COMMIT");
    holds(&mut s, "t", 500);
    run(&mut s, "BEGIN; TRUNCATE t");
    load(&mut s, 5000);
    run(&mut s, "ROLLBACK");
    holds(&mut s, "t", 500);
    // A load that fails half way fails its transaction.
    run(&mut s, "BEGIN; TRUNCATE t");
    let bad = [data(0..4000), b"4000\ttoo\tmany\n".to_vec()].concat();
    assert_eq!(s.copy_in("COPY t FROM STDIN", &bad).expect_err("too many").code.as_str(), "22P04");
    fails(&mut s, "SELECT 1", "25P02");
    run(&mut s, "ROLLBACK");
    holds(&mut s, "t", 500);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_reader_sees_loaded_rows_as_its_snapshot_says() {
    let folder = Folder::new("load-readers");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    let mut reader = database.session("postgres", 1).expect("a session");
    run(&mut s, "CREATE TABLE t (a int PRIMARY KEY, b text); CREATE TABLE other (x int)");
    run(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM other");
    run(&mut s, "BEGIN; TRUNCATE t");
    s.copy_in("COPY t FROM STDIN", &data(0..5000)).expect("copies");
    run(&mut s, "COMMIT; CREATE TABLE late AS SELECT * FROM t");
    // Its snapshot is older than the rows.
    assert_eq!(rows(&mut reader, "SELECT count(*) FROM late"), ["0"]);
    fails(&mut reader, "SELECT b FROM t WHERE a = 77", "40001");
    run(&mut reader, "ROLLBACK");
    holds(&mut reader, "t", 5000);
    holds(&mut reader, "late", 5000);
    // A statement does not see its own rows, also in a table it fills.
    run(&mut s, "BEGIN; TRUNCATE t");
    run(
        &mut s,
        "INSERT INTO t SELECT n + (SELECT count(*) FROM t), 'note ' || n FROM generate_series(0, 999) n",
    );
    holds(&mut s, "t", 1000);
    run(&mut s, "COMMIT; BEGIN; CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree)");
    let lines: Vec<u8> = (1..2000).flat_map(|n| format!("{n}\t{}\n", n / 2 + 1).into_bytes()).collect();
    s.copy_in("COPY tree FROM STDIN", &lines).expect("every parent comes sooner or later");
    let error = s.copy_in("COPY tree FROM STDIN", b"5000\t5001\n").expect_err("no parent");
    assert_eq!(error.code.as_str(), "23503");
    run(&mut s, "ROLLBACK; BEGIN; CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree)");
    let error = s.copy_in("COPY tree FROM STDIN", b"1\t1\n2\t3\n").expect_err("no parent");
    assert_eq!(error.code.as_str(), "23503");
    run(&mut s, "ROLLBACK");
    drop((s, reader));
    database.shutdown().expect("closes");
}

#[test]
fn keys_and_indexes_are_built_on_existing_rows() {
    const COUNT: u32 = 1 << 16;
    let folder = Folder::new("load-indexes");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    // The sorted rows go to temporary pages, too.
    run(&mut s, "SET maintenance_work_mem = '1MB'");
    let orders: [(&str, Vec<u32>); 3] = [
        ("ascending", (0..COUNT).collect()),
        ("shuffled", shuffled(COUNT).collect()),
        // After a long run in order, the rest is inserted into the built tree.
        ("late", (0..COUNT / 2).map(|n| 2 * n).chain((0..COUNT / 2).map(|n| 2 * n + 1)).collect()),
    ];
    for (name, order) in orders {
        run(&mut s, "CREATE TABLE t (a int, b text, c int DEFAULT 7)");
        s.copy_in("COPY t (a, b) FROM STDIN", &data(order.iter().copied())).expect("copies");
        run(
            &mut s,
            "CREATE UNIQUE INDEX u ON t (b); CREATE INDEX d ON t (c, a DESC); ALTER TABLE t ADD PRIMARY KEY (a)",
        );
        holds(&mut s, "t", COUNT);
        assert_eq!(rows(&mut s, "SELECT min(a), max(a) FROM t WHERE c = 7"), [format!("0|{}", COUNT - 1)]);
        assert_eq!(rows(&mut s, "SELECT a FROM t WHERE b = 'note 54321'"), ["54321"], "{name}");
        assert_eq!(
            rows(&mut s, "SELECT a FROM t WHERE c = 7 ORDER BY c, a DESC LIMIT 2"),
            [(COUNT - 1).to_string(), (COUNT - 2).to_string()]
        );
        let error = fails(&mut s, "INSERT INTO t VALUES (100000, 'note 5')", "23505");
        assert_eq!(error.constraint.as_deref(), Some("u"));
        run(&mut s, "DELETE FROM t WHERE a >= 100; UPDATE t SET c = a");
        assert_eq!(rows(&mut s, "SELECT count(*) FROM t WHERE c BETWEEN 50 AND 59"), ["10"]);
        run(&mut s, "DROP TABLE t");
    }
    for twice in [0, 40_000, COUNT - 1] {
        run(&mut s, "CREATE TABLE t (a int, b text)");
        s.copy_in("COPY t FROM STDIN", &data(shuffled(COUNT).chain([twice]))).expect("copies");
        let detail = |error: &sql::SqlError| error.detail.clone().unwrap_or_default();
        let error = fails(&mut s, "ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a)", "23505");
        assert_eq!(error.message, "could not create unique index \"k\"");
        assert_eq!(detail(&error), format!("Key (a)=({twice}) is duplicated."));
        let error = fails(&mut s, "CREATE UNIQUE INDEX u ON t (b)", "23505");
        assert_eq!(error.message, "could not create unique index \"u\"");
        assert_eq!(detail(&error), format!("Key (b)=(note {twice}) is duplicated."));
        run(&mut s, "DROP TABLE t");
    }
    // NULLs are distinct, or not, by the index's clause.
    run(&mut s, "CREATE TABLE t (a int); INSERT INTO t VALUES (NULL), (1), (NULL)");
    run(&mut s, "CREATE UNIQUE INDEX ON t (a)");
    fails(&mut s, "CREATE UNIQUE INDEX ON t (a) NULLS NOT DISTINCT", "23505");
    fails(&mut s, "ALTER TABLE t ADD PRIMARY KEY (a)", "23502");
    let long = format!("CREATE TABLE l AS SELECT repeat('x', {}) AS a", 1500);
    run(&mut s, &long);
    fails(&mut s, "CREATE INDEX ON l (a)", "54000");
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_load_is_cancelled() {
    let folder = Folder::new("load-cancel");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t AS SELECT a FROM generate_series(1, 300000) a");
    for sql in [
        "CREATE TABLE u AS SELECT a FROM generate_series(1, 2000000000) a",
        "BEGIN; CREATE TABLE u (a bigint PRIMARY KEY); INSERT INTO u SELECT generate_series(1, 2000000000)",
        "CREATE INDEX i ON t (a)",
    ] {
        run(&mut s, "SET statement_timeout = 20");
        fails(&mut s, sql, "57014");
        run(&mut s, "ROLLBACK; SET statement_timeout = 0");
        fails(&mut s, "SELECT * FROM u", "42P01");
    }
    run(&mut s, "CREATE INDEX i ON t (a)");
    assert_eq!(rows(&mut s, "SELECT a FROM t WHERE a = 299999"), ["299999"]);
    drop(s);
    database.shutdown().expect("closes");
}
