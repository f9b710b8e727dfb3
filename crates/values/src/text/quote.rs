//! Double quotes around the elements of arrays and the fields of records.

use crate::error::SqlError;
use crate::work;

/// Whether the readers of arrays, records and OIDs take a byte for white space.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Encloses the text from `start` on in double quotes. `escape` precedes a quote, a backslash
/// precedes a backslash.
///
/// The escapes double with each level of nesting. Without memory for them the text stays as it is.
pub(super) fn quote(start: usize, escape: u8, out: &mut Vec<u8>) -> Result<(), SqlError> {
    // The memory of the plain text and of its longest quoted form.
    if !runtime::work::affords(3 * (out.len() - start)) {
        return work::tick(0);
    }
    let plain = out.split_off(start);
    out.push(b'"');
    for piece in work::byte_pieces(&plain, 1) {
        for &byte in piece? {
            if byte == b'"' {
                out.push(escape);
            } else if byte == b'\\' {
                out.push(b'\\');
            }
            out.push(byte);
        }
    }
    out.push(b'"');
    Ok(())
}
