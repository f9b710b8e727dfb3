//! Against running servers: skipped with a plain word where none is named.

use super::*;
use crate::client::Params;
use crate::tests::target;

/// Both dialects do the same with the same calls.
fn does_all(dialect: Dialect) {
    let Some(target) = target(dialect) else { return };
    let mut control = Control::connect(&target).unwrap();
    control.execute("DROP TABLE IF EXISTS lab_control").unwrap();
    control.execute("CREATE TABLE lab_control (a int PRIMARY KEY, b varchar(20))").unwrap();
    let texts = [Some("plain"), Some("tab\tquote'\\ line\n"), Some(""), None];
    let mut at = 0;
    let progress = Progress::new(4);
    let loaded = control.load("lab_control", &["a", "b"], &progress, |row: &mut Params| {
        let Some(text) = texts.get(at) else { return false };
        row.int(at as i64);
        match text {
            Some(text) => row.text(text),
            None => row.null(),
        }
        at += 1;
        true
    });
    assert_eq!((loaded.unwrap(), progress.rows()), (4, 4));
    let rows = control.query("SELECT a, b FROM lab_control ORDER BY a").unwrap();
    let expected: Vec<Row> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| vec![Some(at.to_string()), text.map(str::to_owned)])
        .collect();
    assert_eq!(rows, expected);
    assert_eq!(control.execute("UPDATE lab_control SET b = 'x' WHERE a < 2").unwrap(), 2);
    assert_eq!(
        control.value("SELECT count(*) FROM lab_control WHERE b = 'x'").unwrap().as_deref(),
        Some("2")
    );
    let fault = control.query("SELECT * FROM lab_nowhere").unwrap_err();
    assert!(fault.is_unknown_table(), "{fault}");
    // A row that is refused is said so, on the connection that goes on.
    let mut once = true;
    let again = control.load("lab_control", &["a", "b"], &Progress::new(1), |row| {
        row.int(1);
        row.text("twice");
        std::mem::take(&mut once)
    });
    let fault = again.unwrap_err();
    assert!(matches!(fault.code(), Some("23505" | "1062")), "{fault}");
    control.execute("DROP TABLE lab_control").unwrap();
}

#[test]
fn rows_go_in_and_out_of_postgres() {
    does_all(Dialect::Postgres);
}

#[test]
fn rows_go_in_and_out_of_mysql() {
    does_all(Dialect::Mysql);
}
