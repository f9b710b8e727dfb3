//! Tests: PostgreSQL 18's syntax errors, ranges of statements, the depth bound.

use super::*;

/// (text, message, position), recorded from PostgreSQL 18.
const ERRORS: &[(&str, &str, u32)] = &[
    ("selec 1", "syntax error at or near \"selec\"", 1),
    ("select 1 from", "syntax error at end of input", 14),
    ("select a a a", "syntax error at or near \"a\"", 12),
    ("select 'abc", "unterminated quoted string at or near \"'abc\"", 8),
    ("select * from t where where a", "syntax error at or near \"where\"", 23),
    ("select 'äöü' frm t", "syntax error at or near \"t\"", 18),
    ("select 1; select 2; bogus; select 3", "syntax error at or near \"bogus\"", 21),
    ("insert into t values (1,,2)", "syntax error at or near \",\"", 25),
    ("select (1", "syntax error at end of input", 10),
    ("select 1)", "syntax error at or near \")\"", 9),
];

#[test]
fn syntax_errors_have_positions() {
    for (text, message, position) in ERRORS {
        let error = parse(text).expect_err(text);
        assert_eq!(error.message, *message, "{text}");
        assert_eq!(error.code, SqlState::SYNTAX_ERROR, "{text}");
        assert_eq!(error.position, Some(*position), "{text}");
    }
}

#[test]
fn statements_have_ranges_in_their_text() {
    let text = "select 1; begin;; select 'a;b' -- c;\n; commit";
    let parts: Vec<&str> = split(text).expect("parses").into_iter().map(|r| text[r].trim()).collect();
    assert_eq!(parts, ["select 1", "begin", "select 'a;b' -- c;", "commit"]);
    assert!(split(" ; ").expect("parses").is_empty());
}

#[test]
fn the_parser_refuses_deep_texts() {
    let deep = |text: String| {
        let error = parse(&text).expect_err("too deep");
        assert_eq!(error.code, SqlState::STATEMENT_TOO_COMPLEX);
    };
    deep(format!("select {}1{}", "(".repeat(100_000), ")".repeat(100_000)));
    deep(format!("select 1{}", " + 1".repeat(100_000)));
    deep(format!("select {} true", "not ".repeat(100_000)));
    deep(format!("select 1{}", " union all select 1".repeat(100_000)));
    deep(format!("select {} 1", "- ".repeat(100_000)));
    let wide = format!(
        "select {} from t where {}",
        vec!["a + 1"; 2000].join(", "),
        vec!["a = 1"; 2000].join(" or ")
    );
    assert_eq!(parse(&wide).expect("wide, not deep").statements.len(), 1);
}

#[test]
fn the_allowed_depth_fits_the_stack() {
    let texts = [
        format!("select {}1{}", "(".repeat(490), ")".repeat(490)),
        format!("select 1{}", " + 1".repeat(490)),
        format!("select {} true", "not ".repeat(490)),
        format!("select 1{}", " union all select 1".repeat(490)),
    ];
    for text in texts {
        assert_eq!(parse(&text).expect("deep, but within the bound").statements.len(), 1);
    }
}
