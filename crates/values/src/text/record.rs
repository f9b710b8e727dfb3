//! Records as text. Records have no text input yet.

use super::quote::{is_space, quote};
use crate::environment::Environment;
use crate::error::SqlError;
use crate::types::RecordRef;
use crate::work;

/// Appends a record as `(...)`.
pub(super) fn write(
    record: &RecordRef<'_>,
    session: &dyn Environment,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    out.push(b'(');
    for (index, (value, ty)) in record.fields.iter().zip(record.types).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if value.is_null() {
            continue;
        }
        let start = out.len();
        super::write(*value, *ty, session, out)?;
        let plain = &out[start..];
        let special = |byte| matches!(byte, b'"' | b'\\' | b'(' | b')' | b',') || is_space(byte);
        if plain.is_empty() || work::any(plain, special)? {
            quote(start, b'"', out)?;
        }
    }
    out.push(b')');
    Ok(())
}
