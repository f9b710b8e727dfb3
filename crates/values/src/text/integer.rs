//! int2, int4 and int8 as text.
//!
//! What must hold:
//!
//! 1. The short path reads plain decimal digits and gives what the long one would give.
//! 2. A number out of range is 22003, even if something else follows the digits, as in PostgreSQL.
//! 3. A text of any length is read without overflow. A long one is read beside the core.

use super::{invalid_syntax, out_of_range};
use crate::error::SqlError;
use crate::work;

/// Appends an integer's digits.
#[inline]
pub(super) fn write_i64(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The value of decimal digits with an optional minus; None for another text or more than 18
/// digits.
#[inline]
fn plain_integer(text: &[u8]) -> Option<i64> {
    const MOST: usize = 18;
    let (negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > MOST {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// Reads an integer of one of the three widths. `type_name` is the name in error messages.
pub fn parse_integer(text: &str, type_name: &'static str) -> Result<i64, SqlError> {
    let (least, greatest) = match type_name {
        "smallint" => (i64::from(i16::MIN), i64::from(i16::MAX)),
        "integer" => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    if let Some(value) = plain_integer(text.as_bytes()) {
        return match (least..=greatest).contains(&value) {
            true => Ok(value),
            false => Err(out_of_range(type_name, text)),
        };
    }
    let read = move |text: &str| unusual_integer(text, type_name, (least, greatest));
    if text.len() > work::LONG_INPUT { work::aside(text, read) } else { read(text) }
}

/// Reads an integer with white space, a base or underscores.
fn unusual_integer(text: &str, type_name: &str, (least, greatest): (i64, i64)) -> Result<i64, SqlError> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, digits),
    };
    let mut magnitude: i128 = 0;
    let mut previous_digit = radix != 10;
    for (index, byte) in digits.bytes().enumerate() {
        if byte == b'_' && previous_digit && index + 1 < digits.len() {
            previous_digit = false;
            continue;
        }
        let Some(digit) = char::from(byte).to_digit(radix) else {
            return Err(invalid_syntax(type_name, text));
        };
        // PostgreSQL stops reading at the first digit that makes the number too large, whatever
        // follows.
        if magnitude > (i128::from(greatest) + 1) / i128::from(radix) {
            return Err(out_of_range(type_name, text));
        }
        previous_digit = true;
        // The magnitude stays far outside every range without overflowing.
        magnitude = (magnitude * i128::from(radix) + i128::from(digit)).min(1 << 100);
    }
    if digits.is_empty() || !previous_digit {
        return Err(invalid_syntax(type_name, text));
    }
    let value = if negative { -magnitude } else { magnitude };
    i64::try_from(value)
        .ok()
        .filter(|value| (least..=greatest).contains(value))
        .ok_or_else(|| out_of_range(type_name, text))
}
