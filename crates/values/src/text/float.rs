//! Floating point numbers as text.
//!
//! What must hold:
//!
//! 1. With `extra_float_digits` above 0 the text is the shortest that reads back as the same
//!    number, of the type's own width.
//! 2. The layout is that of C's `%g`, as in PostgreSQL.
//! 3. Overflow to infinity and underflow to zero are errors, unless the text names infinity or its
//!    digits are all zero.

use super::invalid_syntax;
use crate::error::SqlError;

/// Appends a float8: the shortest text that reads back equal, or `15 + extra` digits when `extra`
/// is not positive.
pub fn write_f64(value: f64, extra: i32, out: &mut Vec<u8>) {
    if !write_special(value, out) {
        let text =
            if extra > 0 { format!("{value:e}") } else { format!("{value:.*e}", precision(14 + extra)) };
        write_digits(&text, extra > 0, if extra > 0 { 15 } else { 15 + extra }, out);
    }
}

/// Appends a float4: the shortest text that reads back equal, or `6 + extra` digits when `extra` is
/// not positive.
pub(super) fn write_f32(value: f32, extra: i32, out: &mut Vec<u8>) {
    if !write_special(value.into(), out) {
        let text =
            if extra > 0 { format!("{value:e}") } else { format!("{value:.*e}", precision(5 + extra)) };
        write_digits(&text, extra > 0, if extra > 0 { 6 } else { 6 + extra }, out);
    }
}

fn precision(digits: i32) -> usize {
    digits.max(0) as usize
}

fn write_special(value: f64, out: &mut Vec<u8>) -> bool {
    let text: &[u8] = if value.is_nan() {
        b"NaN"
    } else if value.is_infinite() {
        if value > 0.0 { b"Infinity" } else { b"-Infinity" }
    } else {
        return false;
    };
    out.extend_from_slice(text);
    true
}

/// Lays out Rust's `d.ddde±x` as C's `%g` does: fixed notation for exponents from -4 to below the
/// limit.
fn write_digits(text: &str, shortest: bool, limit: i32, out: &mut Vec<u8>) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (negative, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
    let mut digits: Vec<u8> = mantissa.bytes().filter(|byte| *byte != b'.').collect();
    if !shortest {
        while digits.len() > 1 && digits.last() == Some(&b'0') {
            digits.pop();
        }
    }
    if negative {
        out.push(b'-');
    }
    if !(-4..limit.max(1)).contains(&exponent) {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        let magnitude = exponent.unsigned_abs();
        if magnitude < 10 {
            out.push(b'0');
        }
        super::integer::write_i64(magnitude.into(), out);
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(&digits);
    } else {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            out.extend_from_slice(&digits);
            out.resize(out.len() + whole - digits.len(), b'0');
        } else {
            out.extend_from_slice(&digits[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

/// Reads a float8.
pub fn parse_f64(text: &str) -> Result<f64, SqlError> {
    let (value, is_zero) = parse::<f64>(text, "double precision")?;
    if value.is_infinite() && !names_infinity(text) || (value == 0.0 && !is_zero) {
        return Err(SqlError::new(
            crate::SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{}\" is out of range for type double precision", text.trim()),
        ));
    }
    Ok(value)
}

/// Reads a float4.
pub fn parse_f32(text: &str) -> Result<f32, SqlError> {
    let (value, is_zero) = parse::<f32>(text, "real")?;
    if value.is_infinite() && !names_infinity(text) || (value == 0.0 && !is_zero) {
        return Err(SqlError::new(
            crate::SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{}\" is out of range for type real", text.trim()),
        ));
    }
    Ok(value)
}

fn names_infinity(text: &str) -> bool {
    text.trim().trim_start_matches(['+', '-']).starts_with(['i', 'I'])
}

/// The value, and whether all its digits are zero.
fn parse<F: std::str::FromStr>(text: &str, type_name: &str) -> Result<(F, bool), SqlError> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let unsigned = trimmed.trim_start_matches(['+', '-']);
    let named = ["nan", "inf", "infinity"].iter().any(|name| unsigned.eq_ignore_ascii_case(name));
    let numeric = unsigned
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !(named || numeric) {
        return Err(invalid_syntax(type_name, text));
    }
    let value = trimmed.parse().map_err(|_| invalid_syntax(type_name, text))?;
    let mantissa = unsigned.split(['e', 'E']).next().unwrap_or("");
    Ok((value, mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'))))
}
