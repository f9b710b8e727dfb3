//! A statement's rows beyond `work_mem` go to temporary pages. The results are the same, and the
//! pages come back.

use std::time::Duration;

use crate::common::{Folder, fails, lines, run};
use sql::database::Database;
use sql::embedded::EmbeddedSession;

/// The number of temporary pages in use.
fn used(database: &Database) -> u32 {
    let (pages, free) = database.folder().temporary_pages();
    pages - free
}

/// Temporary pages in use once those of old undo are returned: at most the pages that the two cores
/// keep.
fn settled(database: &Database) -> u32 {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while used(database) > 2 * 5 {
        assert!(std::time::Instant::now() < deadline, "{} pages stay in use", used(database));
        std::thread::sleep(Duration::from_millis(10));
    }
    used(database)
}

/// Queries over `t`, and whether their order is promised.
const QUERIES: &[(bool, &str)] = &[
    (true, "SELECT * FROM t ORDER BY c DESC, a"),
    (true, "SELECT b, a FROM t ORDER BY b NULLS FIRST"),
    (true, "SELECT a, c FROM t ORDER BY c, a LIMIT 2000 OFFSET 700"),
    (true, "SELECT a FROM t ORDER BY f DESC, a DESC LIMIT 5"),
    (false, "SELECT b, count(*), sum(a), min(c), bool_or(f), avg(d) FROM t GROUP BY b"),
    (false, "SELECT a, max(c), count(d) FROM t GROUP BY a"),
    (false, "SELECT c, d, b, sum(a) FROM t GROUP BY c, d, b"),
    (true, "SELECT row(a, b, row(c, NULL)), d FROM t ORDER BY c, a"),
    (false, "SELECT a % 7, count(DISTINCT c), string_agg(c, ',' ORDER BY a DESC) FROM t GROUP BY a % 7"),
    (
        false,
        "SELECT a / 3, array_agg(DISTINCT b ORDER BY b DESC), count(*) FILTER (WHERE f), sum(DISTINCT a) FROM t GROUP BY 1",
    ),
    (false, "SELECT count(DISTINCT c), sum(DISTINCT b), array_agg(DISTINCT a), count(*) FROM t"),
    (false, "SELECT count(*), sum(a), string_agg(c, '' ORDER BY c) FROM t WHERE b IS NULL"),
    (true, "SELECT DISTINCT ON (b) b, a, c FROM t ORDER BY b, a DESC"),
    (true, "SELECT DISTINCT c, f FROM t ORDER BY c, f"),
    (false, "SELECT DISTINCT c, d FROM t"),
    (false, "SELECT b, c FROM t UNION SELECT b + 1, c FROM t"),
    (false, "SELECT b, d FROM t UNION ALL SELECT b, d FROM t"),
    (false, "SELECT a, c FROM t INTERSECT SELECT a + 5, c FROM t"),
    (false, "SELECT b FROM t INTERSECT ALL SELECT b + 1 FROM t"),
    (false, "SELECT a FROM t EXCEPT SELECT a * 2 FROM t"),
    (false, "SELECT b FROM t EXCEPT ALL SELECT b + 2 FROM t"),
    (false, "SELECT a FROM t EXCEPT SELECT 3"),
    (false, "SELECT x.a, y.a, y.c FROM t x JOIN t y ON x.a / 2 = y.a / 3"),
    (false, "SELECT x.a, y.a, y.c FROM t x LEFT JOIN t y ON x.b = y.a AND y.f"),
    (false, "SELECT x.a, x.c, y.a FROM t x RIGHT JOIN t y ON x.a = y.b AND x.a % 3 = 0"),
    (false, "SELECT x.a, x.c, y.a, y.c FROM t x FULL JOIN t y ON x.a = y.e + 100"),
    (false, "SELECT x.a FROM t x FULL JOIN t y ON x.e = y.e WHERE x.a < 500 OR y.a IS NULL"),
    (false, "SELECT a, c FROM t x WHERE EXISTS (SELECT FROM t y WHERE y.b = x.a AND y.a <> x.a + 1)"),
    (false, "SELECT a, c FROM t x WHERE NOT EXISTS (SELECT FROM t y WHERE y.e = x.a)"),
    (false, "SELECT a FROM t WHERE a IN (SELECT b FROM t)"),
    (false, "SELECT a, a IN (SELECT b * 2 FROM t) FROM t"),
    (false, "SELECT a FROM t WHERE a NOT IN (SELECT a + 50 FROM t)"),
    (false, "SELECT a FROM t WHERE a >= ALL (SELECT a FROM t WHERE a % 100 = 1)"),
    // The left side comes in the key's order, and nothing sorts again.
    (true, "SELECT x.a, y.c FROM t x JOIN t y ON x.e = y.a ORDER BY x.a"),
    (true, "SELECT x.a, y.c FROM t x LEFT JOIN t y ON x.b = y.a ORDER BY x.a LIMIT 300 OFFSET 10"),
    (
        true,
        "SELECT a, b, row_number() OVER w, rank() OVER w, dense_rank() OVER w, lag(c) OVER w, lead(c, 3, 'none') OVER w,
            first_value(a) OVER w, last_value(a) OVER w, sum(a) OVER w, count(*) OVER w
         FROM t WINDOW w AS (PARTITION BY a % 3 ORDER BY b) ORDER BY a",
    ),
    (true, "SELECT a, sum(a) OVER (ORDER BY a), lag(a, 200) OVER (ORDER BY a), count(*) OVER () FROM t ORDER BY a"),
    (true, "SELECT a, max(c) OVER (PARTITION BY a) FROM t ORDER BY a"),
    (true, "WITH w AS (SELECT a, c FROM t) SELECT x.a, y.c FROM w x JOIN w y ON x.a = y.a ORDER BY x.a"),
    (
        true,
        "WITH RECURSIVE r AS (SELECT a, c FROM t UNION ALL SELECT a + 100000, c FROM r WHERE a < 200000)
         SELECT count(*), sum(a), min(c) FROM r",
    ),
];

/// A table of `rows` rows: b is skewed and often NULL, c long, d numeric, e has a few rows a value.
fn fill(session: &mut EmbeddedSession, rows: u32) {
    run(session, "CREATE TABLE t (a int PRIMARY KEY, b int, c text, d numeric, e int, f bool)");
    run(
        session,
        &format!(
            "INSERT INTO t SELECT g, CASE WHEN g % 5 = 0 THEN NULL WHEN g % 11 = 0 THEN 7 ELSE g * 37 % {} END,
                repeat(chr(97 + g * 7 % 26), 20 + g % 60) || g % 1500, (g % 300) / 100.0, g / 4, g % 2 = 0
             FROM generate_series(1, {rows}) g",
            rows.max(1) * 2
        ),
    );
    run(session, "ANALYZE t");
}

#[test]
fn the_rows_are_the_same_whatever_fits_in_memory() {
    for rows in [0, 1, 50, 4000] {
        let folder = Folder::new(&format!("spill{rows}"));
        let database = folder.open();
        let mut session = database.session("postgres", 0).expect("a session");
        fill(&mut session, rows);
        settled(&database);
        // Little memory would make other joins of hash joins.
        run(&mut session, "SET enable_nestloop = off; SET enable_mergejoin = off");
        for (ordered, query) in QUERIES {
            let mut answers = Vec::new();
            let mut plans = Vec::new();
            for memory in ["64MB", "64kB"] {
                run(&mut session, &format!("SET work_mem = '{memory}'"));
                let before = used(&database);
                let mut answer = lines(&run(&mut session, query));
                assert_eq!(used(&database), before, "{query} gives its pages back");
                if !ordered {
                    answer.sort_unstable();
                }
                answers.push(answer);
                plans.push(lines(&run(&mut session, &format!("EXPLAIN (COSTS OFF) {query}"))));
            }
            assert!(answers[0] == answers[1], "{rows} rows: {query}");
            assert_eq!(plans[0], plans[1], "{query}");
        }
        drop(session);
        database.shutdown().expect("closes");
    }
}

#[test]
fn one_key_of_all_rows_joins_and_groups() {
    let folder = Folder::new("spill-skew");
    let database = folder.open();
    let mut session = database.session("postgres", 0).expect("a session");
    run(&mut session, "CREATE TABLE l (k int, v text); CREATE TABLE r (k int, v text)");
    run(&mut session, "INSERT INTO l SELECT 1, repeat('l', 100) FROM generate_series(1, 900)");
    run(&mut session, "INSERT INTO r SELECT 1, repeat('r', 100) FROM generate_series(1, 1100)");
    run(&mut session, "INSERT INTO l SELECT NULL, repeat('n', 50) FROM generate_series(1, 1000)");
    run(&mut session, "INSERT INTO r SELECT NULL, repeat('n', 50) FROM generate_series(1, 2000)");
    run(&mut session, "ANALYZE l; ANALYZE r; SET work_mem = '64kB'");
    let before = settled(&database);
    for (kind, pairs) in [("", 990_000), ("LEFT", 991_000), ("RIGHT", 992_000), ("FULL", 993_000)] {
        let sql = format!("SELECT count(*), count(l.k), sum(length(r.v)) FROM l {kind} JOIN r ON l.k = r.k");
        let lonely: u32 = if matches!(kind, "RIGHT" | "FULL") { 2000 * 50 } else { 0 };
        let expected = format!("{pairs}|990000|{}", 99_000_000 + lonely);
        assert_eq!(lines(&run(&mut session, &sql)), [expected], "{sql}");
    }
    let sql = "SELECT count(*) FROM l WHERE NOT EXISTS (SELECT FROM r WHERE r.k = l.k)";
    assert_eq!(lines(&run(&mut session, sql)), ["1000"]);
    let sql = "SELECT k, count(*), count(DISTINCT v), length(string_agg(v, '' ORDER BY v)) FROM r GROUP BY k ORDER BY k";
    assert_eq!(lines(&run(&mut session, sql)), ["1|1100|1|110000", "-|2000|1|100000"]);
    assert_eq!(used(&database), before);
    drop(session);
    database.shutdown().expect("closes");
}

#[test]
fn a_cursor_keeps_its_rows_in_pages_until_it_is_closed() {
    let folder = Folder::new("spill-cursor");
    let database = folder.open();
    let mut session = database.session("postgres", 0).expect("a session");
    fill(&mut session, 5000);
    run(&mut session, "SET work_mem = '64kB'");
    let before = settled(&database);
    // A function that makes its rows as they are fetched keeps none.
    run(
        &mut session,
        "BEGIN; DECLARE l NO SCROLL CURSOR FOR SELECT a, c, row(a, b) FROM t ORDER BY a; FETCH 100 FROM l",
    );
    assert_eq!(used(&database), before);
    // A volatile function makes all rows at once.
    run(
        &mut session,
        "DECLARE c NO SCROLL CURSOR FOR SELECT a, c, row(a, b) FROM t WHERE random() < 2 ORDER BY a",
    );
    let kept = used(&database) - before;
    assert!(kept > 30, "{kept} pages");
    for at in 0..49_u32 {
        let fetched = run(&mut session, "FETCH 100 FROM c");
        assert_eq!(fetched.texts.len(), 100);
        assert_eq!(fetched.texts[0][0].as_deref(), Some((at * 100 + 1).to_string().as_str()));
    }
    assert!(used(&database) - before < kept / 10, "what was fetched is forgotten");
    run(&mut session, "COMMIT");
    assert_eq!(used(&database), before);
    // A cursor that outlives its transaction goes with its session.
    run(&mut session, "DECLARE h CURSOR WITH HOLD FOR SELECT * FROM t");
    assert!(used(&database) - before > 30);
    drop(session);
    assert_eq!(used(&database), before);
    database.shutdown().expect("closes");
}

#[test]
fn a_cancelled_statement_gives_its_pages_back() {
    let folder = Folder::new("spill-cancel");
    let database = folder.open();
    let mut session = database.session("postgres", 0).expect("a session");
    fill(&mut session, 3000);
    run(&mut session, "SET work_mem = '64kB'");
    let before = settled(&database);
    for query in [
        "SELECT x.c FROM t x, t y ORDER BY x.c, y.c",
        "SELECT x.a, y.a, count(DISTINCT x.c) FROM t x, t y GROUP BY 1, 2",
        "SELECT DISTINCT x.c, y.c FROM t x, t y",
        "SELECT x.a, y.a FROM t x, t y EXCEPT SELECT x.b, y.b FROM t x, t y",
        "SELECT count(*) FROM (SELECT x.a * 10000 + y.a AS k FROM t x, t y) p JOIN (SELECT x.a * 10000 + y.a AS k FROM t x, t y) q USING (k)",
        "SELECT x.a, sum(y.a) OVER (ORDER BY x.a, y.a) FROM t x, t y",
        "WITH w AS (SELECT x.c, y.a FROM t x, t y) SELECT count(*) FROM w v, w",
    ] {
        let cancel = session.canceller();
        let watched = database.clone();
        let watcher = std::thread::spawn(move || {
            // The cancel comes only once the statement has spilled.
            let deadline = std::time::Instant::now() + Duration::from_secs(60);
            while used(&watched) < before + 20 {
                assert!(std::time::Instant::now() < deadline, "nothing was spilled");
                std::thread::sleep(Duration::from_millis(1));
            }
            cancel();
        });
        fails(&mut session, query, "57014");
        watcher.join().expect("it spilled");
        assert_eq!(used(&database), before, "{query}");
    }
    drop(session);
    database.shutdown().expect("closes");
}

#[test]
fn work_mem_is_set_and_shown_with_units() {
    let folder = Folder::new("spill-setting");
    let database = folder.open();
    let mut session = database.session("postgres", 0).expect("a session");
    let shown = |session: &mut EmbeddedSession| lines(&run(session, "SHOW work_mem"));
    assert_eq!(shown(&mut session), ["4MB"]);
    for (setting, expected) in [
        ("64", "64kB"),
        ("'1.5MB'", "1536kB"),
        ("'65536B'", "64kB"),
        ("'1 GB'", "1GB"),
        ("'2048MB'", "2GB"),
        ("70.7", "71kB"),
    ] {
        run(&mut session, &format!("SET work_mem = {setting}"));
        assert_eq!(shown(&mut session), [expected], "{setting}");
    }
    for bad in ["4", "'abc'", "'64KB'", "'3TB'", "'2147483648'", "-1", "''", "'1 foo'"] {
        fails(&mut session, &format!("SET work_mem = {bad}"), "22023");
    }
    let error = fails(&mut session, "SET work_mem = '63kB'", "22023");
    let said = "63 kB is outside the valid range for parameter \"work_mem\" (64 kB .. 2147483647 kB)";
    assert_eq!(error.message, said);
    drop(session);
    database.shutdown().expect("closes");
}
