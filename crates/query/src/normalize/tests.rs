//! Tests: which literals are lifted, and which texts share a template.

use super::*;

fn read(text: &str) -> Normalized {
    let mut normalized = Normalized::default();
    assert!(normalized.read(text), "{text}");
    normalized
}

fn lifted(text: &str) -> Vec<(LiteralClass, String)> {
    read(text).literals.iter().map(|l| (l.class, l.value(text).unwrap_or_default().into_owned())).collect()
}

#[test]
fn the_scan_lifts_literals() {
    use LiteralClass::{Decimal, Dollar, Escape, Int4, Int8, String};
    let cases: &[(&str, &[(LiteralClass, &str)])] = &[
        ("SELECT abalance FROM pgbench_accounts WHERE aid = 42;", &[(Int4, "42")]),
        ("UPDATE t SET a = a + -12 WHERE b = 7", &[(Int4, "-12"), (Int4, "7")]),
        ("select a -5", &[(Int4, "5")]),
        ("select a - 5, - 5, (-6)", &[(Int4, "5"), (Int4, "-5"), (Int4, "-6")]),
        ("select 1, -32768::int2", &[(Int4, "1"), (Int4, "32768")]),
        (
            "select 2147483647, 2147483648, (-2147483648)",
            &[(Int4, "2147483647"), (Int8, "2147483648"), (Int4, "-2147483648")],
        ),
        (
            "select 9223372036854775807, 9223372036854775808",
            &[(Int8, "9223372036854775807"), (Decimal, "9223372036854775808")],
        ),
        (
            "select 1.5, .5, 1e10, 5., 1.e3",
            &[(Decimal, "1.5"), (Decimal, ".5"), (Decimal, "1e10"), (Decimal, "5."), (Decimal, "1.e3")],
        ),
        (
            "select 'it''s', E'a\\nb\\\\x41\\'\\q', $$x$$, $q$ $$ $q$",
            &[(String, "it's"), (Escape, "a\nb\\x41'q"), (Dollar, "x"), (Dollar, " $$ ")],
        ),
        ("select a1, t2.c3, \"4'5\", $6 -- 7 '\n, /* 8 /* ' */ 9 */ 10", &[(Int4, "10")]),
        ("select b'101', x'1F', n'a', U&'d\\0061t', 0x1F, 1_000, u&\"x\"", &[]),
        ("select a[1], b[-1:2]", &[(Int4, "1"), (Int4, "1"), (Int4, "2")]),
        ("select @-5, @ -5, x=-5", &[(Int4, "5"), (Int4, "5"), (Int4, "5")]),
        // Such an escape may name no character or half of one.
        ("select E'\\x41', E'\\101', E'a\\000', E'\\u0041', e'\\U00000041', E'\\xff'", &[]),
        ("", &[]),
    ];
    for (text, expected) in cases {
        let expected: Vec<_> = expected.iter().map(|(class, value)| (*class, (*value).to_owned())).collect();
        assert_eq!(lifted(text), expected, "{text}");
    }
}

#[test]
fn the_scan_refuses_unclosed_tokens() {
    for text in ["select 'a", "select \"a", "select /* a", "select $$a", "select $x$a$$", "select E'a\\'"] {
        assert!(!Normalized::default().read(text), "{text}");
    }
}

#[test]
fn the_scan_sees_several_statements() {
    for (text, several) in
        [("a; b", true), ("a;", false), ("a; -- b\n", false), ("a; ; ", false), (";a", true), ("';'", false)]
    {
        assert_eq!(read(text).several, several, "{text}");
    }
}

#[test]
fn the_hash_covers_gaps_and_classes_only() {
    let same =
        [("select 1", "select 234"), ("select 'a', x", "select 'long text', x"), ("a = -1 ", "a = 100 ")];
    for (a, b) in same {
        assert_eq!(read(a).hash, read(b).hash, "{a} / {b}");
    }
    let different =
        [("select 1", "select '1'"), ("select 1", "select  1"), ("select 1", "select 5000000000")];
    for (a, b) in different {
        assert_ne!(read(a).hash, read(b).hash, "{a} / {b}");
    }
}

#[test]
fn templates_serve_equal_gaps_and_pinned_texts() {
    let text = "select a from t where b = 1 order by 2";
    let uses = vec![LiteralUse::Parameter { index: 0, type_: Type::INT4 }, LiteralUse::Pinned];
    let template = Template::new(text, &read(text).literals, uses);
    let serves = |text: &str| template.serves(text, &read(text).literals);
    assert!(serves("select a from t where b = 99 order by 2"));
    assert!(!serves("select a from t where b = 99 order by 3"));
    assert!(!serves("select a from t where c = 99 order by 2"));
    assert!(!serves("select a from t where b = 'x' order by 2"));
    assert!(!serves("select a from t where b = 99 order by 2;"));
    assert!(!serves("select a from t"));
}

/// Measures the time of the hot path. Run it by hand: `cargo test --release -p query --lib speed --
/// --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed_of_reading_a_statement() {
    let text = "UPDATE pgbench_accounts SET abalance = abalance + -1234 WHERE aid = 56789;";
    let mut normalized = read(text);
    let uses = vec![LiteralUse::Parameter { index: 0, type_: Type::INT4 }; 2];
    let template = Template::new(text, &normalized.literals, uses);
    let start = std::time::Instant::now();
    const ROUNDS: u32 = 1_000_000;
    for _ in 0..ROUNDS {
        let text = std::hint::black_box(text);
        assert!(normalized.read(text) && template.serves(text, &normalized.literals));
    }
    println!("{:?} a statement", start.elapsed() / ROUNDS);
}
