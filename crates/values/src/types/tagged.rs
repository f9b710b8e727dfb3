//! Values with a tag for their representation: the form of an array's elements and of the rows that
//! a statement keeps.
//!
//! What must hold:
//!
//! 1. Arrays lie in stored rows in this form. A tag keeps its number and its layout, or the folder
//!    has another format (docs/formats.md).
//! 2. A value reads back with the representation that it was written with. Other bytes are an error
//!    and no panic.
//! 3. Only the deep form holds a record. The plain one makes NULL of it, since no array has
//!    records.
//! 4. The length of a value is a `u32`, so no function may make a longer one.
//! 5. Values that have no order compare by their tags, so the tags of two representations differ.

use bumpalo::Bump;

use super::{ArrayRef, Datum, Interval, NumericRef, RecordRef, Type};
use crate::encoding::utf8;
use crate::error::SqlError;
use crate::work;

/// The tag of a text.
const TEXT: u8 = 9;
/// The tag of a bpchar.
const PADDED: u8 = 19;
/// The tag of a record, which only [`write_deep`] writes. The number of fields (u32) follows, then
/// for each field its type's OID (u32), its modifier (i32) and its value.
const RECORD: u8 = 20;

/// Appends a value; a record with its fields.
#[inline]
pub fn write_deep(value: Datum<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let Datum::Record(record) = value else { return write(value, out) };
    out.push(RECORD);
    out.extend_from_slice(&(record.fields.len() as u32).to_le_bytes());
    for (type_, field) in record.types.iter().zip(record.fields) {
        out.extend_from_slice(&type_.oid.to_le_bytes());
        out.extend_from_slice(&type_.modifier.to_le_bytes());
        write_deep(*field, out)?;
    }
    Ok(())
}

/// Takes a value off the front, as [`write_deep`] wrote it. A record's fields go into the arena.
#[inline]
pub fn read_deep<'a>(bytes: &mut &'a [u8], arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
    if bytes.first() != Some(&RECORD) {
        return read(bytes);
    }
    let [_, count @ ..] = *take::<5>(bytes).ok_or_else(damaged)?;
    let count = u32::from_le_bytes(count) as usize;
    let types = arena.alloc_slice_fill_copy(count, Type::new(0));
    let fields = arena.alloc_slice_fill_copy(count, Datum::Null);
    for (type_, field) in types.iter_mut().zip(&mut *fields) {
        let oid = u32::from_le_bytes(*take(bytes).ok_or_else(damaged)?);
        *type_ = Type::with_modifier(oid, i32::from_le_bytes(*take(bytes).ok_or_else(damaged)?));
        *field = read_deep(bytes, arena)?;
    }
    Ok(Datum::Record(arena.alloc(RecordRef { types, fields })))
}

/// The tag of a value's representation.
pub fn tag(value: Datum<'_>) -> u8 {
    match value {
        Datum::Null => 0,
        Datum::Bool(_) => 1,
        Datum::Char(_) => 2,
        Datum::Int2(_) => 3,
        Datum::Int4(_) => 4,
        Datum::Int8(_) => 5,
        Datum::Float4(_) => 6,
        Datum::Float8(_) => 7,
        Datum::Numeric(_) => 8,
        Datum::Text(_) => TEXT,
        Datum::Bytea(_) => 10,
        Datum::Date(_) => 11,
        Datum::Time(_) => 12,
        Datum::Timestamp(_) => 13,
        Datum::Timestamptz(_) => 14,
        Datum::Interval(_) => 15,
        Datum::Oid(_) => 16,
        Datum::Uuid(_) => 17,
        Datum::Array(_) => 18,
        Datum::Padded(_) => PADDED,
        Datum::Record(_) => RECORD,
        Datum::OutOfLine(v) => v.unfetched(),
    }
}

/// Appends a value. A record becomes NULL: arrays of records do not exist. Fails when an interrupt
/// ends the statement while a long value is copied.
pub fn write(value: Datum<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match value {
        Datum::Null | Datum::Record(_) => out.push(0),
        Datum::Bool(v) => fixed(1, [u8::from(v)], out),
        Datum::Char(v) => fixed(2, [v], out),
        Datum::Int2(v) => fixed(3, v.to_le_bytes(), out),
        Datum::Int4(v) => fixed(4, v.to_le_bytes(), out),
        Datum::Int8(v) => fixed(5, v.to_le_bytes(), out),
        Datum::Float4(v) => fixed(6, v.to_le_bytes(), out),
        Datum::Float8(v) => fixed(7, v.to_le_bytes(), out),
        Datum::Numeric(v) => return variable(8, v.0, out),
        Datum::Text(v) => return variable(TEXT, v.as_bytes(), out),
        Datum::Padded(v) => return variable(PADDED, v.as_bytes(), out),
        Datum::Bytea(v) => return variable(10, v, out),
        Datum::Date(v) => fixed(11, v.to_le_bytes(), out),
        Datum::Time(v) => fixed(12, v.to_le_bytes(), out),
        Datum::Timestamp(v) => fixed(13, v.to_le_bytes(), out),
        Datum::Timestamptz(v) => fixed(14, v.to_le_bytes(), out),
        Datum::Interval(v) => {
            fixed(15, v.micros.to_le_bytes(), out);
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.months.to_le_bytes());
        }
        Datum::Oid(v) => fixed(16, v.to_le_bytes(), out),
        Datum::Uuid(v) => fixed(17, *v, out),
        Datum::Array(v) => return variable(18, v.0, out),
        Datum::OutOfLine(v) => v.unfetched(),
    }
    Ok(())
}

#[inline(always)]
fn fixed<const N: usize>(tag: u8, bytes: [u8; N], out: &mut Vec<u8>) {
    out.reserve(1 + N);
    out.push(tag);
    out.extend_from_slice(&bytes);
}

fn variable(tag: u8, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), SqlError> {
    let [a, b, c, d] = (bytes.len() as u32).to_le_bytes();
    out.reserve(5 + bytes.len());
    out.extend_from_slice(&[tag, a, b, c, d]);
    work::put(bytes, out)
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(head)
}

fn take_variable<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(*take(bytes)?) as usize;
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
}

/// Takes a value off the front, as [`write()`] wrote it. Fails when an interrupt ends the statement
/// while a long value is read.
pub fn read<'a>(bytes: &mut &'a [u8]) -> Result<Datum<'a>, SqlError> {
    let tag = bytes.first().copied();
    if let Some(tag @ (TEXT | PADDED)) = tag {
        *bytes = &bytes[1..];
        let text = utf8(take_variable(bytes).ok_or_else(damaged)?)?;
        return Ok(if tag == TEXT { Datum::Text(text) } else { Datum::Padded(text) });
    }
    read_other(bytes).ok_or_else(damaged)
}

#[cold]
fn damaged() -> SqlError {
    SqlError::internal("a kept value that cannot be read")
}

/// As [`read`], for values other than text; None when [`write()`] did not make the bytes.
#[inline(always)]
fn read_other<'a>(bytes: &mut &'a [u8]) -> Option<Datum<'a>> {
    let [tag] = *take(bytes)?;
    Some(match tag {
        0 => Datum::Null,
        1 => Datum::Bool(take::<1>(bytes)?[0] != 0),
        2 => Datum::Char(take::<1>(bytes)?[0]),
        3 => Datum::Int2(i16::from_le_bytes(*take(bytes)?)),
        4 => Datum::Int4(i32::from_le_bytes(*take(bytes)?)),
        5 => Datum::Int8(i64::from_le_bytes(*take(bytes)?)),
        6 => Datum::Float4(f32::from_le_bytes(*take(bytes)?)),
        7 => Datum::Float8(f64::from_le_bytes(*take(bytes)?)),
        8 => Datum::Numeric(NumericRef(take_variable(bytes)?)),
        10 => Datum::Bytea(take_variable(bytes)?),
        11 => Datum::Date(i32::from_le_bytes(*take(bytes)?)),
        12 => Datum::Time(i64::from_le_bytes(*take(bytes)?)),
        13 => Datum::Timestamp(i64::from_le_bytes(*take(bytes)?)),
        14 => Datum::Timestamptz(i64::from_le_bytes(*take(bytes)?)),
        15 => Datum::Interval(Interval {
            micros: i64::from_le_bytes(*take(bytes)?),
            days: i32::from_le_bytes(*take(bytes)?),
            months: i32::from_le_bytes(*take(bytes)?),
        }),
        16 => Datum::Oid(u32::from_le_bytes(*take(bytes)?)),
        17 => Datum::Uuid(take(bytes)?),
        18 => Datum::Array(ArrayRef(take_variable(bytes)?)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_with_its_fields() {
        let inner = RecordRef { types: &[Type::BOOL], fields: &[Datum::Bool(true)] };
        let types = [Type::INT4, Type::with_modifier(Type::VARCHAR.oid, 14), Type::RECORD];
        let fields = [Datum::Int4(-3), Datum::Null, Datum::Record(&inner)];
        let mut bytes = Vec::new();
        write_deep(Datum::Record(&RecordRef { types: &types, fields: &fields }), &mut bytes).unwrap();
        write_deep(Datum::Padded("after"), &mut bytes).unwrap();
        let arena = Bump::new();
        let mut rest = bytes.as_slice();
        let Ok(Datum::Record(record)) = read_deep(&mut rest, &arena) else { panic!("no record") };
        assert_eq!(record.types, types);
        assert!(matches!(
            record.fields,
            [Datum::Int4(-3), Datum::Null, Datum::Record(RecordRef { fields: [Datum::Bool(true)], .. })]
        ));
        assert!(matches!(read_deep(&mut rest, &arena), Ok(Datum::Padded("after"))));
        assert!(rest.is_empty() && read_deep(&mut rest, &arena).is_err());
        for short in 0..bytes.len() - 10 {
            assert!(read_deep(&mut &bytes[..short], &arena).is_err());
        }
    }
}
