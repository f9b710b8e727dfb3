//! Values from their bytes in keys, for types whose bytes lose nothing.
//!
//! What must hold: a decoded value is the one that was encoded, in each bit. So floats are no such
//! type (both zeros have the same bytes), nor are numerics (which lose their scale), nor texts of
//! padded length.

use bumpalo::Bump;

use super::{KeyOrder, VALUE};
use crate::types::{Datum, Type, oid};

/// Whether [`decode`] knows the values of a type.
pub fn is_decodable(type_: Type) -> bool {
    matches!(
        type_.oid,
        oid::BOOL
            | oid::CHAR
            | oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::OID
            | oid::DATE
            | oid::TIME
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::UUID
            | oid::TEXT
            | oid::VARCHAR
            | oid::NAME
            | oid::BYTEA
    )
}

/// The value of one column of a key. `None` if the bytes are not that of such a type. Long values
/// go to `memory`.
pub fn decode<'m>(column: &[u8], type_: Type, order: KeyOrder, memory: &'m Bump) -> Option<Datum<'m>> {
    let (mark, value) = column.split_first()?;
    if *mark != VALUE {
        return Some(Datum::Null);
    }
    let inverted = if order.descending { u8::MAX } else { 0 };
    Some(match type_.oid {
        oid::BOOL => Datum::Bool(value.first()? ^ inverted != 0),
        oid::CHAR => Datum::Char(value.first()? ^ inverted),
        oid::INT2 => Datum::Int2((u16::from_be_bytes(fixed(value, inverted)?) ^ 1 << 15) as i16),
        oid::INT4 => Datum::Int4(int4(value, inverted)?),
        oid::DATE => Datum::Date(int4(value, inverted)?),
        oid::OID => Datum::Oid(u32::from_be_bytes(fixed(value, inverted)?)),
        oid::INT8 => Datum::Int8(int8(value, inverted)?),
        oid::TIME => Datum::Time(int8(value, inverted)?),
        oid::TIMESTAMP => Datum::Timestamp(int8(value, inverted)?),
        oid::TIMESTAMPTZ => Datum::Timestamptz(int8(value, inverted)?),
        oid::UUID => Datum::Uuid(memory.alloc(fixed(value, inverted)?)),
        oid::TEXT | oid::VARCHAR | oid::NAME => {
            Datum::Text(std::str::from_utf8(bytes(value, inverted, memory)?).ok()?)
        }
        oid::BYTEA => Datum::Bytea(bytes(value, inverted, memory)?),
        _ => return None,
    })
}

/// The first bytes, turned back.
fn fixed<const LENGTH: usize>(value: &[u8], inverted: u8) -> Option<[u8; LENGTH]> {
    value.first_chunk().map(|bytes| bytes.map(|byte| byte ^ inverted))
}

fn int4(value: &[u8], inverted: u8) -> Option<i32> {
    Some((u32::from_be_bytes(fixed(value, inverted)?) ^ 1 << 31) as i32)
}

fn int8(value: &[u8], inverted: u8) -> Option<i64> {
    Some((u64::from_be_bytes(fixed(value, inverted)?) ^ 1 << 63) as i64)
}

/// Bytes without the two zeros at the end and without escapes. A key is short, so this needs no
/// safe point.
fn bytes<'m>(value: &[u8], inverted: u8, memory: &'m Bump) -> Option<&'m [u8]> {
    let value = value.get(..value.len().checked_sub(2)?)?;
    let into = memory.alloc_slice_fill_copy(value.len(), 0);
    let (mut length, mut was_zero) = (0, false);
    for byte in value.iter().map(|byte| byte ^ inverted) {
        // The byte behind a zero is its escape.
        if std::mem::take(&mut was_zero) {
            continue;
        }
        was_zero = byte == 0;
        into[length] = byte;
        length += 1;
    }
    Some(&into[..length])
}
