//! The order of values: the meaning of `<` and `=` for each type, which sorting, grouping and keys
//! follow.
//!
//! What must hold:
//!
//! 1. The order is total for the values of one type, NULL and NaN included. Sorting and merging
//!    rest on it.
//! 2. It is the order of the bytes that `key::encode` makes of the same values. So a range of an
//!    index holds exactly the rows that the comparison accepts.
//! 3. Equal values may have different bytes in a row: numerics of several scales, both zeros of a
//!    float, intervals of one length, padded texts. Only keys make them equal.
//! 4. Values that an operator compares across representations compare by value: integers of all
//!    widths, floats of both, a date with a timestamp.
//! 5. Long values are compared in pieces with safe points, so callers hold no borrow of the core's
//!    state.

use std::cmp::Ordering;

use super::{ArrayRef, Datum, tagged};
use crate::error::SqlError;
use crate::work;

/// float8's order: NaN equals itself and is greater than everything else; the zeros are equal.
#[inline]
pub(crate) fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// The order of two values of one type.
///
/// NULLs are equal to each other and come last. Text compares by bytes (C collation), bpchar
/// without its trailing blanks. Values of different integer or text representations compare by
/// value.
///
/// # Errors
/// An interrupt may end the statement while long values are compared.
pub fn compare(left: Datum<'_>, right: Datum<'_>) -> Result<Ordering, SqlError> {
    Ok(match (left, right) {
        (Datum::Int4(a), Datum::Int4(b)) => a.cmp(&b),
        (Datum::Int8(a), Datum::Int8(b)) => a.cmp(&b),
        (Datum::Text(a), Datum::Text(b)) => work::compare(a.as_bytes(), b.as_bytes())?,
        (Datum::Padded(a), Datum::Padded(b)) => {
            work::compare(unpadded(a).as_bytes(), unpadded(b).as_bytes())?
        }
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Greater,
        (_, Datum::Null) => Ordering::Less,
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(&b),
        (Datum::Char(a), Datum::Char(b)) => a.cmp(&b),
        (Datum::Int2(a), Datum::Int2(b)) => a.cmp(&b),
        (Datum::Float4(a), Datum::Float4(b)) => compare_floats(a.into(), b.into()),
        (Datum::Float8(a), Datum::Float8(b)) => compare_floats(a, b),
        (Datum::Float4(a), Datum::Float8(b)) => compare_floats(a.into(), b),
        (Datum::Float8(a), Datum::Float4(b)) => compare_floats(a, b.into()),
        (Datum::Numeric(a), Datum::Numeric(b)) => a.compare(b),
        (Datum::Bytea(a), Datum::Bytea(b)) => work::compare(a, b)?,
        (Datum::Date(a), Datum::Date(b)) => a.cmp(&b),
        (Datum::Date(a), Datum::Timestamp(b)) => midnight(a).cmp(&b.into()),
        (Datum::Timestamp(a), Datum::Date(b)) => i128::from(a).cmp(&midnight(b)),
        (Datum::Time(a), Datum::Time(b))
        | (Datum::Timestamp(a), Datum::Timestamp(b))
        | (Datum::Timestamptz(a), Datum::Timestamptz(b)) => a.cmp(&b),
        (Datum::Interval(a), Datum::Interval(b)) => a.compare(b),
        (Datum::Oid(a), Datum::Oid(b)) => a.cmp(&b),
        (Datum::Uuid(a), Datum::Uuid(b)) => a.cmp(b),
        (Datum::Array(a), Datum::Array(b)) => compare_arrays(a, b)?,
        (Datum::Record(a), Datum::Record(b)) => {
            for (a, b) in a.fields.iter().zip(b.fields) {
                let order = compare(*a, *b)?;
                if order.is_ne() {
                    return Ok(order);
                }
            }
            a.fields.len().cmp(&b.fields.len())
        }
        _ => match (left.as_i64(), right.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            // A fixed order of the representations: values that should never meet still have a
            // total order.
            _ => tagged::tag(left).cmp(&tagged::tag(right)),
        },
    })
}

/// A bpchar without its trailing blanks, which have no meaning.
#[inline]
pub fn unpadded(text: &str) -> &str {
    work::without_blanks(text)
}

/// A date's midnight in microseconds, outside the range of timestamps too. It is then later than
/// all timestamps but infinity.
fn midnight(days: i32) -> i128 {
    match days {
        i32::MIN => i64::MIN.into(),
        i32::MAX => i64::MAX.into(),
        _ => (i128::from(days) * i128::from(super::datetime::DAY)).min(i128::from(i64::MAX) - 1),
    }
}

/// Compares the elements first, then the lengths, then the dimensions.
fn compare_arrays(left: ArrayRef<'_>, right: ArrayRef<'_>) -> Result<Ordering, SqlError> {
    for (a, b) in left.iter().zip(right.iter()) {
        let order = compare(a?, b?)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    let dimensions = |array: ArrayRef<'_>| (array.len(), array.dimensions(), array.shape());
    Ok(dimensions(left).cmp(&dimensions(right)))
}

impl Datum<'_> {
    /// The value of an integer of any width, or of an OID.
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Datum::Int2(v) => Some(v.into()),
            Datum::Int4(v) => Some(v.into()),
            Datum::Int8(v) => Some(v),
            Datum::Oid(v) => Some(v.into()),
            _ => None,
        }
    }
}
