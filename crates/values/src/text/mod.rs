//! The text form of values: output and input exactly as by PostgreSQL's functions.
//!
//! What must hold:
//!
//! 1. A value's text reads back as an equal value under the same settings, with dates in ISO style.
//!    Floats do so only while `extra_float_digits` is above 0.
//! 2. The text depends on the value, its type and [`Environment::settings`]. OID alias types ask
//!    the session for names as well.
//! 3. A type that is read at once (`is_read_at_once`) needs nothing of the session but its
//!    settings. Its long texts are read beside the core, with a copy of these alone.
//! 4. The reader of any other type has safe points.
//! 5. Input ends with the type's modifier, applied as by an assignment.

use bumpalo::Bump;

pub mod alias;
mod array;
pub mod bytes;
pub mod datetime;
pub mod float;
pub mod integer;
mod interval;
mod quote;
mod record;
mod strtoul;

use alias::{parse_reg, write_oid};
use datetime::{
    parse_date, parse_time, parse_timestamp, parse_timestamptz, write_date, write_time, write_timestamp,
    write_timestamptz,
};
use integer::{parse_integer, write_i64};
use strtoul::{parse_oid, parse_vector};

use crate::environment::{Environment, NoSession};
use crate::error::{SqlError, SqlState, for_message};
use crate::identifier::truncate_name;
use crate::types::numeric::Numeric;
use crate::types::{ArrayRef, Datum, Interval, Type, interval as interval_type, modifier, oid, registry};
use crate::work;

/// Appends the value's text; nothing for NULL. Fails when an interrupt ends the statement while a
/// long value is written.
pub fn write(
    value: Datum<'_>,
    ty: Type,
    session: &dyn Environment,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    match value {
        Datum::Null => {}
        Datum::Int4(v) => write_i64(v.into(), out),
        Datum::Int8(v) => write_i64(v, out),
        Datum::Text(v) | Datum::Padded(v) => return work::put(v.as_bytes(), out),
        Datum::Bool(v) => out.push(if v { b't' } else { b'f' }),
        Datum::Char(v) => bytes::write_char(v, out),
        Datum::Int2(v) => write_i64(v.into(), out),
        Datum::Float4(v) => float::write_f32(v, session.settings().extra_float_digits, out),
        Datum::Float8(v) => float::write_f64(v, session.settings().extra_float_digits, out),
        Datum::Numeric(v) => v.write(out),
        Datum::Bytea(v) => return bytes::write_bytea(v, session.settings().bytea_escape, out),
        Datum::Date(v) => write_date(v, session.settings(), out),
        Datum::Time(v) => write_time(v, out),
        Datum::Timestamp(v) => write_timestamp(v, session.settings(), out),
        Datum::Timestamptz(v) => write_timestamptz(v, session.settings(), out),
        Datum::Interval(v) => v.write(session.settings().interval_style, out),
        Datum::Oid(v) => write_oid(v, ty.oid, session, out),
        Datum::Uuid(v) => bytes::write_uuid(v, out),
        Datum::Array(v) if matches!(ty.oid, oid::INT2VECTOR | oid::OIDVECTOR) => {
            for (index, element) in v.iter().enumerate() {
                if index > 0 {
                    out.push(b' ');
                }
                write_i64(element?.as_i64().unwrap_or(0), out);
            }
        }
        Datum::Array(v) => return array::write(v, session, out),
        Datum::OutOfLine(v) => v.unfetched(),
        Datum::Record(v) => return record::write(v, session, out),
    }
    Ok(())
}

/// Whether the reader of a type has no safe point. The text of such a type is short, except for
/// white space.
fn is_read_at_once(type_oid: u32) -> bool {
    matches!(
        type_oid,
        oid::BOOL
            | oid::FLOAT4
            | oid::FLOAT8
            | oid::NUMERIC
            | oid::DATE
            | oid::TIME
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::INTERVAL
            | oid::UUID
    )
}

/// As [`parse`], beside the core.
#[cold]
fn parse_long<'a>(
    text: &str,
    ty: Type,
    session: &dyn Environment,
    arena: &'a Bump,
) -> Result<Datum<'a>, SqlError> {
    let session = NoSession::with(session.settings().clone());
    let value = work::aside(text, move |text| {
        let arena = Bump::new();
        parse_at_once(text, ty, &session, &arena)?.to_value()
    });
    value?.datum().copy_in(arena)
}

/// 22P02: the text is no value of the type.
fn invalid_syntax(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {type_name}: \"{}\"", for_message(text)),
    )
}

/// 22003: the number is outside the type's range.
fn out_of_range(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("value \"{}\" is out of range for type {type_name}", for_message(text)),
    )
}

/// Reads a value of a type and applies its modifier as an assignment does: a text that is too long
/// is an error.
pub fn parse<'a>(
    text: &'a str,
    ty: Type,
    session: &dyn Environment,
    arena: &'a Bump,
) -> Result<Datum<'a>, SqlError> {
    if text.len() > work::LONG_INPUT && is_read_at_once(ty.oid) {
        return parse_long(text, ty, session, arena);
    }
    parse_at_once(text, ty, session, arena)
}

#[inline]
fn parse_at_once<'a>(
    text: &'a str,
    ty: Type,
    session: &dyn Environment,
    arena: &'a Bump,
) -> Result<Datum<'a>, SqlError> {
    let settings = || session.settings();
    let value = match ty.oid {
        oid::INT4 => Datum::Int4(parse_integer(text, "integer")? as i32),
        oid::INT8 => Datum::Int8(parse_integer(text, "bigint")?),
        oid::TEXT | oid::VARCHAR | oid::UNKNOWN | oid::CSTRING | oid::VOID => Datum::Text(text),
        oid::BPCHAR => Datum::Padded(text),
        oid::NAME => Datum::Text(truncate_name(text)),
        oid::INT2 => Datum::Int2(parse_integer(text, "smallint")? as i16),
        oid::BOOL => Datum::Bool(parse_bool(text)?),
        oid::FLOAT4 => Datum::Float4(float::parse_f32(text)?),
        oid::FLOAT8 => Datum::Float8(float::parse_f64(text)?),
        oid::NUMERIC => Datum::Numeric(parse_numeric(text)?.with_modifier(ty.modifier)?.store(arena)?),
        oid::CHAR => Datum::Char(bytes::parse_char(text)),
        oid::BYTEA => Datum::Bytea(work::bytes_in(&bytes::parse_bytea(text)?, arena)?),
        oid::DATE => Datum::Date(parse_date(text, settings())?),
        oid::TIME => Datum::Time(parse_time(text, settings())?),
        oid::TIMESTAMP => Datum::Timestamp(parse_timestamp(text, settings())?),
        oid::TIMESTAMPTZ => Datum::Timestamptz(parse_timestamptz(text, settings())?),
        oid::INTERVAL => {
            let fields = interval_type::fields::of(ty.modifier);
            Datum::Interval(Interval::parse(text, fields, settings().interval_style)?)
        }
        oid::UUID => Datum::Uuid(arena.alloc(bytes::parse_uuid(text)?)),
        oid::OID | oid::XID | oid::CID => Datum::Oid(parse_oid(text, registry::name(ty.oid))?),
        oid::REGCLASS | oid::REGTYPE | oid::REGNAMESPACE | oid::REGROLE | oid::REGPROC => {
            Datum::Oid(parse_reg(text, ty.oid, session)?)
        }
        oid::INT2VECTOR | oid::OIDVECTOR => parse_vector(text, ty.oid, arena)?,
        _ if registry::is_array(ty.oid) => {
            Datum::Array(ArrayRef(work::bytes_in(&array::parse(text, ty, session)?, arena)?))
        }
        oid::RECORD => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "input of anonymous composite types is not implemented",
            ));
        }
        _ => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("cannot accept a value of type {}", registry::name(ty.oid)),
            ));
        }
    };
    if ty.modifier < 0 || ty.oid == oid::NUMERIC {
        return Ok(value);
    }
    modifier::apply(value, ty, false, arena)
}

/// Reads a number; a long one beside the core, since the library's conversion has no safe point.
fn parse_numeric(text: &str) -> Result<Numeric, SqlError> {
    const LONG: usize = 16 * 1024;
    if text.len() <= LONG {
        return Numeric::parse(text);
    }
    work::aside(text, Numeric::parse)
}

/// Reads bool's spellings: unique prefixes of true, false, yes and no, and on, off, 1, 0.
pub fn parse_bool(text: &str) -> Result<bool, SqlError> {
    let lower = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b').to_ascii_lowercase();
    let prefix = |word: &str| !lower.is_empty() && word.starts_with(&lower);
    match lower.as_str() {
        "on" | "1" => Ok(true),
        "off" | "of" | "0" => Ok(false),
        _ if prefix("true") || prefix("yes") => Ok(true),
        _ if prefix("false") || prefix("no") => Ok(false),
        _ => Err(invalid_syntax("boolean", text)),
    }
}

/// The value's text as bytes.
pub fn to_bytes(value: Datum<'_>, ty: Type, session: &dyn Environment) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::new();
    write(value, ty, session, &mut out)?;
    Ok(out)
}
