//! Two ways to the tree must agree: this crate's, and protobuf by the crate `pg_query`. They are
//! compared over every statement of the repository's scripts, and over damaged copies of them.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use pg_query::protobuf::RawStmt;

/// Scripts beside the server's tests.
const OWN: &str = "../allcore/tests/sql";
/// PostgreSQL's regression files, which `make conformance` fetches.
const REGRESSION: &str = "../../target/pg18-source/src/test/regress/sql";
/// Statements longer than this are compared as parts.
const LINES: usize = 60;

/// The outcome by protobuf; nothing where that way gives up on its own.
fn by_protobuf(text: &str) -> Option<Result<Vec<RawStmt>, String>> {
    let outcome = catch_unwind(|| pg_query::parse(text, 0)).ok()?;
    match outcome {
        Ok(parsed) => Some(Ok(parsed.protobuf.stmts)),
        Err(pg_query::Error::Parse(message)) => Some(Err(message)),
        Err(_) => None,
    }
}

/// Compares both ways; whether the text is well-formed, if it can be told.
fn compare(text: &str) -> Option<bool> {
    let expected = by_protobuf(text)?;
    let outcome = parser::parse(text).map_err(|error| {
        assert!(error.state.iter().all(u8::is_ascii_alphanumeric), "{text}: {error:?}");
        assert!(error.position.is_none_or(|at| at as usize <= text.chars().count() + 1), "{text}: {error:?}");
        error.message
    });
    assert!(outcome == expected, "{text}\n{outcome:#?}\n{expected:#?}");
    Some(expected.is_ok())
}

/// The statements of a script: lines up to one that ends with a semicolon and makes them whole.
fn statements(script: &str) -> BTreeSet<String> {
    let mut statements = BTreeSet::new();
    let mut text = String::new();
    for line in script.lines().filter(|line| !line.starts_with('\\')) {
        text += line;
        text.push('\n');
        let is_end = line.trim_end().ends_with(';');
        if (is_end && parser::parse(&text).is_ok()) || text.lines().count() == LINES {
            statements.insert(std::mem::take(&mut text));
        }
    }
    statements.insert(text);
    statements
}

/// The statements of all scripts in a folder; nothing without the folder.
fn of_folder(folder: &str) -> Option<BTreeSet<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).ok()? {
        let path = entry.expect("an entry of the folder").path();
        if path.extension().is_some_and(|extension| extension == "sql") {
            let script = fs::read(path).expect("a script");
            found.append(&mut statements(&String::from_utf8_lossy(&script)));
        }
    }
    Some(found)
}

/// Compares all statements; how many are well-formed.
fn compare_all(statements: &BTreeSet<String>) -> usize {
    statements.iter().filter(|text| compare(text) == Some(true)).count()
}

#[test]
fn both_ways_agree_over_the_scripts_of_the_repository() {
    let statements = of_folder(OWN).expect("the scripts of the server's tests");
    let whole = compare_all(&statements);
    println!("{whole} of {} statements are well-formed", statements.len());
    assert!(whole > 2000, "{whole} statements are well-formed");
}

#[test]
fn both_ways_agree_over_the_regression_files_of_postgresql() {
    let Some(statements) = of_folder(REGRESSION) else {
        println!("skipped: {REGRESSION} is not there");
        return;
    };
    let whole = compare_all(&statements);
    println!("{whole} of {} statements are well-formed", statements.len());
    assert!(whole > 20_000, "{whole} statements are well-formed");
}

/// The text with some of its words dropped, swapped or replaced by others.
fn damaged(text: &str, others: &[&str], next: &mut impl FnMut(usize) -> usize) -> String {
    let mut words: Vec<&str> = text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for _ in 0..=next(3) {
        let at = next(words.len());
        match next(3) {
            0 => drop(words.remove(at)),
            1 => words[at] = others[next(others.len())],
            _ => words.swap(at, 0),
        }
        if words.is_empty() {
            break;
        }
    }
    words.concat()
}

#[test]
fn both_ways_agree_over_damaged_statements() {
    const OTHERS: [&str; 16] = [
        "(",
        ")",
        "'",
        "\"",
        "$$",
        "E'\\u00",
        "U&'\\d83d'",
        "/*",
        "null ",
        "é",
        ";",
        "::",
        "$1",
        "1.5e",
        "not ",
        "select ",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    let statements = of_folder(OWN).expect("the scripts of the server's tests");
    let (mut whole, mut refused) = (0, 0);
    for text in statements.iter().filter(|text| !text.is_empty()) {
        match compare(&damaged(text, &OTHERS, &mut next)) {
            Some(true) => whole += 1,
            Some(false) => refused += 1,
            None => {}
        }
    }
    println!("{whole} damaged statements are well-formed, {refused} are not");
    assert!(whole > 100 && refused > 1000);
}

#[test]
fn threads_that_parse_at_once_get_their_own_outcomes() {
    let statements = of_folder(OWN).expect("the scripts of the server's tests");
    let some: Vec<&String> = statements.iter().step_by(29).collect();
    let expected: Vec<_> = some.iter().map(|text| parser::parse(text)).collect();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (some, expected) = (&some, &expected);
            scope.spawn(move || {
                for round in 0..3 {
                    for step in 0..some.len() {
                        let at = (step * 31 + thread * 17 + round) % some.len();
                        assert_eq!(parser::parse(some[at]), expected[at], "{}", some[at]);
                    }
                }
            });
        }
    });
}
