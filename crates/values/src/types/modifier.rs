//! Type modifiers applied to values: character lengths, numeric precision, fractions of seconds.
//!
//! What must hold:
//!
//! 1. A value that a modifier was applied to is unchanged by a second application.
//! 2. Only an explicit cast cuts text silently. An assignment refuses it, unless just blanks are
//!    cut.
//! 3. A value of type bpchar leaves here as `Padded`, with a modifier or without.
//! 4. [`most_bytes`] bounds every value of the type. Whether a table may need out-of-line values
//!    follows from it.

use bumpalo::Bump;

use super::{Datum, Type, oid};
use crate::error::{SqlError, SqlState};
use crate::work;

/// Blanks that character(n) is padded with, at most these at a time.
const SPACES: &str = "                                                                ";

/// The most bytes of a stored value of the type; None when nothing limits them.
pub fn most_bytes(ty: Type) -> Option<usize> {
    const UTF8: usize = 4;
    let limit = usize::try_from(ty.modifier).ok();
    match ty.oid {
        oid::VARCHAR | oid::BPCHAR => limit.map(|limit| limit.saturating_sub(4).saturating_mul(UTF8)),
        oid::NUMERIC => limit.map(|_| {
            let (precision, scale) = super::registry::numeric_modifier(ty.modifier);
            // A byte holds more than two digits; a negative scale adds zeros.
            8 + (precision.unsigned_abs() as usize + scale.unsigned_abs() as usize) / 2
        }),
        oid::TEXT | oid::BYTEA | oid::UNKNOWN => None,
        oid::NAME => Some(64),
        other if super::registry::is_array(other) => None,
        _ => Some(16),
    }
}

/// Applies the type's modifier to a value: a length, a precision, a fraction of seconds.
///
/// `explicit` means a cast, which cuts text silently; an assignment fails with 22001 instead.
pub fn apply<'a>(value: Datum<'a>, ty: Type, explicit: bool, arena: &'a Bump) -> Result<Datum<'a>, SqlError> {
    // A bpchar differs from text from here on, with a length or without.
    let value = match value {
        Datum::Text(text) if ty.oid == oid::BPCHAR => Datum::Padded(text),
        other => other,
    };
    if ty.modifier < 0 {
        return Ok(value);
    }
    match value {
        Datum::Text(text) if ty.oid == oid::VARCHAR => {
            let Some(end) = end_of(text, ty.modifier - 4)? else { return Ok(value) };
            check_cut(text, end, explicit, "character varying", ty.modifier - 4)?;
            Ok(Datum::Text(&text[..end]))
        }
        Datum::Padded(text) => {
            let length = (ty.modifier - 4) as usize;
            if let Some(end) = end_of(text, ty.modifier - 4)? {
                check_cut(text, end, explicit, "character", ty.modifier - 4)?;
                return Ok(Datum::Padded(&text[..end]));
            }
            let characters = work::count_characters(text)?;
            if characters == length {
                return Ok(value);
            }
            let mut padded =
                bumpalo::collections::String::with_capacity_in(text.len() + length - characters, arena);
            for piece in work::pieces(text) {
                padded.push_str(piece?);
            }
            let mut missing = length - characters;
            while missing > 0 {
                let some = missing.min(SPACES.len());
                work::tick(some)?;
                padded.push_str(&SPACES[..some]);
                missing -= some;
            }
            Ok(Datum::Padded(padded.into_bump_str()))
        }
        Datum::Numeric(number) => Ok(Datum::Numeric(number.load().with_modifier(ty.modifier)?.store(arena)?)),
        Datum::Timestamp(micros) => Ok(Datum::Timestamp(rounded(micros, ty.modifier))),
        Datum::Timestamptz(micros) => Ok(Datum::Timestamptz(rounded(micros, ty.modifier))),
        Datum::Time(micros) => Ok(Datum::Time(rounded(micros, ty.modifier))),
        Datum::Interval(interval) if !interval.is_infinite() => {
            let mut interval = interval.within(super::interval::fields::of(ty.modifier));
            if (ty.modifier & 0xffff) <= 6 {
                let rounded = round_micros(interval.micros.into(), ty.modifier & 0xffff);
                interval.micros =
                    i64::try_from(rounded).map_err(|_| super::interval::interval_out_of_range())?;
            }
            Ok(Datum::Interval(interval))
        }
        Datum::Array(array) => {
            let mut builder = super::ArrayBuilder::new(array.element_type());
            let element = Type::with_modifier(array.element_type(), ty.modifier);
            for value in array.iter() {
                builder.push(apply(value?, element, explicit, arena)?)?;
            }
            let dimensions: Vec<_> =
                (0..array.dimensions()).filter_map(|index| array.dimension(index)).collect();
            builder.array_with_in(&dimensions, arena)
        }
        other => Ok(other),
    }
}

/// The byte at which the text must end to have this many characters; None when it has no more.
fn end_of(text: &str, characters: i32) -> Result<Option<usize>, SqlError> {
    let characters = characters.max(0) as usize;
    if text.len() <= characters {
        return Ok(None);
    }
    Ok(Some(work::byte_of_character(text, characters)?).filter(|end| *end < text.len()))
}

/// Fails with 22001 when an assignment would cut anything but blanks.
fn check_cut(text: &str, end: usize, explicit: bool, name: &str, length: i32) -> Result<(), SqlError> {
    if explicit || !work::any(&text.as_bytes()[end..], |byte| byte != b' ')? {
        return Ok(());
    }
    Err(SqlError::new(
        SqlState::STRING_DATA_RIGHT_TRUNCATION,
        format!("value too long for type {name}({length})"),
    ))
}

/// A time rounded to digits of the second. A finite time is far from the ends of `i64`.
fn rounded(micros: i64, digits: i32) -> i64 {
    if super::datetime::is_infinite(micros) {
        return micros;
    }
    i64::try_from(round_micros(micros.into(), digits)).unwrap_or(micros)
}

fn round_micros(micros: i128, digits: i32) -> i128 {
    if !(0..6).contains(&digits) {
        return micros;
    }
    let unit = 10i128.pow(6 - digits as u32);
    let half = if micros < 0 { -unit / 2 } else { unit / 2 };
    (micros + half) / unit * unit
}
