//! Values of binary rows, as text.

use std::io::Write;

use super::packet::{take, take_text};

/// Takes a value of type `kind` off `rest` and writes it as text. `None` when it is cut or of
/// unknown type.
pub(super) fn take_value(rest: &mut &[u8], kind: u8, unsigned: bool, text: &mut Vec<u8>) -> Option<()> {
    text.clear();
    match kind {
        0x01 => whole(i64::from(take(rest, 1)?[0] as i8), 8, unsigned, text),
        0x02 | 0x0d => whole(i64::from(i16::from_le_bytes(fixed(rest)?)), 16, unsigned, text),
        0x03 | 0x09 => whole(i64::from(i32::from_le_bytes(fixed(rest)?)), 32, unsigned, text),
        0x08 => whole(i64::from_le_bytes(fixed(rest)?), 64, unsigned, text),
        0x04 => write!(text, "{}", f32::from_le_bytes(fixed(rest)?)).ok()?,
        0x05 => write!(text, "{}", f64::from_le_bytes(fixed(rest)?)).ok()?,
        0x06 => (),
        0x07 | 0x0a | 0x0c => moment(rest, text)?,
        0x0b => time(rest, text)?,
        // Decimals, texts, bytes, bits, enumerations, sets, JSON and shapes.
        0x00 | 0x0f | 0x10 | 0xf5..=0xff => text.extend_from_slice(take_text(rest)?),
        _ => return None,
    }
    Some(())
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    take(rest, N)?.try_into().ok()
}

/// Writes a whole number whose `value` was read as signed.
fn whole(value: i64, bits: u32, unsigned: bool, text: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let digits =
        if unsigned { digits.format(value as u64 & (u64::MAX >> (64 - bits))) } else { digits.format(value) };
    text.extend_from_slice(digits.as_bytes());
}

/// A date, or a date and time.
fn moment(rest: &mut &[u8], text: &mut Vec<u8>) -> Option<()> {
    let mut bytes = [0; 11];
    let length = usize::from(take(rest, 1)?[0]);
    bytes.get_mut(..length)?.copy_from_slice(take(rest, length)?);
    let year = u16::from_le_bytes([bytes[0], bytes[1]]);
    write!(text, "{year:04}-{:02}-{:02}", bytes[2], bytes[3]).ok()?;
    if length > 4 {
        write!(text, " {:02}:{:02}:{:02}", bytes[4], bytes[5], bytes[6]).ok()?;
    }
    if length > 7 {
        write!(text, ".{:06}", u32::from_le_bytes([bytes[7], bytes[8], bytes[9], bytes[10]])).ok()?;
    }
    Some(())
}

/// A span of time.
fn time(rest: &mut &[u8], text: &mut Vec<u8>) -> Option<()> {
    let mut bytes = [0; 12];
    let length = usize::from(take(rest, 1)?[0]);
    bytes.get_mut(..length)?.copy_from_slice(take(rest, length)?);
    let days = u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
    let sign = if bytes[0] == 1 { "-" } else { "" };
    let hours = u64::from(days) * 24 + u64::from(bytes[5]);
    write!(text, "{sign}{hours:02}:{:02}:{:02}", bytes[6], bytes[7]).ok()?;
    if length > 8 {
        write!(text, ".{:06}", u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]])).ok()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], kind: u8, unsigned: bool) -> Option<String> {
        let (mut rest, mut text) = (bytes, Vec::new());
        take_value(&mut rest, kind, unsigned, &mut text)?;
        assert!(rest.is_empty());
        Some(String::from_utf8(text).unwrap())
    }

    #[test]
    fn binary_values_become_the_text_the_server_would_have_sent() {
        assert_eq!(text(&[0xff], 1, false).unwrap(), "-1");
        assert_eq!(text(&[0xff], 1, true).unwrap(), "255");
        assert_eq!(text(&(-5i32).to_le_bytes(), 3, false).unwrap(), "-5");
        assert_eq!(text(&[0xff; 8], 8, true).unwrap(), u64::MAX.to_string());
        assert_eq!(text(&2.5f64.to_le_bytes(), 5, false).unwrap(), "2.5");
        assert_eq!(text(b"\x0512.50", 0xf6, false).unwrap(), "12.50");
        assert_eq!(text(&[4, 0xe9, 7, 12, 31], 0x0a, false).unwrap(), "2025-12-31");
        assert_eq!(text(&[7, 0xe9, 7, 1, 2, 3, 4, 5], 0x0c, false).unwrap(), "2025-01-02 03:04:05");
        assert_eq!(text(&[8, 1, 1, 0, 0, 0, 2, 3, 4], 0x0b, false).unwrap(), "-26:03:04");
        assert_eq!(text(&[12, 0xe9], 0x0c, false), None);
        assert_eq!(text(&[1, 2], 8, false), None);
    }
}
