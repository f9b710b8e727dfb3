//! Strings and byte strings.
//!
//! What must hold:
//!
//! 1. Positions and lengths of texts count characters, those of byte strings bytes. A text is cut
//!    between characters only.
//! 2. A function that repeats or fills asks for the whole result first (`room`), and work over a
//!    text is done in pieces with safe points.
//! 3. Upper and lower case map a character to one character, as PostgreSQL's functions do. So a
//!    text keeps its number of characters.
//! 4. A hash table with keys from a statement is seeded, so that nobody can choose colliding ones.

use super::arguments::{bytes, give_text, int, invalid, name, out_of_range, text};
use super::encodings::{decode, encode};
use super::format::format_text;
use super::text_building::{LENGTH_MAX, bounded, quote_literal, replace, room};
use crate::function::{Function, func};
use crate::prefix::Matching;
use values::error::{SqlError, SqlState};
use values::identifier;
use values::types::{ArrayBuilder, Datum, oid};
use values::work;

type Result<T> = std::result::Result<T, SqlError>;

const TEXT: u32 = oid::TEXT;
const BYTEA: u32 = oid::BYTEA;
const I4: u32 = oid::INT4;

/// The end of a part that begins at `start` and has this length.
fn slice_end(start: i64, length: Option<i64>) -> Result<i64> {
    match length {
        Some(length) if length < 0 => {
            Err(SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed"))
        }
        Some(length) => Ok(start.saturating_add(length)),
        None => Ok(i64::MAX),
    }
}

/// The bytes from a 1-based position, at most `length` of them.
fn slice_bytes(input: &[u8], start: i64, length: Option<i64>) -> Result<&[u8]> {
    let at = |position: i64| (position.max(1) as u64 - 1).min(input.len() as u64) as usize;
    let (from, to) = (at(start), at(slice_end(start, length)?));
    Ok(&input[from..to.max(from)])
}

/// The characters from a 1-based position, at most `length` of them.
fn slice(input: &str, start: i64, length: Option<i64>) -> Result<&str> {
    let end = slice_end(start, length)?;
    let from = byte_position(input, start - 1)?;
    let to = byte_position(input, end - 1)?.max(from);
    Ok(&input[from..to])
}

/// The byte offset of the character with this number, counted from 0.
fn byte_position(input: &str, character: i64) -> Result<usize> {
    if character <= 0 {
        return Ok(0);
    }
    // A text has at most as many characters as bytes.
    work::byte_of_character(input, usize::try_from(character).unwrap_or(usize::MAX).min(input.len()))
}

fn position(needle: &str, input: &str) -> Result<Datum<'static>> {
    let found = work::find(input, needle)?;
    let before = found.map(|at| work::count_characters(&input[..at])).transpose()?;
    Ok(Datum::Int4(before.map_or(0, |before| before as i32 + 1)))
}

fn pad<'a>(a: &[Datum<'a>], fill: &str, left: bool, arena: &'a bumpalo::Bump) -> Result<Datum<'a>> {
    let input = text(a[0])?;
    let wanted = int(a[1])?.max(0) as usize;
    let present = work::count_characters(input)?;
    if present >= wanted || fill.is_empty() {
        return Ok(Datum::Text(slice(input, 1, Some(wanted as i64))?));
    }
    if wanted > LENGTH_MAX / 4 {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "requested length too large"));
    }
    room(wanted + input.len())?;
    let (mut padding, mut missing) = (String::new(), wanted - present);
    let whole = work::count_characters(fill)?;
    while missing >= whole {
        work::push(&mut padding, fill)?;
        work::tick(fill.len())?;
        missing -= whole;
    }
    work::push(&mut padding, slice(fill, 1, Some(missing as i64))?)?;
    work::texts_in(&if left { [&padding, input] } else { [input, &padding] }, arena).map(Datum::Text)
}

/// The upper case of a character that has one of a single character; other characters stay, as in
/// PostgreSQL.
fn uppercase(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(single), None) => single,
        _ => c,
    }
}

pub(super) fn lowercase(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(single), None) => single,
        // One letter maps to several characters: a capital I with a dot.
        (first, _) => first.unwrap_or(c),
    }
}

/// overlay(): replaces characters from a position on.
fn overlay<'a>(a: &[Datum<'a>], arena: &'a bumpalo::Bump) -> Result<Datum<'a>> {
    let (input, new, start) = (text(a[0])?, text(a[1])?, int(a[2])?);
    if start <= 0 {
        return Err(SqlError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let length = match a.get(3) {
        Some(length) => int(*length)?,
        None => work::count_characters(new)? as i64,
    };
    let Ok(end) = i32::try_from(start + length) else { return Err(out_of_range("integer")) };
    let parts = [slice(input, 1, Some(start - 1))?, new, slice(input, i64::from(end), None)?];
    room(parts.iter().map(|part| part.len()).sum())?;
    work::texts_in(&parts, arena).map(Datum::Text)
}

fn md5(input: &[u8]) -> Result<String> {
    use md5::Digest;
    let mut digest = md5::Md5::new();
    for piece in work::byte_pieces(input, 1) {
        digest.update(piece?);
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn initcap(input: &str) -> Result<String> {
    let mut inside = false;
    work::map_characters(input, |c| {
        let shown = if inside { lowercase(c) } else { uppercase(c) };
        inside = c.is_alphanumeric();
        shown
    })
}

fn reverse(input: &str) -> Result<String> {
    let mut out = String::with_capacity(input.len());
    for c in input.chars().rev() {
        out.push(c);
        work::tick(1)?;
    }
    Ok(out)
}

fn repeat<'a>(input: &str, count: usize, arena: &'a bumpalo::Bump) -> Result<Datum<'a>> {
    let length = input.len().saturating_mul(count);
    room(length)?;
    if length <= runtime::work::STRIDE {
        return give_text(&input.repeat(count), arena);
    }
    // A block holds several copies of a short text, which saves copying it character by character.
    let block_of = (runtime::work::STRIDE / input.len().max(1)).clamp(1, count);
    let block = if block_of == 1 { String::new() } else { input.repeat(block_of) };
    let block = if block_of == 1 { input } else { &block };
    let mut out = bumpalo::collections::String::with_capacity_in(length, arena);
    while out.len() < length {
        for piece in work::pieces(&block[..block.len().min(length - out.len())]) {
            out.push_str(piece?);
        }
        work::tick(block.len())?;
    }
    Ok(Datum::Text(out.into_bump_str()))
}

fn split_part<'a>(input: &'a str, delimiter: &str, field: i64) -> Result<&'a str> {
    if field == 0 {
        return Err(invalid("field position must not be zero"));
    }
    if delimiter.is_empty() {
        return Ok(if matches!(field, 1 | -1) { input } else { "" });
    }
    let wanted = if field > 0 {
        field as u64 - 1
    } else {
        let mut fields = 1;
        work::each_match(input, delimiter, |_| {
            fields += 1;
            Ok(true)
        })?;
        let Some(wanted) = u64::checked_sub(fields, field.unsigned_abs()) else { return Ok("") };
        wanted
    };
    let (mut passed, mut start, mut end) = (0, 0, input.len());
    work::each_match(input, delimiter, |at| {
        if passed == wanted {
            end = at;
            return Ok(false);
        }
        passed += 1;
        start = at + delimiter.len();
        Ok(true)
    })?;
    Ok(if passed == wanted { &input[start..end] } else { "" })
}

fn translate(input: &str, from: &str, to: &str) -> Result<String> {
    let mut table = runtime::hash::SeededMap::default();
    let mut to = to.chars();
    for c in from.chars() {
        let new = to.next();
        // The first of several mappings of a character counts.
        table.entry(c).or_insert(new);
        work::tick(16)?;
    }
    let mut out = String::with_capacity(input.len());
    for piece in work::pieces(input) {
        out.extend(piece?.chars().filter_map(|c| table.get(&c).map_or(Some(c), |new| *new)));
        work::tick(4 * runtime::work::STRIDE.min(input.len()))?;
    }
    Ok(out)
}

fn character_of(code: i64) -> Result<char> {
    if code == 0 {
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "null character not permitted"));
    }
    if code < 0 {
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "character number must be positive"));
    }
    u32::try_from(code).ok().and_then(char::from_u32).ok_or_else(|| {
        SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            match code {
                0x11_0000.. => format!("requested character too large for encoding: {code}"),
                _ => format!("requested character not valid for encoding: {code}"),
            },
        )
    })
}

fn join<'a>(parts: impl Iterator<Item = Datum<'a>>, delimiter: &str) -> Result<String> {
    let mut out = String::new();
    let mut first = true;
    for part in parts.filter(|part| !part.is_null()) {
        if !first {
            work::push(&mut out, delimiter)?;
        }
        first = false;
        work::push(&mut out, text(part)?)?;
        work::tick(16)?;
        bounded(out.len())?;
    }
    Ok(out)
}

fn string_to_array<'a>(a: &[Datum<'a>], arena: &'a bumpalo::Bump) -> Result<Datum<'a>> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let input = text(a[0])?;
    let null = a.get(2).and_then(|null| text(*null).ok());
    let mut builder = ArrayBuilder::new(TEXT);
    let mut push = |part: &str| {
        builder.push(if Some(part) == null { Datum::Null } else { Datum::Text(part) })?;
        work::tick(part.len() + 16)
    };
    match a[1] {
        _ if input.is_empty() => {}
        Datum::Null => {
            input.char_indices().try_for_each(|(at, c)| push(&input[at..at + c.len_utf8()]))?;
        }
        Datum::Text("") => push(input)?,
        delimiter => {
            let (delimiter, mut start) = (text(delimiter)?, 0);
            work::each_match(input, delimiter, |at| {
                push(&input[start..at])?;
                start = at + delimiter.len();
                Ok(true)
            })?;
            push(&input[start..])?;
        }
    }
    builder.array_in(arena)
}

/// A longer set of characters is looked up by hash.
const SHORT_SET: usize = 64;

/// Removes characters of a set from the ends.
fn trim<'a>(input: &'a str, set: &str, left: bool, right: bool) -> Result<Datum<'a>> {
    if set.len() <= SHORT_SET {
        return trim_where(input, |c| set.contains(c), left, right);
    }
    let mut known = runtime::hash::SeededSet::default();
    for c in set.chars() {
        known.insert(c);
        work::tick(16)?;
    }
    trim_where(input, |c| known.contains(&c), left, right)
}

/// Removes characters that the test accepts from the ends.
fn trim_where(input: &str, test: impl Fn(char) -> bool, left: bool, right: bool) -> Result<Datum<'_>> {
    let mut rest = input;
    while left && let Some(c) = rest.chars().next().filter(|c| test(*c)) {
        rest = &rest[c.len_utf8()..];
        work::tick(16)?;
    }
    while right && let Some(c) = rest.chars().next_back().filter(|c| test(*c)) {
        rest = &rest[..rest.len() - c.len_utf8()];
        work::tick(16)?;
    }
    Ok(Datum::Text(rest))
}

/// The trim functions with and without a set.
macro_rules! trims {
    ($name:literal, $left:literal, $right:literal) => {
        [
            func($name, &[TEXT], TEXT, |_, a| trim(text(a[0])?, " ", $left, $right)),
            func($name, &[TEXT, TEXT], TEXT, |_, a| trim(text(a[0])?, text(a[1])?, $left, $right)),
        ]
    };
}

const BTRIM: [Function; 2] = trims!("btrim", true, true);
const LTRIM: [Function; 2] = trims!("ltrim", true, false);
const RTRIM: [Function; 2] = trims!("rtrim", false, true);

/// A text function of one text.
macro_rules! mapping {
    ($name:literal, $take:expr) => {
        func($name, &[TEXT], TEXT, |cx, a| {
            let take: fn(&str) -> Result<String> = $take;
            give_text(&take(text(a[0])?)?, cx.arena)
        })
    };
}

fn characters<'a>(a: &[Datum<'a>]) -> Result<Datum<'a>> {
    Ok(Datum::Int4(work::count_characters(text(a[0])?)? as i32))
}

/// `||`. The binder has cast a side that is no text.
fn concatenate<'a>(cx: &mut crate::context::EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    room(text(a[0])?.len() + text(a[1])?.len())?;
    work::texts_in(&[text(a[0])?, text(a[1])?], cx.arena).map(Datum::Text)
}

pub(super) static FUNCTIONS: &[Function] = &[
    func("textcat", &[TEXT, TEXT], TEXT, concatenate).op("||"),
    func("textanycat", &[TEXT, oid::ANYNONARRAY], TEXT, concatenate).stable().op("||"),
    func("anytextcat", &[oid::ANYNONARRAY, TEXT], TEXT, concatenate).stable().op("||"),
    func("byteacat", &[BYTEA, BYTEA], BYTEA, |cx, a| {
        let (left, right) = (bytes(a[0])?, bytes(a[1])?);
        room(left.len() + right.len())?;
        let mut out = bumpalo::collections::Vec::with_capacity_in(left.len() + right.len(), cx.arena);
        for piece in work::byte_pieces(left, 1).chain(work::byte_pieces(right, 1)) {
            out.extend_from_slice_copy(piece?);
        }
        Ok(Datum::Bytea(out.into_bump_slice()))
    })
    .op("||"),
    func("concat", &[oid::TEXT_ARRAY], TEXT, |cx, a| give_text(&join(a.iter().copied(), "")?, cx.arena))
        .lax()
        .any_number()
        .stable(),
    func("concat_ws", &[TEXT, oid::TEXT_ARRAY], TEXT, |cx, a| {
        if a[0].is_null() {
            return Ok(Datum::Null);
        }
        give_text(&join(a[1..].iter().copied(), text(a[0])?)?, cx.arena)
    })
    .lax()
    .any_number()
    .stable(),
    func("format", &[TEXT], TEXT, |cx, a| give_text(&format_text(a)?, cx.arena)),
    func("format", &[TEXT, oid::TEXT_ARRAY], TEXT, |cx, a| {
        if a[0].is_null() {
            return Ok(Datum::Null);
        }
        give_text(&format_text(a)?, cx.arena)
    })
    .lax()
    .any_number()
    .stable(),
    func("length", &[TEXT], I4, |_, a| characters(a)),
    func("char_length", &[TEXT], I4, |_, a| characters(a)),
    func("character_length", &[TEXT], I4, |_, a| characters(a)),
    func("length", &[BYTEA], I4, |_, a| Ok(Datum::Int4(bytes(a[0])?.len() as i32))),
    func("octet_length", &[TEXT], I4, |_, a| Ok(Datum::Int4(text(a[0])?.len() as i32))),
    func("octet_length", &[oid::BPCHAR], I4, |_, a| Ok(Datum::Int4(text(a[0])?.len() as i32))),
    func("octet_length", &[BYTEA], I4, |_, a| Ok(Datum::Int4(bytes(a[0])?.len() as i32))),
    func("bit_length", &[TEXT], I4, |_, a| {
        let bits = i32::try_from(text(a[0])?.len() * 8);
        bits.map(Datum::Int4).map_err(|_| out_of_range("integer"))
    }),
    mapping!("lower", |v| work::map_characters(v, lowercase)),
    mapping!("upper", |v| work::map_characters(v, uppercase)),
    mapping!("initcap", initcap),
    mapping!("md5", |v| md5(v.as_bytes())),
    func("md5", &[BYTEA], TEXT, |cx, a| give_text(&md5(bytes(a[0])?)?, cx.arena)),
    func("overlay", &[TEXT, TEXT, I4], TEXT, |cx, a| overlay(a, cx.arena)),
    func("overlay", &[TEXT, TEXT, I4, I4], TEXT, |cx, a| overlay(a, cx.arena)),
    mapping!("reverse", reverse),
    mapping!("quote_ident", identifier::quoted_text),
    mapping!("quote_literal", quote_literal),
    func("quote_nullable", &[TEXT], TEXT, |cx, a| {
        if a[0].is_null() {
            return Ok(Datum::Text("NULL"));
        }
        give_text(&quote_literal(text(a[0])?)?, cx.arena)
    })
    .lax(),
    BTRIM[0],
    BTRIM[1],
    LTRIM[0],
    LTRIM[1],
    RTRIM[0],
    RTRIM[1],
    func("substring", &[TEXT, I4], TEXT, |_, a| Ok(Datum::Text(slice(text(a[0])?, int(a[1])?, None)?))),
    func("substring", &[TEXT, I4, I4], TEXT, |_, a| {
        Ok(Datum::Text(slice(text(a[0])?, int(a[1])?, Some(int(a[2])?))?))
    }),
    func("substr", &[TEXT, I4], TEXT, |_, a| Ok(Datum::Text(slice(text(a[0])?, int(a[1])?, None)?))),
    func("substr", &[TEXT, I4, I4], TEXT, |_, a| {
        Ok(Datum::Text(slice(text(a[0])?, int(a[1])?, Some(int(a[2])?))?))
    }),
    func("substring", &[BYTEA, I4], BYTEA, |_, a| {
        Ok(Datum::Bytea(slice_bytes(bytes(a[0])?, int(a[1])?, None)?))
    }),
    func("substring", &[BYTEA, I4, I4], BYTEA, |_, a| {
        Ok(Datum::Bytea(slice_bytes(bytes(a[0])?, int(a[1])?, Some(int(a[2])?))?))
    }),
    func("substr", &[BYTEA, I4], BYTEA, |_, a| {
        Ok(Datum::Bytea(slice_bytes(bytes(a[0])?, int(a[1])?, None)?))
    }),
    func("substr", &[BYTEA, I4, I4], BYTEA, |_, a| {
        Ok(Datum::Bytea(slice_bytes(bytes(a[0])?, int(a[1])?, Some(int(a[2])?))?))
    }),
    func("left", &[TEXT, I4], TEXT, |_, a| {
        let (input, count) = (text(a[0])?, int(a[1])?);
        let keep = if count < 0 { (work::count_characters(input)? as i64 + count).max(0) } else { count };
        Ok(Datum::Text(slice(input, 1, Some(keep))?))
    }),
    func("right", &[TEXT, I4], TEXT, |_, a| {
        let (input, count) = (text(a[0])?, int(a[1])?);
        let skip = match count {
            // PostgreSQL's negation leaves the least integer unchanged.
            _ if count == i64::from(i32::MIN) => 0,
            ..0 => -count,
            _ => (work::count_characters(input)? as i64 - count).max(0),
        };
        Ok(Datum::Text(slice(input, skip + 1, None)?))
    }),
    func("position", &[TEXT, TEXT], I4, |_, a| position(text(a[1])?, text(a[0])?)),
    func("strpos", &[TEXT, TEXT], I4, |_, a| position(text(a[1])?, text(a[0])?)),
    func("starts_with", &[TEXT, TEXT], oid::BOOL, |_, a| {
        work::starts_with(text(a[0])?, text(a[1])?).map(Datum::Bool)
    })
    .matching(Matching::Start),
    func("starts_with_operator", &[TEXT, TEXT], oid::BOOL, |_, a| {
        work::starts_with(text(a[0])?, text(a[1])?).map(Datum::Bool)
    })
    .op("^@")
    .matching(Matching::Start),
    func("replace", &[TEXT, TEXT, TEXT], TEXT, |cx, a| {
        let (input, from, to) = (text(a[0])?, text(a[1])?, text(a[2])?);
        if from.is_empty() {
            return Ok(a[0]);
        }
        give_text(&replace(input, from, to)?, cx.arena)
    }),
    func("translate", &[TEXT, TEXT, TEXT], TEXT, |cx, a| {
        give_text(&translate(text(a[0])?, text(a[1])?, text(a[2])?)?, cx.arena)
    }),
    func("repeat", &[TEXT, I4], TEXT, |cx, a| repeat(text(a[0])?, int(a[1])?.max(0) as usize, cx.arena)),
    func("lpad", &[TEXT, I4], TEXT, |cx, a| pad(a, " ", true, cx.arena)),
    func("lpad", &[TEXT, I4, TEXT], TEXT, |cx, a| pad(a, text(a[2])?, true, cx.arena)),
    func("rpad", &[TEXT, I4], TEXT, |cx, a| pad(a, " ", false, cx.arena)),
    func("rpad", &[TEXT, I4, TEXT], TEXT, |cx, a| pad(a, text(a[2])?, false, cx.arena)),
    func("split_part", &[TEXT, TEXT, I4], TEXT, |_, a| {
        Ok(Datum::Text(split_part(text(a[0])?, text(a[1])?, int(a[2])?)?))
    }),
    func("ascii", &[TEXT], I4, |_, a| Ok(Datum::Int4(text(a[0])?.chars().next().map_or(0, |c| c as i32)))),
    func("chr", &[I4], TEXT, |cx, a| give_text(character_of(int(a[0])?)?.encode_utf8(&mut [0; 4]), cx.arena)),
    func("to_hex", &[I4], TEXT, |cx, a| give_text(&format!("{:x}", int(a[0])? as u32), cx.arena)),
    func("to_hex", &[oid::INT8], TEXT, |cx, a| give_text(&format!("{:x}", int(a[0])?), cx.arena)),
    func("encode", &[BYTEA, TEXT], TEXT, |cx, a| give_text(&encode(bytes(a[0])?, name(a[1])?)?, cx.arena)),
    func("decode", &[TEXT, TEXT], BYTEA, |cx, a| {
        work::bytes_in(&decode(text(a[0])?, name(a[1])?)?, cx.arena).map(Datum::Bytea)
    }),
    func("string_to_array", &[TEXT, TEXT], oid::TEXT_ARRAY, |cx, a| string_to_array(a, cx.arena)).lax(),
    func("string_to_array", &[TEXT, TEXT, TEXT], oid::TEXT_ARRAY, |cx, a| string_to_array(a, cx.arena)).lax(),
];

#[cfg(test)]
mod tests {
    use super::super::registry::{functions, operators};
    use super::*;
    use crate::context::EvalContext;
    use values::environment::NoSession;

    #[test]
    fn values_longer_than_a_gibibyte_are_refused_before_they_are_made() {
        // The system gives zero pages for these, and the refusal comes before anybody reads them.
        let (half, most) = (vec![0; 1 << 29], vec![0; 3 << 28]);
        let half_text = std::str::from_utf8(&half).expect("zeros are characters");
        let (arena, session) = (bumpalo::Bump::new(), NoSession::default());
        let mut cx = EvalContext::new(&[], &[], &arena, &session);
        let joins = operators("||", 2);
        let byteacat = joins.iter().find(|function| function.name == "byteacat").expect("is there");
        let overlay = functions("overlay").iter().find(|function| function.arguments.len() == 4);
        let encode = functions("encode")[0];
        let (bytes, text) = (Datum::Bytea(&half), Datum::Text(half_text));
        let (one, none) = (Datum::Int4(1), Datum::Int4(0));
        for (function, arguments) in [
            (*byteacat, vec![bytes, bytes]),
            (*overlay.expect("is there"), vec![text, text, one, none]),
            (encode, vec![bytes, Datum::Text("hex")]),
            (encode, vec![Datum::Bytea(&most), Datum::Text("base64")]),
        ] {
            let error = (function.code)(&mut cx, &arguments).expect_err(function.name);
            assert_eq!(error.message, "requested length too large", "{}", function.name);
        }
    }
}
