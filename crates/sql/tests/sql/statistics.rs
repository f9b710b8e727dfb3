//! Statistics: what ANALYZE gathers, the plans that values get by it, and ANALYZE by itself.

use std::time::{Duration, Instant};

use crate::common::{Folder, LONG, rows, run};
use sql::database::Options;
use sql::embedded::EmbeddedSession;

fn number(session: &mut EmbeddedSession, query: &str) -> f64 {
    rows(session, query)[0].parse().unwrap_or_else(|_| panic!("{query}"))
}

fn plan(session: &mut EmbeddedSession, statement: &str) -> String {
    rows(session, &format!("EXPLAIN {statement}")).join("\n")
}

/// A state of which one value in a thousand is rare, a number in random order, and NULLs.
const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, state text, number int, part int, body text);
     INSERT INTO t SELECT g, CASE WHEN g % 1000 = 0 THEN 'open' ELSE 'done' END,
         (g * 7919::int8 % 40009)::int, CASE WHEN g % 4 > 0 THEN g % 7 END, repeat('x', 60)
     FROM generate_series(1, 40000) g;
     CREATE INDEX ON t (state); CREATE INDEX ON t (number);";

#[test]
fn analyze_finds_common_values_histograms_and_orders() {
    let folder = Folder::new("statistics");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, TABLE);
    // Read whole at first, then by a sample of 300 rows: a quarter of them is 75 with a deviation
    // of 7.5.
    for (target, error) in [(100, 0.02), (1, 0.5)] {
        run(&mut s, &format!("SET default_statistics_target = {target}; ANALYZE t"));
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < error;
        let of = |column: &str, what: &str| {
            format!("SELECT {what} FROM pg_stats WHERE tablename = 't' AND attname = '{column}'")
        };
        let count = number(&mut s, "SELECT reltuples FROM pg_class WHERE relname = 't'");
        assert!(near(count, 40_000.0), "{count} rows at {target}");
        let mut stat = |column: &str, what: &str| number(&mut s, &of(column, what));
        assert!(near(stat("part", "null_frac"), 0.25));
        assert!(near(stat("id", "n_distinct"), -1.0) && near(stat("number", "n_distinct"), -1.0));
        assert!(stat("id", "correlation") > 0.99 && stat("number", "correlation").abs() < 0.3);
        assert!(near(stat("state", "most_common_freqs[1]"), 0.999));
        let middle = stat("number", "histogram_bounds[array_length(histogram_bounds, 1)]::int");
        assert!(near(middle, 40_000.0), "{middle}");
        if target == 100 {
            assert_eq!(stat("part", "n_distinct"), 7.0);
            assert_eq!(rows(&mut s, &of("state", "most_common_vals")), ["{done,open}"]);
        }
    }
    run(&mut s, "CREATE TABLE empty (a int, b text); ANALYZE empty");
    assert_eq!(rows(&mut s, "SELECT count(*) FROM pg_stats WHERE tablename = 'empty'"), ["0"]);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn each_class_of_values_gets_its_own_plan() {
    let folder = Folder::new("plans-by-value");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, TABLE);
    run(&mut s, "ANALYZE t");
    run(&mut s, "PREPARE by_state (text) AS SELECT count(body) FROM t WHERE state = $1");
    run(&mut s, "PREPARE by_number (int, int) AS SELECT count(body) FROM t WHERE number BETWEEN $1 AND $2");
    let asks = [
        ("by_state('open')", "Index", "40"),
        ("by_state('done')", "Seq", "39960"),
        ("by_state('none')", "Index", "0"),
        ("by_state(NULL)", "Index", "0"),
        ("by_number(5, 9)", "Index", "5"),
        ("by_number(0, 40008)", "Seq", "40000"),
        ("by_number(NULL, 5)", "Index", "0"),
        ("by_number(9, 5)", "Index", "0"),
    ];
    for _ in 0..2 {
        for (call, scan, count) in asks {
            let shown = plan(&mut s, &format!("EXECUTE {call}"));
            assert!(shown.contains(&format!("{scan} Scan")), "{call}:\n{shown}");
            assert_eq!(rows(&mut s, &format!("EXECUTE {call}")), [count], "{call}");
        }
    }
    // The same template, with the literals of each text.
    for (text, count) in [("open", "40"), ("done", "39960"), ("open", "40"), ("other", "0")] {
        assert_eq!(rows(&mut s, &format!("SELECT count(body) FROM t WHERE state = '{text}'")), [count]);
    }
    // More classes than plans are kept for.
    for width in (0..16).map(|power| 1 << power) {
        let found = number(&mut s, &format!("EXECUTE by_number(1, {width})"));
        assert_eq!(
            found,
            number(&mut s, &format!("SELECT count(*) FROM t WHERE number BETWEEN 1 AND {width}"))
        );
    }
    run(&mut s, "SET plan_cache_mode = force_generic_plan");
    let generic = plan(&mut s, "EXECUTE by_number(0, 40008)");
    assert!(generic.contains("Index Scan"), "{generic}");
    // Other statistics, other plans.
    run(&mut s, "RESET plan_cache_mode; UPDATE t SET state = 'open'; ANALYZE t");
    let changed = plan(&mut s, "EXECUTE by_state('open')");
    assert!(changed.contains("Seq Scan"), "{changed}");
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_table_is_analyzed_by_itself_once_enough_has_changed() {
    let folder = Folder::new("autoanalyze");
    let pause = Duration::from_millis(20);
    let database = folder.open_with(Options { autoanalyze_pause: pause, ..Options::default() });
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (a int PRIMARY KEY); CREATE TABLE few (a int); CREATE TABLE held (a int)");
    run(&mut s, "INSERT INTO few SELECT generate_series(1, 50)");
    let count = |s: &mut EmbeddedSession, table: &str| {
        number(s, &format!("SELECT reltuples FROM pg_class WHERE relname = '{table}'"))
    };
    let until = |s: &mut EmbeddedSession, table: &str, wanted: f64| {
        let start = Instant::now();
        while count(s, table) != wanted {
            assert!(start.elapsed() < LONG, "{} rows of {table}", count(s, table));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    run(&mut s, "INSERT INTO t SELECT generate_series(1, 1000)");
    until(&mut s, "t", 1000.0);
    // A tenth and 50 rows.
    run(&mut s, "DELETE FROM t WHERE a <= 151");
    until(&mut s, "t", 849.0);
    assert_eq!(count(&mut s, "few"), -1.0);
    // A locked table is analysed later, and keeps no other table waiting.
    run(&mut s, "INSERT INTO held SELECT generate_series(1, 40)");
    let mut holder = database.session("postgres", 1).expect("a session");
    run(&mut holder, "BEGIN; LOCK TABLE held; INSERT INTO held SELECT generate_series(1, 100)");
    run(&mut s, "INSERT INTO t SELECT generate_series(2001, 4000)");
    until(&mut s, "t", 2849.0);
    assert_eq!(count(&mut s, "held"), -1.0);
    run(&mut holder, "COMMIT");
    until(&mut s, "held", 140.0);
    // The rows of a transaction count once it has ended.
    run(&mut holder, "BEGIN; INSERT INTO held SELECT generate_series(1, 1000)");
    std::thread::sleep(10 * pause);
    assert_eq!(count(&mut s, "held"), 140.0);
    run(&mut holder, "COMMIT");
    until(&mut s, "held", 1140.0);
    drop(holder);
    // Its sessions are in nobody's way.
    for round in 0..5 {
        run(&mut s, "CREATE DATABASE other");
        let mut other = database.session("other", 1).expect("a session");
        run(&mut other, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS a");
        std::thread::sleep(Duration::from_millis(8 * round));
        drop(other);
        run(&mut s, "DROP DATABASE other");
    }
    run(&mut s, "DROP TABLE t; TRUNCATE held");
    assert_eq!(rows(&mut s, "SELECT count(*) FROM held"), ["0"]);
    drop(s);
    database.shutdown().expect("closes");
}

/// Two columns whose values are equally common. Equal ones come together in 98 of 100 rows.
const PAIRS: &str = "CREATE TABLE pairs (id int PRIMARY KEY, a int, b int, body text);
     INSERT INTO pairs SELECT g, g % 2, CASE WHEN g % 100 < 2 THEN 1 - g % 2 ELSE g % 2 END, repeat('x', 60)
     FROM generate_series(1, 40000) g;
     CREATE INDEX ON pairs (a, b);";

/// The estimated rows of a statement.
fn estimated(session: &mut EmbeddedSession, statement: &str) -> f64 {
    let shown = plan(session, statement);
    let rows = shown.split_once("rows=").and_then(|(_, rest)| rest.split_once(' '));
    rows.and_then(|(rows, _)| rows.parse().ok()).unwrap_or_else(|| panic!("{shown}"))
}

#[test]
fn each_class_of_combinations_gets_its_own_plan() {
    let folder = Folder::new("plans-by-combination");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, PAIRS);
    run(&mut s, "CREATE STATISTICS pair ON a, b FROM pairs; ANALYZE pairs");
    run(&mut s, "PREPARE by_both (int, int) AS SELECT count(body) FROM pairs WHERE a = $1 AND b = $2");
    run(&mut s, "PREPARE by_one (int) AS SELECT count(body) FROM pairs WHERE a = 0 AND b = $1");
    let asks = [
        ("by_both(0, 0)", "Seq", "19600"),
        ("by_both(0, 1)", "Index", "400"),
        ("by_both(1, 1)", "Seq", "19600"),
        ("by_both(1, 2)", "Index", "0"),
        ("by_both(1, NULL)", "Index", "0"),
        ("by_one(0)", "Seq", "19600"),
        ("by_one(1)", "Index", "400"),
    ];
    for _ in 0..2 {
        for (call, scan, count) in asks {
            let shown = plan(&mut s, &format!("EXECUTE {call}"));
            assert!(shown.contains(&format!("{scan} Scan")), "{call}:\n{shown}");
            assert_eq!(rows(&mut s, &format!("EXECUTE {call}")), [count], "{call}");
        }
    }
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_session_plans_by_statistics_until_another_commits_their_drop() {
    let folder = Folder::new("extended-drop");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    let mut other = database.session("postgres", 1).expect("a session");
    run(&mut s, PAIRS);
    run(&mut s, "CREATE STATISTICS pair ON a, b FROM pairs; ANALYZE pairs");
    let query = "SELECT body FROM pairs WHERE a = 0 AND b = 0";
    run(&mut other, &format!("PREPARE q AS {query}"));
    let together = |rows: f64| (19_000.0..20_200.0).contains(&rows);
    let alone = |rows: f64| (9_500.0..10_500.0).contains(&rows);
    assert!(together(estimated(&mut other, "EXECUTE q")));
    run(&mut s, "BEGIN; DROP STATISTICS pair");
    assert!(alone(estimated(&mut s, query)), "its own drop counts at once");
    assert!(together(estimated(&mut other, "EXECUTE q")), "the drop is not committed");
    run(&mut s, "ROLLBACK");
    assert!(together(estimated(&mut s, query)));
    run(&mut s, "DROP STATISTICS pair");
    assert!(alone(estimated(&mut other, "EXECUTE q")));
    // New statistics count once ANALYZE has run.
    run(&mut s, "BEGIN; CREATE STATISTICS pair (mcv) ON a, b FROM pairs");
    assert!(alone(estimated(&mut s, query)));
    run(&mut s, "ANALYZE pairs");
    assert!(together(estimated(&mut s, query)) && alone(estimated(&mut other, "EXECUTE q")));
    run(&mut s, "COMMIT");
    assert!(together(estimated(&mut other, "EXECUTE q")));
    // Those of a column with another type are gone; those of other columns stay.
    run(&mut s, "CREATE STATISTICS rest ON b, body FROM pairs; ANALYZE pairs");
    run(&mut s, "ALTER TABLE pairs ALTER COLUMN a TYPE bigint");
    assert!(alone(estimated(&mut s, query)));
    assert_eq!(rows(&mut s, "SELECT statistics_name FROM pg_stats_ext"), ["rest"]);
    drop((s, other));
    database.shutdown().expect("closes");
}

#[test]
fn a_table_with_extended_statistics_is_analyzed_by_itself() {
    let folder = Folder::new("extended-autoanalyze");
    let pause = Duration::from_millis(20);
    let database = folder.open_with(Options { autoanalyze_pause: pause, ..Options::default() });
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (a int, b int); CREATE STATISTICS st ON a, b FROM t");
    run(&mut s, "INSERT INTO t SELECT g % 10, g % 10 FROM generate_series(1, 1000) g");
    let start = Instant::now();
    while rows(&mut s, "SELECT n_distinct FROM pg_stats_ext") != ["{\"1, 2\": 10}"] {
        assert!(start.elapsed() < LONG, "not analysed");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_loaded_table_is_analyzed_soon_and_a_busy_one_is_not() {
    let folder = Folder::new("load-autoanalyze");
    let autovacuum_pause = Duration::from_millis(20);
    let autoanalyze_pause = Duration::from_secs(3600);
    let database = folder.open_with(Options { autovacuum_pause, autoanalyze_pause, ..Options::default() });
    let mut s = database.session("postgres", 0).expect("a session");
    let analyzed = |s: &mut EmbeddedSession, table: &str| {
        number(s, &format!("SELECT reltuples FROM pg_class WHERE relname = '{table}'"))
    };
    let until = |s: &mut EmbeddedSession, wanted: f64| {
        let start = Instant::now();
        while analyzed(s, "t") != wanted {
            assert!(start.elapsed() < LONG, "{} rows", analyzed(s, "t"));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    run(
        &mut s,
        "CREATE TABLE t (a int PRIMARY KEY, b int); CREATE TABLE busy (a int); CREATE TABLE few (a int)",
    );
    run(&mut s, "INSERT INTO busy VALUES (1); INSERT INTO few SELECT generate_series(1, 500)");
    for _ in 0..1100 {
        run(&mut s, "UPDATE busy SET a = a + 1");
    }
    run(&mut s, "INSERT INTO t SELECT generate_series(1, 2000)");
    until(&mut s, 2000.0);
    // As many changes without growth, and growth to less than twice the rows.
    run(&mut s, "UPDATE t SET b = a; INSERT INTO t SELECT generate_series(2001, 2200)");
    std::thread::sleep(5 * autovacuum_pause);
    assert_eq!(["t", "busy", "few"].map(|table| analyzed(&mut s, table)), [2000.0, -1.0, -1.0]);
    run(&mut s, "INSERT INTO t SELECT generate_series(2201, 20000)");
    until(&mut s, 20_000.0);
    // A load shortly before the end is found at the next start.
    run(&mut s, "CREATE TABLE late (a int); INSERT INTO late SELECT generate_series(1, 2000)");
    drop(s);
    database.shutdown().expect("closes");
    let database = folder.open_with(Options { autovacuum_pause, autoanalyze_pause, ..Options::default() });
    let mut s = database.session("postgres", 0).expect("a session");
    let start = Instant::now();
    while analyzed(&mut s, "late") != 2000.0 {
        assert!(start.elapsed() < LONG, "{} rows", analyzed(&mut s, "late"));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(["busy", "few"].map(|table| analyzed(&mut s, table)), [-1.0, -1.0]);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_table_that_is_not_in_memory_has_its_size() {
    let folder = Folder::new("cold-size");
    let options = || Options { autoanalyze: false, ..Options::default() };
    let database = folder.open_with(options());
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (a int, b text)");
    run(&mut s, "INSERT INTO t SELECT g, repeat('x', 50) FROM generate_series(1, 40000) g");
    let query = "SELECT * FROM t WHERE b > 'a'";
    let warm = plan(&mut s, query);
    assert!(!warm.contains("rows=333 "), "a third of 1,000: {warm}");
    drop(s);
    database.shutdown().expect("closes");
    let database = folder.open_with(options());
    let mut s = database.session("postgres", 0).expect("a session");
    assert_eq!(plan(&mut s, query), warm);
    drop(s);
    database.shutdown().expect("closes");
}
