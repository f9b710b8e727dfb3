//! bytea, uuid and "char" as text.
//!
//! What must hold:
//!
//! 1. Both formats of bytea are read, whichever the session writes. A text that starts with `\x` is
//!    in hex.
//! 2. Reading what was written gives the same bytes.
//! 3. Each piece of a long bytea has a safe point, both ways.

use super::invalid_syntax;
use crate::error::{SqlError, SqlState};

const HEX: &[u8; 16] = b"0123456789abcdef";

fn push_hex(byte: u8, out: &mut Vec<u8>) {
    out.push(HEX[usize::from(byte >> 4)]);
    out.push(HEX[usize::from(byte & 15)]);
}

/// Appends a bytea as `\x...`, or in escape format.
pub fn write_bytea(value: &[u8], escape: bool, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if !escape {
        out.reserve(2 + value.len() * 2);
        out.extend_from_slice(b"\\x");
        for piece in crate::work::byte_pieces(value, 1) {
            piece?.iter().for_each(|byte| push_hex(*byte, out));
        }
        return Ok(());
    }
    for &byte in value {
        crate::work::tick(1)?;
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x20..=0x7e => out.push(byte),
            _ => {
                out.extend_from_slice(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)])
            }
        }
    }
    Ok(())
}

/// Decodes pairs of hex digits. White space may separate the pairs.
pub fn parse_hex(text: &str) -> Result<Vec<u8>, SqlError> {
    let bad = |message: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for c in text.chars() {
        crate::work::tick(1)?;
        if high.is_none() && matches!(c, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let digit = c.to_digit(16).ok_or_else(|| bad(format!("invalid hexadecimal digit: \"{c}\"")))? as u8;
        match high.take() {
            Some(first) => out.push(first << 4 | digit),
            None => high = Some(digit),
        }
    }
    if high.is_some() {
        return Err(bad("invalid hexadecimal data: odd number of digits".to_owned()));
    }
    Ok(out)
}

/// Reads a bytea in either format.
pub(super) fn parse_bytea(text: &str) -> Result<Vec<u8>, SqlError> {
    if let Some(hex) = text.strip_prefix("\\x") {
        return parse_hex(hex);
    }
    parse_escape(text)
}

/// Reads a bytea in escape format.
pub fn parse_escape(text: &str) -> Result<Vec<u8>, SqlError> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        crate::work::tick(1)?;
        match &bytes[at..] {
            [b'\\', b'\\', ..] => {
                out.push(b'\\');
                at += 2;
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                at += 4;
            }
            [b'\\', ..] => {
                let message = "invalid input syntax for type bytea";
                return Err(SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    Ok(out)
}

/// Appends a uuid.
pub(super) fn write_uuid(value: &[u8; 16], out: &mut Vec<u8>) {
    for (index, byte) in value.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        push_hex(*byte, out);
    }
}

/// Reads a uuid: 32 hex digits. A dash may follow each group of four, and braces may enclose the
/// whole.
pub(super) fn parse_uuid(text: &str) -> Result<[u8; 16], SqlError> {
    let invalid = || invalid_syntax("uuid", text);
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').ok_or_else(invalid)?,
        None => text,
    };
    let mut value = [0; 16];
    let mut digits = 0;
    let mut dash_allowed = false;
    for c in inner.chars() {
        if c == '-' && dash_allowed {
            dash_allowed = false;
            continue;
        }
        let digit = c.to_digit(16).ok_or_else(invalid)? as u8;
        if digits == 32 {
            return Err(invalid());
        }
        value[digits / 2] = value[digits / 2] << 4 | digit;
        digits += 1;
        dash_allowed = digits % 4 == 0 && digits < 32;
    }
    if digits != 32 { Err(invalid()) } else { Ok(value) }
}

/// Appends a "char": nothing for zero, `\ooo` above ASCII.
pub(super) fn write_char(value: u8, out: &mut Vec<u8>) {
    match value {
        0 => {}
        1..0x80 => out.push(value),
        _ => {
            out.extend_from_slice(&[b'\\', b'0' + (value >> 6), b'0' + (value >> 3 & 7), b'0' + (value & 7)])
        }
    }
}

/// Reads a "char": the first byte, or `\ooo`.
pub(super) fn parse_char(text: &str) -> u8 {
    match text.as_bytes() {
        [b'\\', a @ b'0'..=b'7', b @ b'0'..=b'7', c @ b'0'..=b'7'] => {
            (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0')
        }
        [first, ..] => *first,
        [] => 0,
    }
}
