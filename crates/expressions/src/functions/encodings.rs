//! encode() and decode(): bytes as text in hex, base64 and escape format.
//!
//! What must hold:
//!
//! 1. decode() of what encode() wrote gives the same bytes, in each format.
//! 2. decode() accepts the texts that PostgreSQL accepts, with the same bytes, and refuses others.
//! 3. Each piece of a long value has a safe point.

use super::arguments::invalid;
use super::text_building::{bounded, room};
use values::error::SqlError;
use values::text::bytes::{parse_escape, parse_hex, write_bytea};
use values::work;

type Result<T> = std::result::Result<T, SqlError>;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn encode_base64(input: &[u8]) -> Result<String> {
    room(input.len().div_ceil(3) * 4 + input.len() / 57)?;
    let mut out = String::with_capacity(input.len() / 3 * 4);
    for (index, chunk) in input.chunks(3).enumerate() {
        work::tick(4)?;
        if index > 0 && index % 19 == 0 {
            out.push('\n');
        }
        let word =
            chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place <= chunk.len() {
                out.push(char::from(BASE64[(word >> (18 - 6 * place) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    Ok(out)
}

fn decode_base64(input: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(input.len() / 4 * 3);
    // Four characters make three bytes, or fewer when padding ends the text.
    let (mut word, mut place, mut kept) = (0u32, 0, None);
    for c in input.chars() {
        work::tick(8)?;
        let value = match (c, kept) {
            (' ' | '\n' | '\t' | '\r', _) => continue,
            // The first padding decides how many bytes the last group has.
            ('=', None) if place < 2 => {
                return Err(invalid("unexpected \"=\" while decoding base64 sequence"));
            }
            ('=', None) => {
                kept = Some(place - 1);
                0
            }
            ('=', Some(_)) => 0,
            _ => match BASE64.iter().position(|x| char::from(*x) == c) {
                Some(value) => value as u32,
                None => {
                    let message = format!("invalid symbol \"{c}\" found while decoding base64 sequence");
                    return Err(invalid(message));
                }
            },
        };
        word = word << 6 | value;
        place += 1;
        if place == 4 {
            out.extend_from_slice(&word.to_be_bytes()[1..=kept.unwrap_or(3)]);
            (word, place) = (0, 0);
        }
    }
    if place != 0 {
        return Err(invalid("invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

pub(super) fn encode(input: &[u8], format: &str) -> Result<String> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => {}
        "escape" => return encode_escape(input),
        "base64" => return encode_base64(input),
        _ => return Err(invalid(format!("unrecognized encoding: \"{format}\""))),
    }
    room(input.len() * 2)?;
    let (mut out, mut shown) = (String::with_capacity(input.len() * 2), Vec::new());
    for piece in work::byte_pieces(input, 1) {
        shown.clear();
        write_bytea(piece?, false, &mut shown)?;
        out.push_str(&String::from_utf8_lossy(&shown[2..]));
    }
    Ok(out)
}

/// Bytes as text: zeros and bytes above ASCII in octal, backslashes doubled, other bytes unchanged.
fn encode_escape(input: &[u8]) -> Result<String> {
    let mut out = String::with_capacity(input.len());
    for piece in work::byte_pieces(input, 1) {
        for &byte in piece? {
            match byte {
                0 | 0x80.. => {
                    out.push('\\');
                    out.extend([byte >> 6, byte >> 3 & 7, byte & 7].map(|digit| char::from(b'0' + digit)));
                }
                b'\\' => out.push_str("\\\\"),
                _ => out.push(char::from(byte)),
            }
        }
        bounded(out.len())?;
    }
    Ok(out)
}

pub(super) fn decode(input: &str, format: &str) -> Result<Vec<u8>> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => parse_hex(input),
        "escape" => parse_escape(input),
        "base64" => decode_base64(input),
        _ => Err(invalid(format!("unrecognized encoding: \"{format}\""))),
    }
}
