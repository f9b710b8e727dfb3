//! Statements that take long to compile, beside definitions that change meanwhile.

mod common;

use std::sync::mpsc::{TryRecvError, channel};

use common::{Folder, close_sound, fails, rows, run};
use sql::database::Database;
use sql::embedded::EmbeddedSession;

fn session(database: &Database, core: usize) -> EmbeddedSession {
    database.session("postgres", core).expect("a session")
}

/// A query over the table `t` of ids 1 to 10 that takes longer to compile than a definition takes to be committed.
fn long_query(columns: &str) -> String {
    let conditions: Vec<String> = (0..4000).map(|n| format!("id = {}", n % 10 + 1)).collect();
    format!("SELECT {columns} FROM t WHERE {} ORDER BY id", conditions.join(" OR "))
}

/// Runs `body` while another session runs these statements over and over.
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
        // Beside definitions of the transaction's own.
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
