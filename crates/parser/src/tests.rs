//! Tests: the fields of errors, recorded from PostgreSQL 18.

use super::*;

/// A text, and its error's SQLSTATE, message, position and hint.
type Case = (&'static str, &'static str, &'static str, Option<u32>, Option<&'static str>);

const ERRORS: &[Case] = &[
    ("select 'äöü' frm t", "42601", "syntax error at or near \"t\"", Some(18), None),
    ("select (1", "42601", "syntax error at end of input", Some(10), None),
    ("select 'abc", "42601", "unterminated quoted string at or near \"'abc\"", Some(8), None),
    (
        "select 'ä', E'\\u12'",
        "22025",
        "invalid Unicode escape",
        Some(15),
        Some("Unicode escapes must be \\uXXXX or \\UXXXXXXXX."),
    ),
    (
        "select U&'wrong: \\061'",
        "42601",
        "invalid Unicode escape",
        Some(18),
        Some("Unicode escapes must be \\XXXX or \\+XXXXXX."),
    ),
    ("select E'\\xff'", "22021", "invalid byte sequence for encoding \"UTF8\": 0xff", None, None),
    ("select 1::float(60)", "22023", "precision for type float must be less than 54 bits", Some(17), None),
    ("create role public", "42939", "role name \"public\" is reserved", Some(13), None),
];

#[test]
fn an_error_has_its_state_and_its_position() {
    for (text, state, message, position, hint) in ERRORS {
        let error = parse(text).expect_err(text);
        let fields = (str::from_utf8(&error.state), &*error.message, error.position, error.hint.as_deref());
        assert_eq!(fields, (Ok(*state), *message, *position, *hint), "{text}");
    }
}

#[test]
fn a_null_character_is_refused() {
    let error = parse("select '\0'").expect_err("a null character");
    assert_eq!((error.state, &*error.message), (*b"22021", NULL_CHARACTER));
}

#[test]
fn a_tree_from_other_bytes_is_refused() {
    let text = c"select a, 'b' from c where d = 1";
    let outcome = Outcome::of(text);
    let whole = outcome.tree().expect("it is well-formed");
    assert_eq!(tree::read(whole).map(|statements| statements.len()), Some(1));
    for end in 0..whole.len() {
        assert_eq!(tree::read(&whole[..end]), None, "{end} bytes");
    }
    assert_eq!(tree::read(&[whole, &[0]].concat()), None);
    // A changed byte may be another tree, but nothing worse.
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = whole.to_vec();
            changed[at] = value;
            tree::read(&changed);
        }
    }
}

#[test]
fn a_deep_text_is_an_error_before_the_stack_ends() {
    // The parser takes at most 2 MiB of any stack. A new thread may get a larger one than it asks
    // for, of a thread that has ended, so fewer levels may pass the parser.
    let deep = format!("select 1{}", " + 1".repeat(100_000));
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let outcome = small.spawn(move || parse(&deep)).expect("a thread").join().expect("no panic");
    assert_eq!(outcome.map_err(|error| error.state).err(), Some(*b"54001"));
}
