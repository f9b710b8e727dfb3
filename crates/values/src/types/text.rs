//! Values as text, in and out, exactly as in PostgreSQL's input and output functions.

use bumpalo::Bump;

use super::datetime::{
    parse_date, parse_time, parse_timestamp, parse_timestamptz, write_date, write_time, write_timestamp,
    write_timestamptz,
};
use super::numeric::Numeric;
use super::oid_text::{parse_oid, parse_vector};
use super::{ArrayRef, Datum, Interval, Type, array_text, bytes, float, oid, registry};
use crate::environment::{Environment, NoSession};
use crate::error::{SqlError, SqlState, for_message};
use crate::identifier;

/// Appends the value's text (nothing for NULL). Fails when the statement is interrupted while a
/// long one is written.
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
        Datum::Text(v) | Datum::Padded(v) => return crate::work::put(v.as_bytes(), out),
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
        Datum::Array(v) => return array_text::write(v, session, out),
        Datum::Wide(v) => v.unfetched(),
        Datum::Record(v) => return array_text::write_record(v, session, out),
    }
    Ok(())
}

/// Appends an integer's digits.
#[inline]
pub fn write_i64(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn write_oid(value: u32, type_oid: u32, session: &dyn Environment, out: &mut Vec<u8>) {
    let name = match type_oid {
        oid::OID | oid::XID | oid::CID => None,
        _ if value == 0 => Some("-".to_owned()),
        oid::REGCLASS => session.class_name(value),
        oid::REGTYPE => registry::info(value).map(|_| registry::format_type(Type::new(value))),
        oid::REGNAMESPACE => session.schema_name(value),
        oid::REGROLE => session.role_name(value),
        oid::REGPROC => session.function_name(value).map(str::to_owned),
        _ => None,
    };
    match name {
        Some(name) => out.extend_from_slice(name.as_bytes()),
        None => write_i64(value.into(), out),
    }
}

/// Whether values of a type are read from their text without a safe point: their text is short, but
/// for white space.
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
    let value = crate::work::aside(text, move |text| {
        let arena = Bump::new();
        parse_at_once(text, ty, &session, &arena)?.to_value()
    });
    value?.datum().copy_in(arena)
}

/// 22P02: the text is no value of the type.
pub fn invalid_syntax(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {type_name}: \"{}\"", for_message(text)),
    )
}

/// 22003: the number is too big for the type.
pub fn out_of_range(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("value \"{}\" is out of range for type {type_name}", for_message(text)),
    )
}

/// Reads a value of a type; applies its modifier as an assignment does (too long text is an error).
pub fn parse<'a>(
    text: &'a str,
    ty: Type,
    session: &dyn Environment,
    arena: &'a Bump,
) -> Result<Datum<'a>, SqlError> {
    if text.len() > crate::work::LONG_INPUT && is_read_at_once(ty.oid) {
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
        oid::BYTEA => Datum::Bytea(crate::work::bytes_in(&bytes::parse_bytea(text)?, arena)?),
        oid::DATE => Datum::Date(parse_date(text, settings())?),
        oid::TIME => Datum::Time(parse_time(text, settings())?),
        oid::TIMESTAMP => Datum::Timestamp(parse_timestamp(text, settings())?),
        oid::TIMESTAMPTZ => Datum::Timestamptz(parse_timestamptz(text, settings())?),
        oid::INTERVAL => {
            let fields = super::interval::fields::of(ty.modifier);
            Datum::Interval(Interval::parse(text, fields, settings().interval_style)?)
        }
        oid::UUID => Datum::Uuid(arena.alloc(bytes::parse_uuid(text)?)),
        oid::OID | oid::XID | oid::CID => Datum::Oid(parse_oid(text, registry::name(ty.oid))?),
        oid::REGCLASS | oid::REGTYPE | oid::REGNAMESPACE | oid::REGROLE | oid::REGPROC => {
            Datum::Oid(parse_reg(text, ty.oid, session)?)
        }
        oid::INT2VECTOR | oid::OIDVECTOR => parse_vector(text, ty.oid, arena)?,
        _ if registry::is_array(ty.oid) => {
            Datum::Array(ArrayRef(crate::work::bytes_in(&array_text::parse(text, ty, session)?, arena)?))
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
    super::length::apply(value, ty, false, arena)
}

/// A number; a long one is read beside the core, since the library's conversion has no safe point.
fn parse_numeric(text: &str) -> Result<Numeric, SqlError> {
    const LONG: usize = 16 * 1024;
    if text.len() <= LONG {
        return Numeric::parse(text);
    }
    crate::work::aside(text, Numeric::parse)
}

/// `name` holds 63 bytes.
pub fn truncate_name(text: &str) -> &str {
    let mut end = text.len().min(63);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The value of a text of decimal digits, perhaps after a minus; `None` if there are too many to be
/// sure that they fit.
#[inline]
fn plain_integer(text: &[u8]) -> Option<i64> {
    const MOST: usize = 18;
    let (negative, digits) = match text.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > MOST {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// Reads an integer for one of the three widths, named as the message names them.
pub fn parse_integer(text: &str, type_name: &'static str) -> Result<i64, SqlError> {
    let (least, greatest) = match type_name {
        "smallint" => (i64::from(i16::MIN), i64::from(i16::MAX)),
        "integer" => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    if let Some(value) = plain_integer(text.as_bytes()) {
        return match (least..=greatest).contains(&value) {
            true => Ok(value),
            false => Err(out_of_range(type_name, text)),
        };
    }
    let read = move |text: &str| unusual_integer(text, type_name, (least, greatest));
    if text.len() > crate::work::LONG_INPUT { crate::work::aside(text, read) } else { read(text) }
}

/// An integer with white space, a base or underscores.
fn unusual_integer(text: &str, type_name: &str, (least, greatest): (i64, i64)) -> Result<i64, SqlError> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, digits),
    };
    let mut magnitude: i128 = 0;
    let mut previous_digit = radix != 10;
    for (index, byte) in digits.bytes().enumerate() {
        if byte == b'_' && previous_digit && index + 1 < digits.len() {
            previous_digit = false;
            continue;
        }
        let Some(digit) = char::from(byte).to_digit(radix) else {
            return Err(invalid_syntax(type_name, text));
        };
        // PostgreSQL reads no further than to a digit that is too many, whatever follows.
        if magnitude > (i128::from(greatest) + 1) / i128::from(radix) {
            return Err(out_of_range(type_name, text));
        }
        previous_digit = true;
        // Stays far beyond every range once it is there, without overflowing.
        magnitude = (magnitude * i128::from(radix) + i128::from(digit)).min(1 << 100);
    }
    if digits.is_empty() || !previous_digit {
        return Err(invalid_syntax(type_name, text));
    }
    let value = if negative { -magnitude } else { magnitude };
    i64::try_from(value)
        .ok()
        .filter(|value| (least..=greatest).contains(value))
        .ok_or_else(|| out_of_range(type_name, text))
}

/// Reads bool's spellings: unique prefixes of true, false, yes, no, and on, off, 1, 0.
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

/// The name inside an OID alias type's text: unquoted, folded.
fn parse_reg(text: &str, type_oid: u32, session: &dyn Environment) -> Result<u32, SqlError> {
    let name = for_message(text);
    if name == "-" {
        return Ok(0);
    }
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) {
        return parse_oid(name, "oid");
    }
    let absent =
        |what: &str, code, name: &str| SqlError::new(code, format!("{what} \"{name}\" does not exist"));
    match type_oid {
        oid::REGCLASS => named_class(name, session),
        oid::REGNAMESPACE => {
            let name = bare_name(name)?;
            session.schema_oid(&name).ok_or_else(|| absent("schema", SqlState::INVALID_SCHEMA_NAME, &name))
        }
        oid::REGROLE => {
            let name = bare_name(name)?;
            session.role_oid(&name).ok_or_else(|| absent("role", SqlState::UNDEFINED_OBJECT, &name))
        }
        oid::REGPROC => {
            let plain = unquote(name.strip_prefix("pg_catalog.").unwrap_or(name));
            session.function_oid(&plain).ok_or_else(|| absent("function", SqlState::UNDEFINED_FUNCTION, name))
        }
        _ => session.type_oid(name),
    }
}

/// The relation that a text names, never by a number.
pub fn named_class(text: &str, session: &dyn Environment) -> Result<u32, SqlError> {
    let names = qualified_name(text, session)?;
    session.class_oid(&names).ok_or_else(|| {
        let message = format!("relation \"{}\" does not exist", names.join("."));
        SqlError::new(SqlState::UNDEFINED_TABLE, message)
    })
}

/// The parts of a relation's name.
pub fn qualified_name(text: &str, session: &dyn Environment) -> Result<Vec<String>, SqlError> {
    let names = identifier::split(for_message(text), '.').filter(|names| !names.is_empty());
    let names = names.ok_or_else(invalid_name)?;
    let shown = || names.join(".");
    match names.as_slice() {
        [database, _, _] if *database != session.current_database() => {
            let message = format!("cross-database references are not implemented: \"{}\"", shown());
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
        [_, _, _, _, ..] => {
            let message = format!("improper relation name (too many dotted names): {}", shown());
            Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
        }
        _ => Ok(names),
    }
}

/// The name of what belongs to no schema.
fn bare_name(text: &str) -> Result<String, SqlError> {
    match identifier::split(text, '.').map(<[String; 1]>::try_from) {
        Some(Ok([name])) => Ok(name),
        _ => Err(invalid_name()),
    }
}

#[cold]
fn invalid_name() -> SqlError {
    SqlError::new(SqlState::INVALID_NAME, "invalid name syntax")
}

fn unquote(name: &str) -> String {
    match name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => name.to_lowercase(),
    }
}

/// The value's text as bytes.
pub fn to_bytes(value: Datum<'_>, ty: Type, session: &dyn Environment) -> Result<Vec<u8>, SqlError> {
    let mut out = Vec::new();
    write(value, ty, session, &mut out)?;
    Ok(out)
}
