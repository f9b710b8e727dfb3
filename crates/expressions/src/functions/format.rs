//! format(): %s, %I and %L with positions, widths and the flag for padding on the right.
//!
//! What must hold:
//!
//! 1. A value under %I or %L reads back as the same identifier or literal, whatever it holds.
//! 2. An argument without a position is the one behind the argument that was used last.
//! 3. Widths count characters. The result is bounded before padding is written.

use super::arguments::{invalid, text};
use super::text_building::{bounded, quote_literal};
use values::error::{SqlError, SqlState};
use values::identifier;
use values::text::integer::parse_integer;
use values::types::Datum;
use values::work;

type Result<T> = std::result::Result<T, SqlError>;

/// One `%...` specifier of a format.
#[derive(Default)]
struct Specifier {
    /// `n$`: the argument's number.
    argument: Option<usize>,
    /// `-`: pad on the right.
    left: bool,
    width: i64,
    /// `*`: the argument that holds the width, which is the next one or that of `n$`.
    width_argument: Option<Option<usize>>,
    kind: char,
}

type Characters<'t> = std::iter::Peekable<std::str::Chars<'t>>;

fn hinted(message: String) -> SqlError {
    invalid(message).with_hint("For a single \"%\" use \"%%\".")
}

fn unterminated() -> SqlError {
    hinted("unterminated format() type specifier".to_owned())
}

/// Reads a number; None when no digit follows.
fn number(characters: &mut Characters<'_>) -> Result<Option<i32>> {
    let mut value = None;
    while let Some(digit) = characters.next_if(char::is_ascii_digit) {
        let digit = digit as i32 - '0' as i32;
        let next = value.unwrap_or(0_i32).checked_mul(10).and_then(|value| value.checked_add(digit));
        value =
            Some(next.ok_or_else(|| {
                SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range")
            })?);
    }
    if characters.peek().is_none() {
        return Err(unterminated());
    }
    Ok(value)
}

/// The argument's number as an index.
fn place(number: i32) -> Result<usize> {
    match usize::try_from(number) {
        Ok(place @ 1..) => Ok(place),
        _ => Err(invalid("format specifies argument 0, but arguments are numbered from 1".to_owned())),
    }
}

impl Specifier {
    /// Reads a specifier after its `%`.
    fn read(characters: &mut Characters<'_>) -> Result<Specifier> {
        let mut found = Specifier::default();
        let first = number(characters)?;
        match first {
            Some(width) if characters.next_if_eq(&'$').is_none() => found.width = width.into(),
            _ => {
                found.argument = first.map(place).transpose()?;
                while characters.next_if_eq(&'-').is_some() {
                    found.left = true;
                }
                if characters.next_if_eq(&'*').is_some() {
                    let from = number(characters)?.map(place).transpose()?;
                    if from.is_some() && characters.next_if_eq(&'$').is_none() {
                        return Err(invalid("width argument position must be ended by \"$\"".to_owned()));
                    }
                    found.width_argument = Some(from);
                } else {
                    found.width = number(characters)?.unwrap_or(0).into();
                }
            }
        }
        found.kind = characters.next().ok_or_else(unterminated)?;
        match found.kind {
            's' | 'I' | 'L' => Ok(found),
            other => Err(hinted(format!("unrecognized format() type specifier \"{other}\""))),
        }
    }
}

/// The result of format(). The first argument is the format.
pub(super) fn format_text(a: &[Datum<'_>]) -> Result<String> {
    let mut out = String::new();
    let mut characters = text(a[0])?.chars().peekable();
    let mut next = 1;
    let argument =
        |at: usize| a.get(at).copied().ok_or_else(|| invalid("too few arguments for format()".to_owned()));
    while let Some(c) = characters.next() {
        work::tick(1)?;
        if c != '%' {
            out.push(c);
            continue;
        }
        if characters.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut found = Specifier::read(&mut characters)?;
        if let Some(from) = found.width_argument {
            let at = from.unwrap_or(next);
            next = at + 1;
            found.width = match argument(at)? {
                Datum::Null => 0,
                value => parse_integer(text(value)?, "integer")?,
            };
            if i32::try_from(found.width).is_err() || found.width == i64::from(i32::MIN) {
                return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range"));
            }
        }
        let at = found.argument.unwrap_or(next);
        next = at + 1;
        let value = argument(at)?;
        match found.kind {
            's' if value.is_null() => padded(&mut out, "", &found)?,
            's' => padded(&mut out, text(value)?, &found)?,
            'I' if value.is_null() => {
                return Err(SqlError::new(
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            'I' => padded(&mut out, &identifier::quoted_text(text(value)?)?, &found)?,
            _ if value.is_null() => padded(&mut out, "NULL", &found)?,
            _ => padded(&mut out, &quote_literal(text(value)?)?, &found)?,
        }
    }
    Ok(out)
}

/// Appends a value, padded to its width in characters.
fn padded(out: &mut String, value: &str, found: &Specifier) -> Result<()> {
    let left = found.left || found.width < 0;
    let width = usize::try_from(found.width.unsigned_abs()).unwrap_or(usize::MAX);
    let missing = width.saturating_sub(work::count_characters(value)?);
    bounded(out.len().saturating_add(value.len()).saturating_add(missing))?;
    out.reserve(missing.saturating_add(value.len()));
    let fill = |out: &mut String| -> Result<()> {
        let mut rest = missing;
        while rest > 0 {
            let part = rest.min(runtime::work::STRIDE);
            out.push_str(&" ".repeat(part));
            work::tick(part)?;
            rest -= part;
        }
        Ok(())
    };
    if !left {
        fill(out)?;
    }
    work::push(out, value)?;
    if left { fill(out) } else { Ok(()) }
}
