//! Definitions, COPY, sequences, concurrent changes, limits.

use crate::common::{Folder, behind, fails, rows, run};

#[test]
fn alter_table_changes_tables_with_rows() {
    let folder = Folder::new("alter");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (a int, b text)");
    run(&mut s, "INSERT INTO t VALUES (2, 'two'), (1, 'one')");
    run(&mut s, "ALTER TABLE t ADD PRIMARY KEY (a)");
    assert_eq!(rows(&mut s, "SELECT * FROM t"), ["1|one", "2|two"]);
    fails(&mut s, "INSERT INTO t VALUES (1, 'again')", "23505");
    run(&mut s, "ALTER TABLE t ADD COLUMN c int NOT NULL DEFAULT 7");
    assert_eq!(rows(&mut s, "SELECT * FROM t"), ["1|one|7", "2|two|7"]);
    run(&mut s, "ALTER TABLE t ADD COLUMN d text");
    assert_eq!(rows(&mut s, "SELECT * FROM t WHERE d IS NULL"), ["1|one|7|-", "2|two|7|-"]);
    run(&mut s, "ALTER TABLE t ALTER COLUMN c TYPE bigint USING c * 2");
    assert_eq!(rows(&mut s, "SELECT c FROM t"), ["14", "14"]);
    run(&mut s, "CREATE INDEX ON t (b); ALTER TABLE t DROP COLUMN c; ALTER TABLE t RENAME COLUMN b TO bb");
    assert_eq!(rows(&mut s, "SELECT * FROM t WHERE bb = 'two'"), ["2|two|-"]);
    fails(&mut s, "ALTER TABLE t ADD CHECK (a > 1)", "23514");
    run(&mut s, "ALTER TABLE t ADD CONSTRAINT small CHECK (a < 10)");
    fails(&mut s, "INSERT INTO t VALUES (10)", "23514");
    run(&mut s, "ALTER TABLE t DROP CONSTRAINT small; INSERT INTO t VALUES (10)");
    run(&mut s, "TRUNCATE t; INSERT INTO t VALUES (5)");
    assert_eq!(rows(&mut s, "SELECT a FROM t"), ["5"]);
    fails(&mut s, "CREATE UNIQUE INDEX ON t (nothing)", "42703");
    run(&mut s, "INSERT INTO t VALUES (6)");
    run(&mut s, "UPDATE t SET bb = 'same'");
    let error = fails(&mut s, "CREATE UNIQUE INDEX same ON t (bb)", "23505");
    assert_eq!(error.message, "could not create unique index \"same\"");
    run(&mut s, "VACUUM t");
    run(&mut s, "ANALYZE t; DROP TABLE t");
    fails(&mut s, "SELECT * FROM t", "42P01");
    let columns = |count: usize| (0..count).map(|i| format!("c{i} int")).collect::<Vec<_>>().join(", ");
    let error = fails(&mut s, &format!("CREATE TABLE wide ({})", columns(1601)), "54011");
    assert_eq!(error.message, "tables can have at most 1600 columns");
    run(&mut s, &format!("CREATE TABLE wide ({})", columns(1600)));
    fails(&mut s, "ALTER TABLE wide ADD COLUMN more int", "54011");
    run(&mut s, "DROP TABLE wide; CREATE SCHEMA x; CREATE TABLE x.t (a int); SET search_path TO x");
    run(&mut s, "INSERT INTO t VALUES (1)");
    assert_eq!(rows(&mut s, "SELECT a FROM x.t"), ["1"]);
    run(&mut s, "DROP SCHEMA x CASCADE");
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn copy_and_sequences_work_together() {
    let folder = Folder::new("copy");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (a int PRIMARY KEY, b text, c float8 DEFAULT 1.5)");
    let answer =
        s.copy_in("COPY t (a, b) FROM STDIN", b"1\tone\n2\t\\N\n3\ttab\\there\n\\.\n").expect("copies");
    assert_eq!(answer.tags, ["COPY 3"]);
    assert_eq!(run(&mut s, "COPY t TO STDOUT").copied, b"1\tone\t1.5\n2\t\\N\t1.5\n3\ttab\\there\t1.5\n");
    let answer = s.copy_in("COPY t FROM STDIN WITH (FORMAT csv)", b"4,\"a,\"\"b\",2\n5,,\n").expect("copies");
    assert_eq!(answer.tags, ["COPY 2"]);
    assert_eq!(
        run(&mut s, "COPY (SELECT a, b FROM t WHERE a > 3 ORDER BY a) TO STDOUT (FORMAT csv, HEADER)").copied,
        b"a,b\n4,\"a,\"\"b\"\n5,\n"
    );
    let error = s.copy_in("COPY t FROM STDIN", b"6\tx\n").expect_err("too few");
    assert_eq!((error.code.as_str(), error.message.as_str()), ("22P04", "missing data for column \"c\""));
    assert_eq!(error.context.as_deref(), Some("COPY t, line 1: \"6\tx\""));
    let error = s.copy_in("COPY t FROM STDIN", b"6\tx\t1\nsix\tx\t1\n").expect_err("no number");
    assert_eq!(error.context.as_deref(), Some("COPY t, line 2, column a: \"six\""));
    assert_eq!(rows(&mut s, "SELECT count(*) FROM t"), ["5"]);
    let binary = run(&mut s, "COPY t TO STDOUT (FORMAT binary)").copied;
    run(&mut s, "CREATE TABLE u (a int, b text, c float8)");
    s.copy_in("COPY u FROM STDIN (FORMAT binary)", &binary).expect("copies");
    assert_eq!(rows(&mut s, "SELECT count(*), sum(a) FROM u"), ["5|15"]);
    run(&mut s, "CREATE SEQUENCE q START 10 INCREMENT 5 MAXVALUE 20");
    fails(&mut s, "SELECT currval('q')", "55000");
    assert_eq!(rows(&mut s, "SELECT nextval('q'), nextval('q'), currval('q')"), ["10|15|15"]);
    run(&mut s, "BEGIN; SELECT nextval('q'); ROLLBACK");
    fails(&mut s, "SELECT nextval('q')", "2200H");
    assert_eq!(rows(&mut s, "SELECT setval('q', 15)"), ["15"]);
    assert_eq!(rows(&mut s, "SELECT nextval('q'), lastval()"), ["20|20"]);
    run(&mut s, "CREATE TABLE i (id int GENERATED ALWAYS AS IDENTITY, v int)");
    assert_eq!(rows(&mut s, "INSERT INTO i (v) VALUES (1), (2) RETURNING id"), ["1", "2"]);
    run(&mut s, "DROP TABLE i; DROP SEQUENCE q");
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn concurrent_changes_wait_for_each_other() {
    let folder = Folder::new("concurrent");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (a int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0)");
    // Many sessions add to one row, and no addition is lost.
    std::thread::scope(|scope| {
        for worker in 0..6 {
            let database = &database;
            scope.spawn(move || {
                let mut s = database.session("postgres", worker % 2).expect("a session");
                for _ in 0..50 {
                    run(&mut s, "UPDATE t SET n = n + 1 WHERE a = 1");
                }
            });
        }
    });
    assert_eq!(rows(&mut s, "SELECT n FROM t WHERE a = 1"), ["300"]);
    let mut other = database.session("postgres", 1).expect("a session");
    run(&mut s, "BEGIN; SELECT * FROM t WHERE a = 1 FOR UPDATE");
    assert_eq!(rows(&mut other, "SELECT a FROM t ORDER BY a FOR UPDATE SKIP LOCKED"), ["2"]);
    fails(&mut other, "SELECT a FROM t WHERE a = 1 FOR UPDATE NOWAIT", "55P03");
    run(&mut other, "SET lock_timeout = '50ms'");
    fails(&mut other, "UPDATE t SET n = 1 WHERE a = 1", "55P03");
    run(&mut other, "SET lock_timeout = 0; SET statement_timeout = '50ms'");
    fails(&mut other, "UPDATE t SET n = 1 WHERE a = 1", "57014");
    run(&mut other, "SET statement_timeout = 0");
    // The update skips a row that no longer qualifies once the other transaction has committed.
    run(&mut s, "UPDATE t SET n = -1 WHERE a = 1");
    let tags = behind(&database, &mut s, || run(&mut other, "UPDATE t SET n = 7 WHERE n >= 0").tags);
    assert_eq!(tags, ["UPDATE 1"]);
    assert_eq!(rows(&mut s, "SELECT n FROM t ORDER BY a"), ["-1", "7"]);
    run(&mut s, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM t");
    run(&mut other, "UPDATE t SET n = 8 WHERE a = 2");
    assert_eq!(rows(&mut s, "SELECT n FROM t WHERE a = 2"), ["7"]);
    fails(&mut s, "UPDATE t SET n = 9 WHERE a = 2", "40001");
    run(&mut s, "ROLLBACK");
    let answer =
        run(&mut s, "INSERT INTO t VALUES (2, 0), (3, 0) ON CONFLICT (a) DO UPDATE SET n = t.n + 100");
    assert_eq!(answer.tags, ["INSERT 0 2"]);
    assert_eq!(rows(&mut s, "SELECT n FROM t ORDER BY a"), ["-1", "108", "0"]);
    assert_eq!(run(&mut s, "INSERT INTO t VALUES (1, 1) ON CONFLICT DO NOTHING").tags, ["INSERT 0 0"]);
    drop((s, other));
    database.shutdown().expect("closes");
}

#[test]
fn cursors_and_prepared_statements_return_their_rows() {
    let folder = Folder::new("cursors");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "BEGIN; DECLARE c CURSOR FOR SELECT g FROM generate_series(1, 5) g");
    assert_eq!(rows(&mut s, "FETCH 2 FROM c"), ["1", "2"]);
    assert_eq!(run(&mut s, "MOVE 1 IN c").tags, ["MOVE 1"]);
    assert_eq!(rows(&mut s, "FETCH ALL FROM c"), ["4", "5"]);
    run(&mut s, "CLOSE c; COMMIT");
    fails(&mut s, "FETCH c", "34000");
    run(&mut s, "PREPARE p (int) AS SELECT $1 + 1");
    assert_eq!(rows(&mut s, "EXECUTE p (41)"), ["42"]);
    run(&mut s, "CREATE TABLE t (a int); PREPARE all_of_t AS SELECT * FROM t; INSERT INTO t VALUES (1)");
    assert_eq!(rows(&mut s, "EXECUTE all_of_t"), ["1"]);
    run(&mut s, "CREATE INDEX ON t (a)");
    assert_eq!(rows(&mut s, "EXECUTE all_of_t"), ["1"]);
    run(&mut s, "ALTER TABLE t ADD COLUMN b int");
    fails(&mut s, "EXECUTE all_of_t", "0A000");
    run(&mut s, "DEALLOCATE ALL");
    fails(&mut s, "EXECUTE p (1)", "26000");
    run(&mut s, "SET application_name = 'x'; BEGIN; SET LOCAL application_name = 'y'; COMMIT");
    assert_eq!(rows(&mut s, "SHOW application_name"), ["x"]);
    run(&mut s, "BEGIN; SET TimeZone = 'Europe/Berlin'; ROLLBACK");
    assert_eq!(rows(&mut s, "SHOW timezone"), ["UTC"]);
    fails(&mut s, "SET nonsense = 1", "42704");
    assert_eq!(rows(&mut s, "SELECT g FROM generate_series(1, 2.0, 0.5) g"), ["1", "1.5", "2.0"]);
    assert_eq!(
        rows(
            &mut s,
            "SELECT count(*) FROM generate_series('2026-01-31'::timestamp, '2026-01-01', '-1 day') g"
        ),
        ["31"]
    );
    run(&mut s, "SELECT set_config('application_name', 'z', false)");
    assert_eq!(rows(&mut s, "SELECT current_setting('application_name')"), ["z"]);
    assert_eq!(rows(&mut s, "SELECT count(*) > 0 FROM pg_stat_activity"), ["t"]);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_session_runs_the_pgbench_transaction() {
    let folder = Folder::new("pgbench");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(
        &mut s,
        "CREATE TABLE pgbench_branches (bid int NOT NULL, bbalance int, filler char(88));
         CREATE TABLE pgbench_tellers (tid int NOT NULL, bid int, tbalance int, filler char(84));
         CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84));
         CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
         INSERT INTO pgbench_branches (bid, bbalance) VALUES (1, 0);
         INSERT INTO pgbench_tellers (tid, bid, tbalance) SELECT g, 1, 0 FROM generate_series(1, 10) g;
         INSERT INTO pgbench_accounts (aid, bid, abalance, filler) SELECT g, 1, 0, '' FROM generate_series(1, 1000) g;
         ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid);
         ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid);
         ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)",
    );
    std::thread::scope(|scope| {
        for worker in 0..4_usize {
            let database = &database;
            scope.spawn(move || {
                let mut s = database.session("postgres", worker % 2).expect("a session");
                for turn in 0..50 {
                    let (aid, tid, delta) = (worker * 250 + turn + 1, worker + 1, turn as i32 - 20);
                    run(
                        &mut s,
                        &format!(
                            "BEGIN; UPDATE pgbench_accounts SET abalance = abalance + {delta} WHERE aid = {aid};
                             SELECT abalance FROM pgbench_accounts WHERE aid = {aid};
                             UPDATE pgbench_tellers SET tbalance = tbalance + {delta} WHERE tid = {tid};
                             UPDATE pgbench_branches SET bbalance = bbalance + {delta} WHERE bid = 1;
                             INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
                             VALUES ({tid}, 1, {aid}, {delta}, CURRENT_TIMESTAMP); END"
                        ),
                    );
                }
            });
        }
    });
    let total = rows(&mut s, "SELECT sum(delta) FROM pgbench_history");
    assert_eq!(rows(&mut s, "SELECT count(*) FROM pgbench_history"), ["200"]);
    assert_eq!(rows(&mut s, "SELECT bbalance FROM pgbench_branches"), total);
    assert_eq!(rows(&mut s, "SELECT sum(tbalance) FROM pgbench_tellers"), total);
    assert_eq!(rows(&mut s, "SELECT sum(abalance) FROM pgbench_accounts"), total);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_text_of_many_statements_yields() {
    let folder = Folder::new("many-statements");
    let database = folder.open();
    let mut many = database.session("postgres", 0).expect("a session");
    let mut other = database.session("postgres", 0).expect("a session");
    run(&mut other, "SELECT 1");
    let running = std::thread::spawn(move || {
        run(&mut many, &"SELECT 1;".repeat(200_000));
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    run(&mut other, "SELECT 1");
    assert!(!running.is_finished(), "another session of the core waited for all the statements");
    running.join().expect("they end");
    drop(other);
    database.shutdown().expect("closes");
}
