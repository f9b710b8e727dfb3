//! Statements that take long to compile, beside definitions that change meanwhile.

use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::common::{Folder, LONG, close_sound, fails, rows, run};
use runtime::account;
use runtime::aside;
use runtime::fiber;
use runtime::interrupt::Interrupt;
use sql::database::Database;
use sql::embedded::{Answer, EmbeddedSession};
use sql::{SqlError, SqlState};

/// A test that holds all reservations writes to it: the statements of other tests would wait for
/// them.
static RESERVATIONS: RwLock<()> = RwLock::new(());

fn reserving() -> impl Drop {
    RESERVATIONS.read().unwrap_or_else(PoisonError::into_inner)
}

fn session(database: &Database, core: usize) -> EmbeddedSession {
    database.session("postgres", core).expect("a session")
}

/// A query over the table `t` of ids 1 to 10 that takes longer to compile than a definition takes
/// to be committed.
fn long_query(columns: &str) -> String {
    let conditions: Vec<String> = (0..4000).map(|n| format!("id = {}", n % 10 + 1)).collect();
    format!("SELECT {columns} FROM t WHERE {} ORDER BY id", conditions.join(" OR "))
}

/// Runs `body` while another session repeats these statements.
fn beside(database: &Database, statements: &'static [&'static str], body: impl FnOnce()) {
    let (stop, stopped) = channel::<()>();
    let (began, begun) = channel();
    let mut other = session(database, 1);
    let changing = std::thread::spawn(move || {
        while stopped.try_recv() == Err(TryRecvError::Empty) {
            statements.iter().for_each(|statement| drop(run(&mut other, statement)));
            let _ = began.send(());
        }
    });
    begun.recv().expect("the other session begins");
    body();
    drop(stop);
    changing.join().expect("the other session goes on");
}

#[test]
fn a_long_compilation_ends_beside_constant_definitions_of_other_tables() {
    let _reserving = reserving();
    let folder = Folder::new("compiling-others");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 10)");
    let query = long_query("count(*)").replace(" ORDER BY id", "");
    beside(&database, &["CREATE TABLE other (id int)", "DROP TABLE other"], || {
        assert_eq!(rows(&mut s, &query), ["10"]);
        assert_eq!(rows(&mut s, &format!("SELECT 1; {query}")), ["10"]);
        run(&mut s, &format!("PREPARE p AS {query}"));
        assert_eq!(rows(&mut s, "EXECUTE p"), ["10"]);
        run(&mut s, "CREATE TABLE made AS EXECUTE p");
        run(&mut s, &format!("COPY ({query}) TO STDOUT"));
        // The transaction has definitions of its own.
        run(&mut s, "BEGIN; CREATE TABLE own (id int)");
        assert_eq!(rows(&mut s, &query), ["10"]);
        assert_eq!(rows(&mut s, "EXECUTE p"), ["10"]);
        run(&mut s, "COMMIT");
        let conditions = query.split_once(" WHERE ").expect("conditions").1;
        run(&mut s, &format!("DELETE FROM t WHERE {conditions}"));
        assert_eq!(rows(&mut s, "SELECT count(*) FROM t"), ["0"]);
    });
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn a_long_compilation_beside_definitions_of_its_own_table_sees_one_of_them_whole() {
    let _reserving = reserving();
    let folder = Folder::new("compiling-own");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 10)");
    let query = long_query("*");
    let narrow: Vec<String> = (1..=10).map(|id| id.to_string()).collect();
    let wide: Vec<String> = narrow.iter().map(|id| format!("{id}|7")).collect();
    beside(&database, &["ALTER TABLE t ADD COLUMN c int DEFAULT 7", "ALTER TABLE t DROP COLUMN c"], || {
        for _ in 0..4 {
            let shown = rows(&mut s, &query);
            assert!(shown == narrow || shown == wide, "{shown:?}");
        }
        let changed = query.split_once(" WHERE ").expect("conditions").1.replace(" ORDER BY id", "");
        run(&mut s, &format!("UPDATE t SET id = id WHERE {changed}"));
    });
    assert_eq!(rows(&mut s, &query), narrow);
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn a_long_compilation_ends_beside_constant_replacements_of_its_own_table() {
    let _reserving = reserving();
    const REPLACED: &str = "BEGIN; DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY); \
                            INSERT INTO t SELECT generate_series(1, 10); COMMIT";
    let folder = Folder::new("compiling-replaced");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 10)");
    let query = long_query("*");
    let all: Vec<String> = (1..=10).map(|id| id.to_string()).collect();
    beside(&database, &[REPLACED], || {
        assert_eq!(rows(&mut s, &query), all);
        assert_eq!(rows(&mut s, &format!("SELECT 1; {query}")), all);
        run(&mut s, &format!("PREPARE p AS {query}"));
        assert_eq!(rows(&mut s, "EXECUTE p"), all);
        run(&mut s, &format!("COPY ({query}) TO STDOUT"));
        let conditions = query.split_once(" WHERE ").expect("conditions").1.replace(" ORDER BY id", "");
        run(&mut s, &format!("UPDATE t SET id = id WHERE {conditions}"));
    });
    drop(s);
    close_sound(&folder, database);
}

#[test]
fn positions_in_a_long_statement_count_what_stands_before_it() {
    let _reserving = reserving();
    let folder = Folder::new("compiling-positions");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY); PREPARE e (int) AS SELECT $1");
    let query = long_query("*");
    let wrong = query.replace("id = 7 OR id = 8 OR", "wrong = 7 OR id = 8 OR");
    let before = "SELECT 'äöü€'; ";
    for begin in [
        "",
        "PREPARE p AS ",
        "EXPLAIN ",
        "DECLARE c CURSOR FOR ",
        "COPY (",
        "CREATE TABLE m AS ",
        "INSERT INTO t ",
    ] {
        let end = if begin.ends_with('(') { ") TO STDOUT" } else { "" };
        let text = format!("{before}{begin}{wrong}{end}; SELECT 2");
        let at = text.find("wrong").expect("it is there");
        let expected = text[..at].chars().count() as u32 + 1;
        assert_eq!(fails(&mut s, &text, "42703").position, Some(expected), "{begin}");
        let text = format!("{before}{begin}{query}{end}; SELECT $1");
        let expected = text.chars().count() as u32 - 1;
        let error = fails(&mut s, &text, "42P02");
        assert_eq!(error.position, Some(expected), "{begin}");
    }
    let text = format!("{before}EXECUTE e('{}')", "x".repeat(5 << 20));
    let expected = text.find("('x").expect("it is there");
    let expected = text[..expected].chars().count() as u32 + 2;
    assert_eq!(fails(&mut s, &text, "22P02").position, Some(expected));
    drop(s);
    close_sound(&folder, database);
}

/// Reserves memory beside core 1 until the test sends a message.
fn hold(database: &Database) -> (JoinHandle<()>, Sender<()>) {
    let (end, wait) = channel();
    let (has, hear) = channel();
    let runtime = Arc::clone(database.runtime());
    let body = move || {
        let reservation = account::reserve(8 << 20)?;
        has.send(()).expect("the test waits");
        wait.recv().expect("the test ends it");
        drop(reservation);
        Ok::<(), runtime::budget::Stopped>(())
    };
    let holder = std::thread::spawn(move || {
        let held = runtime.call(1, move || {
            fiber::obey(Some(Interrupt::new()));
            let held = aside::run(body);
            fiber::obey(None);
            held
        });
        held.expect("a call").expect("a reservation");
    });
    hear.recv().expect("a reservation");
    (holder, end)
}

/// The most reservations held at a time.
const AT_ONCE: usize = 8;

/// Four kinds of regular expressions need more memory than a call gets without a reservation. One
/// takes long to compile, and a match makes parts of it later. The others are a short one on the
/// core, and parts made beside the core.
#[test]
fn a_regular_expression_waits_for_memory_that_others_have_reserved() {
    let _alone = RESERVATIONS.write().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("compiling-expressions");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE x (long text, text text, dots text)");
    run(&mut s, "INSERT INTO x VALUES (repeat('a', 100000), repeat('a', 2000), repeat('.', 2000))");
    let waiting = [
        (r"SELECT text ~ '\w{200}' FROM x", "t"),
        (r"SELECT regexp_count(text, '\w{180}') FROM x", "11"),
        (r"SELECT length((regexp_match(text, '(\w{150}|\w{160})'))[1]) FROM x", "160"),
        ("SELECT text ~ dots FROM x", "t"),
        ("SELECT regexp_count(text, dots || '()') FROM x", "1"),
        ("SELECT long ~ ('^' || dots) FROM x", "t"),
        ("SELECT length((regexp_match(right(long, 40000), '^(a|aa)' || dots))[1]) FROM x", "2"),
        (
            "SELECT length(substring(text SIMILAR '#\"' || translate(dots, '.', '_') || '#\"' ESCAPE '#')) FROM x",
            "2000",
        ),
        (
            "SELECT substring(long SIMILAR 'a#\"' || translate(dots, '.', '_') || '#\"%' ESCAPE '#') IS NULL FROM x",
            "f",
        ),
    ];
    for (query, expected) in waiting {
        let holders: Vec<_> = (0..AT_ONCE).map(|_| hold(&database)).collect();
        // A cancel request ends the wait.
        let cancel = s.canceller();
        let cancelled = begin(s, query);
        until_one_waits(query, &cancelled);
        cancel();
        let (done, session) = cancelled.join().expect("it ends");
        assert_eq!(done.expect_err(query).code, SqlState::QUERY_CANCELED, "{query}");
        let runs = begin(session, query);
        until_one_waits(query, &runs);
        for (holder, end) in holders {
            end.send(()).expect("a holder");
            holder.join().expect("it ends");
        }
        let (done, session) = runs.join().expect("it ends");
        assert_eq!(done.expect(query).texts, [[Some(expected.to_owned())]], "{query}");
        s = session;
    }
    drop(s);
    close_sound(&folder, database);
}

type Running = JoinHandle<(Result<Answer, SqlError>, EmbeddedSession)>;

/// Runs a query beside the test.
fn begin(mut session: EmbeddedSession, query: &'static str) -> Running {
    std::thread::spawn(move || (session.run(query), session))
}

/// Waits until the query's session waits for memory that other sessions have reserved.
fn until_one_waits(query: &str, runs: &Running) {
    let begun = Instant::now();
    while !account::is_waited_for() {
        assert!(!runs.is_finished(), "{query} does not wait");
        assert!(begun.elapsed() < LONG, "{query} neither waits nor ends");
        std::thread::yield_now();
    }
}

#[test]
fn execute_passes_whole_values_whatever_the_settings() {
    let folder = Folder::new("compiling-arguments");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(
        &mut s,
        "SET extra_float_digits = 0; SET DateStyle = 'German, DMY'; SET IntervalStyle = sql_standard;
         SET bytea_output = escape; SET TimeZone = 'Asia/Kolkata'",
    );
    // Type, argument, and a condition that only the whole value meets.
    for (type_, argument, kept) in [
        ("float8", "0.1::float8 + 0.2::float8", "x = 0.1::float8 + 0.2::float8"),
        ("float4", "1::float4 / 3", "x = (1::float4 / 3)::float4"),
        ("float8[]", "ARRAY[[0.1::float8 + 0.2, NULL]]", "x[1][1] = 0.1::float8 + 0.2 AND x[1][2] IS NULL"),
        ("numeric", "1.500", "x::text = '1.500'"),
        ("date", "date '2020-02-01'", "x = date '2020-02-01'"),
        ("timestamptz", "timestamptz '2020-02-01 12:00:00.000001 UTC'", "extract(day FROM x) = 1"),
        ("timestamp", "timestamp 'infinity'", "x = 'infinity'"),
        ("interval", "interval '-1 year' + '2 days -3 hours'", "extract(day FROM x) = 2"),
        ("bytea", "'\\x00ff5c27'::bytea", "x = '\\x00ff5c27'::bytea"),
        ("bytea[]", "ARRAY['\\x5c00'::bytea]", "x[1] = '\\x5c00'::bytea"),
        ("text", "'a''b\\'", "x = 'a''b\\'"),
        ("text", "''", "x = ''"),
        ("int", "NULL", "x IS NULL"),
        ("int8", "7", "x = 7"),
        ("uuid", "'00000000-0000-0000-0000-00000000000a'", "x::text LIKE '%a'"),
        ("bool", "1 > 2", "NOT x"),
        ("\"char\"", "''", "x = ''"),
        ("name", "'pg'::text", "x = 'pg'"),
        ("regclass", "'pg_class'", "x = 'pg_class'::regclass"),
        ("oidvector", "'1 2'", "x[1] = 2"),
        ("time", "time '24:00'", "x = '24:00'"),
    ] {
        let made = format!(
            "CREATE TABLE t (x {type_}); PREPARE ins ({type_}) AS INSERT INTO t VALUES ($1);
             PREPARE sel ({type_}) AS SELECT $1 AS x; EXECUTE ins({argument});
             CREATE TABLE u AS EXECUTE sel({argument})"
        );
        run(&mut s, &made);
        for table in ["t", "u"] {
            let query = format!("SELECT ({kept})::int FROM {table}");
            assert_eq!(rows(&mut s, &query), ["1"], "{type_} of {argument} in {table}");
        }
        run(&mut s, "DEALLOCATE ALL; DROP TABLE t; DROP TABLE u");
    }
}
