//! Long values: results are the same across pieces, and every loop over them has safe points.

use super::*;
use crate::environment::NoSession;
use crate::types::{self, ArrayBuilder, ArrayRef, Datum, Type, modifier, tagged};
use crate::{binary, encoding, text};

fn places(text: &str, needle: &str) -> Vec<usize> {
    let mut places = Vec::new();
    each_match(text, needle, |at| {
        places.push(at);
        Ok(true)
    })
    .unwrap();
    places
}

#[test]
fn matches_are_found_across_pieces_as_in_one() {
    let text = "ab\u{e9}aab\u{20ac}".repeat(9000);
    for needle in ["a", "ab", "\u{e9}a", "b\u{20ac}a", "\u{20ac}ab\u{e9}aab\u{20ac}", "x", "aaa"] {
        let expected: Vec<usize> = text.match_indices(needle).map(|(at, _)| at).collect();
        assert_eq!(places(&text, needle), expected, "{needle}");
    }
    for length in [4097, 5000, 40_000] {
        let from = boundary(&text, 30_000);
        let needle = &text[from..boundary(&text, from + length)];
        let expected: Vec<usize> = text.match_indices(needle).map(|(at, _)| at).collect();
        assert_eq!(places(&text, needle), expected, "{length}");
        let other = format!("{needle}x");
        assert_eq!(places(&text, &other), Vec::<usize>::new(), "{length}");
    }
}

#[test]
fn characters_are_counted_across_pieces() {
    let text = "a\u{e9}\u{20ac}\u{1f600}".repeat(5000);
    assert_eq!(count_characters(&text).unwrap(), 20_000);
    for character in [0, 1, 2, 3, 4, 6553, 6554, 16_384, 19_999] {
        let expected = text.char_indices().nth(character).unwrap().0;
        assert_eq!(byte_of_character(&text, character).unwrap(), expected, "{character}");
    }
    assert_eq!(byte_of_character(&text, 20_000).unwrap(), text.len());
    assert_eq!(byte_of_character(&text, usize::MAX).unwrap(), text.len());
    assert_eq!(pieces(&text).map(Result::unwrap).collect::<String>(), text);
    assert_eq!(pieces("").map(Result::unwrap).collect::<String>(), "");
}

/// The error of work that exceeds its budget.
type Unfinished = Result<()>;

fn unfinished<R>(name: &str, work: impl FnOnce() -> Result<R>) {
    let ended: Unfinished = runtime::budget::within(FOLDING_BUDGET, || work().map(drop));
    assert!(ended.is_err(), "{name} has no safe point");
}

#[test]
fn every_copy_and_output_of_a_long_value_has_safe_points() {
    let long = "ab, ".repeat(1 << 20);
    let mut builder = ArrayBuilder::new(Type::INT4.oid);
    (0..1 << 20).for_each(|number| builder.push(Datum::Int4(number)).unwrap());
    let numbers = builder.finish().unwrap();
    let mut builder = ArrayBuilder::new(Type::TEXT.oid);
    builder.push(Datum::Text(&long)).unwrap();
    let texts = builder.finish().unwrap();
    let session = NoSession::default();
    let values = [
        ("text", Type::TEXT, Datum::Text(&long)),
        ("bpchar", Type::new(crate::types::oid::BPCHAR), Datum::Padded(&long)),
        ("bytea", Type::BYTEA, Datum::Bytea(long.as_bytes())),
        ("numbers", Type::new(crate::types::oid::INT4_ARRAY), Datum::Array(ArrayRef(&numbers))),
        ("texts", Type::new(crate::types::oid::TEXT_ARRAY), Datum::Array(ArrayRef(&texts))),
    ];
    for (name, type_, value) in values {
        let arena = Bump::new();
        unfinished(name, || value.copy_in(&arena));
        unfinished(name, || value.to_value());
        unfinished(name, || types::compare(value, value));
        unfinished(name, || tagged::write_deep(value, &mut Vec::new()));
        unfinished(name, || text::write(value, type_, &session, &mut Vec::new()));
        unfinished(name, || binary::write(value, type_, &mut Vec::new()));
        unfinished(name, || ArrayBuilder::new(type_.oid).push(value));
    }
    let arena = Bump::new();
    unfinished("text_in", || text_in(&long, &arena));
    unfinished("texts_in", || texts_in(&["a", &long], &arena));
    unfinished("bytes_in", || bytes_in(long.as_bytes(), &arena));
    unfinished("owned_text", || owned_text(&long));
    unfinished("owned_bytes", || owned_bytes(long.as_bytes()));
    unfinished("push", || push(&mut String::new(), &long));
    unfinished("put", || put(long.as_bytes(), &mut Vec::new()));
    unfinished("compare", || compare(long.as_bytes(), long.as_bytes()));
    unfinished("equal", || equal(long.as_bytes(), long.as_bytes()));
    unfinished("tagged text", || ArrayRef(&texts).iter().next().transpose());
    unfinished("elements", || ArrayRef(&numbers).iter().collect::<Result<Vec<_>>>());
    unfinished("subscript", || ArrayRef(&numbers).get(&[1 << 20]));
    unfinished("common_prefix", || common_prefix(long.as_bytes(), long.as_bytes()));
    unfinished("contains", || contains(long.as_bytes(), 0));
    unfinished("any", || any(long.as_bytes(), |byte| byte == 0));
    unfinished("starts_with", || starts_with(&long, &long));
    unfinished("utf8", || encoding::utf8(long.as_bytes()));
    unfinished("valid_text", || encoding::valid_text(long.as_bytes()));
    let short = Type::with_modifier(Type::VARCHAR.oid, (1 << 22) - 100);
    unfinished("varchar", || modifier::apply(Datum::Text(&long), short, true, &arena));
}

#[test]
fn a_common_prefix_is_found_across_pieces() {
    let left = vec![b'a'; 3 * STRIDE];
    for at in [0, 1, STRIDE - 1, STRIDE, STRIDE + 1, 3 * STRIDE - 1] {
        let mut right = left.clone();
        right[at] = b'b';
        assert_eq!(common_prefix(&left, &right).unwrap(), at);
        assert_eq!(common_prefix(&right[..at], &left).unwrap(), at);
    }
    assert_eq!(common_prefix(&left, &left).unwrap(), left.len());
    assert_eq!(common_prefix(b"", &left).unwrap(), 0);
}

#[test]
fn blanks_are_cut_off_across_pieces() {
    for (letters, blanks) in [(0, 0), (0, 50_000), (5, 50_000), (STRIDE, STRIDE), (50_000, 0), (50_000, 3)] {
        let text = "\u{e9}".repeat(letters) + &" ".repeat(blanks);
        assert_eq!(without_blanks(&text), text.trim_end_matches(' '), "{letters} {blanks}");
    }
}
