//! Access to arguments in the representation that the signature declares, and construction of
//! results.
//!
//! A datum of another representation is a bug: XX000.

use bumpalo::Bump;

use super::bad_argument;
use values::error::{SqlError, SqlState, for_message};
use values::types::numeric::Numeric;
use values::types::{ArrayRef, Datum, Interval};

type Result<T> = std::result::Result<T, SqlError>;

/// A text of any type.
pub(super) fn text<'a>(value: Datum<'a>) -> Result<&'a str> {
    match value {
        Datum::Text(value) | Datum::Padded(value) => Ok(value),
        _ => Err(bad_argument("(text)")),
    }
}

/// A text that names an object, cut to the length of a message: no name is longer.
pub(super) fn name<'a>(value: Datum<'a>) -> Result<&'a str> {
    text(value).map(for_message)
}

/// An integer of any width, or an OID.
pub(super) fn int(value: Datum<'_>) -> Result<i64> {
    value.as_i64().ok_or_else(|| bad_argument("(integer)"))
}

/// Any number, as float8.
pub(super) fn float(value: Datum<'_>) -> Result<f64> {
    as_float(value).ok_or_else(|| bad_argument("(float8)"))
}

/// Any number as float8; None for another value.
pub(super) fn as_float(value: Datum<'_>) -> Option<f64> {
    Some(match value {
        Datum::Float4(v) => v.into(),
        Datum::Float8(v) => v,
        Datum::Numeric(v) => v.load().to_f64(),
        other => other.as_i64()? as f64,
    })
}

/// A numeric, unpacked.
pub(super) fn numeric(value: Datum<'_>) -> Result<Numeric> {
    match value {
        Datum::Numeric(value) => Ok(value.load()),
        other => other.as_i64().map(Numeric::from).ok_or_else(|| bad_argument("(numeric)")),
    }
}

/// A bytea.
pub(super) fn bytes<'a>(value: Datum<'a>) -> Result<&'a [u8]> {
    match value {
        Datum::Bytea(value) => Ok(value),
        _ => Err(bad_argument("(bytea)")),
    }
}

/// A bool.
pub(super) fn boolean(value: Datum<'_>) -> Result<bool> {
    match value {
        Datum::Bool(value) => Ok(value),
        _ => Err(bad_argument("(bool)")),
    }
}

/// Any array.
pub(super) fn array<'a>(value: Datum<'a>) -> Result<ArrayRef<'a>> {
    match value {
        Datum::Array(value) => Ok(value),
        _ => Err(bad_argument("(array)")),
    }
}

/// An interval.
pub(super) fn interval(value: Datum<'_>) -> Result<Interval> {
    match value {
        Datum::Interval(value) => Ok(value),
        _ => Err(bad_argument("(interval)")),
    }
}

/// A text result.
pub(super) fn give_text<'a>(text: &str, arena: &'a Bump) -> Result<Datum<'a>> {
    values::work::text_in(text, arena).map(Datum::Text)
}

/// A numeric result.
pub(super) fn give_numeric<'a>(number: &Numeric, arena: &'a Bump) -> Result<Datum<'a>> {
    Ok(Datum::Numeric(number.store(arena)?))
}

/// 22003: the value is outside the integer type that `name` names.
#[cold]
pub(super) fn out_of_range(name: &str) -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"))
}

/// 22023: a parameter is invalid.
#[cold]
pub(super) fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}
