//! OIDs and vectors of integers from text, by the rules of C's `strtoul` and `strtol`, with which
//! PostgreSQL reads them.

use bumpalo::Bump;

use super::quote::is_space;
use super::{invalid_syntax, out_of_range};
use crate::error::SqlError;
use crate::types::{ArrayBuilder, Datum, oid};
use crate::work;

/// A number at the front of a text.
struct Leading<'t> {
    /// The number; None when it does not fit an i64.
    value: Option<i64>,
    /// The text after it.
    behind: &'t str,
}

/// Reads a number after white space by C's rules; None where there is none. With `any_base` it may
/// be octal (`010`) or hexadecimal (`0x10`).
fn leading(text: &str, any_base: bool) -> Result<Option<Leading<'_>>, SqlError> {
    const LONGEST: usize = 22;
    let text = without_space(text)?;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', digit, ..] if any_base && digit.is_ascii_hexdigit() => (16, &digits[2..]),
        [b'0', ..] if any_base => (8, digits),
        _ => (10, digits),
    };
    let end = work::position(digits.as_bytes(), |byte| !char::from(byte).is_digit(base))?;
    let (digits, behind) = digits.split_at(end.unwrap_or(digits.len()));
    if digits.is_empty() {
        return Ok(None);
    }
    let zeros = work::position(digits.as_bytes(), |byte| byte != b'0')?.unwrap_or(digits.len() - 1);
    let significant = Some(&digits[zeros..]).filter(|significant| significant.len() <= LONGEST);
    let magnitude = significant.and_then(|significant| i64::from_str_radix(significant, base).ok());
    let value = if text.starts_with('-') { magnitude.map(|magnitude| -magnitude) } else { magnitude };
    Ok(Some(Leading { value, behind }))
}

fn without_space(text: &str) -> Result<&str, SqlError> {
    let start = work::position(text.as_bytes(), |byte| !is_space(byte))?;
    Ok(&text[start.unwrap_or(text.len())..])
}

/// The number as an OID; a negative one wraps.
fn as_oid(value: i64) -> Option<u32> {
    u32::try_from(value).or_else(|_| i32::try_from(value).map(|value| value as u32)).ok()
}

/// Reads an OID, or another unsigned 32-bit number that `type_name` names.
pub(super) fn parse_oid(text: &str, type_name: &str) -> Result<u32, SqlError> {
    let Leading { value, behind } = leading(text, true)?.ok_or_else(|| invalid_syntax(type_name, text))?;
    let value = value.ok_or_else(|| out_of_range(type_name, text))?;
    if !without_space(behind)?.is_empty() {
        return Err(invalid_syntax(type_name, text));
    }
    as_oid(value).ok_or_else(|| out_of_range(type_name, text))
}

/// Reads an oidvector, or an int2vector.
pub(super) fn parse_vector<'a>(text: &str, vector: u32, arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
    let is_oids = vector == oid::OIDVECTOR;
    let (element, name) = if is_oids { (oid::OID, "oid") } else { (oid::INT2, "smallint") };
    let mut builder = ArrayBuilder::new(element);
    let mut rest = without_space(text)?;
    while !rest.is_empty() {
        work::tick(16)?;
        let Leading { value, behind } = leading(rest, is_oids)?.ok_or_else(|| invalid_syntax(name, rest))?;
        let number = match is_oids {
            true => value.and_then(as_oid).map(Datum::Oid),
            false => value.and_then(|value| i16::try_from(value).ok()).map(Datum::Int2),
        };
        builder.push(number.ok_or_else(|| out_of_range(name, rest))?)?;
        if !is_oids && !behind.is_empty() && !behind.starts_with(' ') {
            return Err(invalid_syntax(name, rest));
        }
        rest = without_space(behind)?;
    }
    let count = builder.len() as i32;
    builder.array_with_in(&[(count, 0)], arena)
}
