//! The binary format of PostgreSQL's protocol: writing and reading values, without the length word.
//!
//! What must hold:
//!
//! 1. A value that is written and read with its type is the same value, display scale included.
//!    Only records are never read.
//! 2. Reading takes exactly the given bytes: too few are 08P01, too many 22P03.
//! 3. A value that text could not give is refused, such as a date beyond the calendar or text that
//!    is not UTF-8.
//! 4. An array's number of elements is judged against the bytes that are there before anything is
//!    built. So a short message cannot ask for much memory.
//! 5. The type's modifier is applied as by an assignment.

use std::cmp::Ordering;

use bumpalo::Bump;

mod numeric;

use crate::encoding::valid_text;
use crate::error::{SqlError, SqlState};
use crate::identifier::truncate_name;
use crate::types::numeric::Numeric;
use crate::types::{ArrayBuilder, ArrayRef, Datum, Interval, Type, datetime, modifier, oid, registry};
use crate::work;

/// Appends the value's bytes; nothing for NULL. Fails when an interrupt ends the statement while a
/// long value is written.
pub fn write(value: Datum<'_>, _type: Type, out: &mut Vec<u8>) -> Result<(), SqlError> {
    match value {
        Datum::Null => {}
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) => {
            out.extend_from_slice(&v.to_be_bytes());
        }
        Datum::Text(v) | Datum::Padded(v) => return work::put(v.as_bytes(), out),
        Datum::Bool(v) => out.push(u8::from(v)),
        Datum::Char(v) => out.push(v),
        Datum::Int2(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Float4(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Numeric(v) => v.write_binary(out),
        Datum::Bytea(v) => return work::put(v, out),
        Datum::Interval(v) => {
            out.extend_from_slice(&v.micros.to_be_bytes());
            out.extend_from_slice(&v.days.to_be_bytes());
            out.extend_from_slice(&v.months.to_be_bytes());
        }
        Datum::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Uuid(v) => out.extend_from_slice(v),
        Datum::Array(v) => return write_array(v, out),
        Datum::OutOfLine(v) => v.unfetched(),
        Datum::Record(v) => {
            out.extend_from_slice(&(v.fields.len() as i32).to_be_bytes());
            for (field, ty) in v.fields.iter().zip(v.types) {
                out.extend_from_slice(&ty.oid.to_be_bytes());
                write_sized(*field, *ty, out)?;
            }
        }
    }
    Ok(())
}

/// Appends the length word and the value's bytes; the length of NULL is -1.
fn write_sized(value: Datum<'_>, ty: Type, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if value.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(value, ty, out)?;
    let length = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn write_array(array: ArrayRef<'_>, out: &mut Vec<u8>) -> Result<(), SqlError> {
    let mut has_null = false;
    for value in array.iter() {
        has_null |= value?.is_null();
    }
    out.extend_from_slice(&(array.dimensions() as i32).to_be_bytes());
    out.extend_from_slice(&i32::from(has_null).to_be_bytes());
    out.extend_from_slice(&array.element_type().to_be_bytes());
    for (length, lower) in (0..array.dimensions()).filter_map(|index| array.dimension(index)) {
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&lower.to_be_bytes());
    }
    for value in array.iter() {
        write_sized(value?, Type::new(array.element_type()), out)?;
    }
    Ok(())
}

fn bad_length() -> SqlError {
    SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
}

/// 08P01: the message ends before the value does.
fn too_short() -> SqlError {
    SqlError::new(SqlState::PROTOCOL_VIOLATION, "insufficient data left in message")
}

/// Fails unless `bytes` has exactly `length` bytes: 08P01 when it is shorter, 22P03 when longer.
fn of_length(bytes: &[u8], length: usize) -> Result<(), SqlError> {
    match bytes.len().cmp(&length) {
        Ordering::Less => Err(too_short()),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(bad_length()),
    }
}

fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N], SqlError> {
    of_length(bytes, N)?;
    bytes.try_into().map_err(|_| bad_length())
}

/// Reads a value of type `ty` and applies the type's modifier. The result borrows `bytes` where it
/// can.
pub fn parse<'a>(bytes: &'a [u8], ty: Type, arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
    let int8 = || exact(bytes).map(i64::from_be_bytes);
    let value = match ty.oid {
        oid::INT4 => Datum::Int4(i32::from_be_bytes(exact(bytes)?)),
        oid::INT8 => Datum::Int8(int8()?),
        oid::TEXT | oid::VARCHAR | oid::UNKNOWN | oid::CSTRING => Datum::Text(valid_text(bytes)?),
        oid::BPCHAR => Datum::Padded(valid_text(bytes)?),
        oid::NAME => Datum::Text(truncate_name(valid_text(bytes)?)),
        oid::BOOL => Datum::Bool(exact::<1>(bytes)?[0] != 0),
        oid::CHAR => Datum::Char(exact::<1>(bytes)?[0]),
        oid::INT2 => Datum::Int2(i16::from_be_bytes(exact(bytes)?)),
        oid::FLOAT4 => Datum::Float4(f32::from_be_bytes(exact(bytes)?)),
        oid::FLOAT8 => Datum::Float8(f64::from_be_bytes(exact(bytes)?)),
        oid::NUMERIC => {
            Datum::Numeric(Numeric::parse_binary(bytes)?.with_modifier(ty.modifier)?.store(arena)?)
        }
        oid::BYTEA => Datum::Bytea(bytes),
        oid::DATE => Datum::Date(match i32::from_be_bytes(exact(bytes)?) {
            infinite @ (i32::MIN | i32::MAX) => infinite,
            days => datetime::checked_date(days.into())?,
        }),
        oid::TIME => {
            let outside = || SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "time out of range");
            let micros = Some(int8()?).filter(|micros| (0..=datetime::DAY).contains(micros));
            Datum::Time(micros.ok_or_else(outside)?)
        }
        oid::TIMESTAMP => Datum::Timestamp(checked(int8()?)?),
        oid::TIMESTAMPTZ => Datum::Timestamptz(checked(int8()?)?),
        oid::INTERVAL => {
            let [micros @ .., _, _, _, _, _, _, _, _] = exact::<16>(bytes)?;
            let rest = &bytes[8..];
            Datum::Interval(Interval {
                micros: i64::from_be_bytes(micros),
                days: i32::from_be_bytes(exact(&rest[..4])?),
                months: i32::from_be_bytes(exact(&rest[4..])?),
            })
        }
        oid::UUID => {
            of_length(bytes, 16)?;
            Datum::Uuid(bytes.try_into().map_err(|_| bad_length())?)
        }
        oid::OID
        | oid::XID
        | oid::CID
        | oid::REGCLASS
        | oid::REGTYPE
        | oid::REGPROC
        | oid::REGNAMESPACE
        | oid::REGROLE => Datum::Oid(u32::from_be_bytes(exact(bytes)?)),
        oid::VOID => Datum::Text(""),
        _ if registry::is_array(ty.oid) => parse_array(bytes, ty, arena)?,
        _ => {
            return Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("no binary input function available for type {ty}"),
            ));
        }
    };
    if ty.modifier < 0 || ty.oid == oid::NUMERIC {
        return Ok(value);
    }
    modifier::apply(value, ty, false, arena)
}

fn checked(micros: i64) -> Result<i64, SqlError> {
    if datetime::is_infinite(micros) { Ok(micros) } else { datetime::checked_timestamp(Some(micros)) }
}

fn parse_array<'a>(bytes: &'a [u8], ty: Type, arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
    let mut rest = bytes;
    let mut word = || -> Result<i32, SqlError> {
        let (head, tail) = rest.split_first_chunk().ok_or_else(too_short)?;
        rest = tail;
        Ok(i32::from_be_bytes(*head))
    };
    let count = word()?;
    word()?;
    let element = Type::with_modifier(word()? as u32, ty.modifier);
    if !(0..=6).contains(&count) {
        return Err(bad_length());
    }
    if Some(element.oid) != registry::element_of(ty.oid) {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "binary data has array element type {} ({}) instead of expected {} ({})",
                element.oid,
                Type::new(element.oid),
                registry::element_of(ty.oid).unwrap_or(0),
                Type::new(registry::element_of(ty.oid).unwrap_or(0))
            ),
        ));
    }
    let mut dimensions = Vec::new();
    for _ in 0..count {
        let (length, lower) = (word()?, word()?);
        if length < 0 {
            return Err(bad_length());
        }
        dimensions.push((length, lower));
    }
    let total = dimensions
        .iter()
        .try_fold(i64::from(count > 0), |total, (length, _)| total.checked_mul(i64::from(*length)));
    let total = total.filter(|total| *total <= rest.len() as i64 / 4).ok_or_else(too_short)?;
    let mut builder = ArrayBuilder::new(element.oid);
    for _ in 0..total {
        let (head, tail) = rest.split_first_chunk().ok_or_else(bad_length)?;
        let length = i32::from_be_bytes(*head);
        rest = tail;
        if length < 0 {
            builder.push(Datum::Null)?;
            continue;
        }
        let (value, tail) = rest.split_at_checked(length as usize).ok_or_else(bad_length)?;
        builder.push(parse(value, element, arena)?)?;
        work::tick(16)?;
        rest = tail;
    }
    if !rest.is_empty() {
        return Err(bad_length());
    }
    let dimensions = if total == 0 { Vec::new() } else { dimensions };
    builder.array_with_in(&dimensions, arena)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_length_is_refused() {
        let array = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5];
        let empty = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23];
        let infinite = [0, 0, 0, 0, 0xd0, 0, 0, 32];
        let whole: [(u32, &[u8]); 6] = [
            (oid::INT2, &[0, 1]),
            (oid::UUID, &[7; 16]),
            (oid::INT4_ARRAY, &array),
            (oid::INT4_ARRAY, &empty),
            (oid::NUMERIC, &infinite),
            (oid::NUMERIC, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 3]),
        ];
        let arena = Bump::new();
        let code = |bytes: &[u8], oid: u32| {
            let bytes = arena.alloc_slice_copy(bytes);
            parse(bytes, Type::new(oid), &arena).err().map(|error| error.code)
        };
        for (type_, bytes) in whole {
            assert_eq!(code(bytes, type_), None, "{type_}");
            let longer = [bytes, &[0]].concat();
            assert_eq!(code(&longer, type_), Some(SqlState::INVALID_BINARY_REPRESENTATION), "{type_}");
        }
        for (type_, bytes) in whole.iter().filter(|(type_, _)| *type_ != oid::INT4_ARRAY) {
            let shorter = &bytes[..bytes.len() - 1];
            assert_eq!(code(shorter, *type_), Some(SqlState::PROTOCOL_VIOLATION), "{type_}");
        }
        let mut out = Vec::new();
        let value = parse(&infinite, Type::new(oid::NUMERIC), &arena).unwrap();
        write(value, Type::new(oid::NUMERIC), &mut out).unwrap();
        assert_eq!(out, infinite);
    }
}
