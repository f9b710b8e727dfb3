//! Intervals of ISO 8601: `P1Y2M3DT4H5M6S`, `P0001-02-03T04:05:06`, `P00010203T040506`.

use super::super::datetime::Problem;
use super::sum::{Sum, Unit};
use crate::types::datetime::DAY;

/// A number as its whole part and its fraction, both with the number's sign.
type Number = (i64, f64);

/// Reads an interval.
pub(super) fn read(text: &str) -> Result<Sum, Problem> {
    let fields = text.strip_prefix('P').filter(|fields| !fields.is_empty()).ok_or(Problem::Syntax)?;
    let (date, time) = fields.split_once('T').map_or((fields, None), |(date, time)| (date, Some(time)));
    let mut sum = Sum::default();
    read_date(date, &mut sum)?;
    // The letter T may occur again after a unit.
    let mut times = time.into_iter().flat_map(|time| time.split('T')).peekable();
    while let Some(time) = times.next() {
        read_time(time, times.peek().is_none(), &mut sum)?;
    }
    Ok(sum)
}

fn read_date(text: &str, sum: &mut Sum) -> Result<(), Problem> {
    let mut rest = text;
    while !rest.is_empty() {
        let first = rest.len() == text.len();
        let start = rest;
        let value;
        (value, rest) = number(rest)?;
        let unit = match rest.as_bytes().first() {
            Some(b'Y') => Unit::Year,
            Some(b'M') => Unit::Month,
            Some(b'W') => Unit::Week,
            Some(b'D') => Unit::Day,
            None if first && width(start) == 8 => {
                sum.add(value.0 / 10_000, 0.0, Unit::Year)?;
                sum.add(value.0 / 100 % 100, 0.0, Unit::Month)?;
                sum.add(value.0 % 100, 0.0, Unit::Day)?;
                return sum.add_micros(0, value.1, DAY);
            }
            None | Some(b'-') if first => {
                return separated(value, rest, '-', [Unit::Year, Unit::Month, Unit::Day], sum);
            }
            _ => return Err(Problem::Syntax),
        };
        sum.add(value.0, value.1, unit)?;
        rest = &rest[1..];
    }
    Ok(())
}

/// Reads the part after a T. `last`: the text ends with it, so that its last number needs no unit.
fn read_time(text: &str, last: bool, sum: &mut Sum) -> Result<(), Problem> {
    let mut rest = text;
    while !rest.is_empty() {
        let first = rest.len() == text.len();
        let start = rest;
        let value;
        (value, rest) = number(rest)?;
        let unit = match rest.as_bytes().first() {
            Some(b'H') => Unit::Hour,
            Some(b'M') => Unit::Minute,
            Some(b'S') => Unit::Second,
            None if !last => return Err(Problem::Syntax),
            None if first && width(start) == 6 => {
                sum.add(value.0 / 10_000, 0.0, Unit::Hour)?;
                sum.add(value.0 / 100 % 100, 0.0, Unit::Minute)?;
                sum.add(value.0 % 100, 0.0, Unit::Second)?;
                // PostgreSQL reads this fraction as that of a microsecond.
                return sum.add_micros(0, value.1, 1);
            }
            None | Some(b':') if first && last => {
                return separated(value, rest, ':', [Unit::Hour, Unit::Minute, Unit::Second], sum);
            }
            _ => return Err(Problem::Syntax),
        };
        sum.add(value.0, value.1, unit)?;
        rest = &rest[1..];
    }
    Ok(())
}

/// Reads numbers between separators, each with its unit. The caller has read the first.
fn separated(
    first: Number,
    text: &str,
    separator: char,
    units: [Unit; 3],
    sum: &mut Sum,
) -> Result<(), Problem> {
    sum.add(first.0, first.1, units[0])?;
    let mut rest = text;
    for unit in &units[1..] {
        if rest.is_empty() {
            return Ok(());
        }
        let value;
        (value, rest) = number(rest.strip_prefix(separator).ok_or(Problem::Syntax)?)?;
        sum.add(value.0, value.1, *unit)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(Problem::Syntax) }
}

/// Number of digits at the front of a number.
fn width(text: &str) -> usize {
    text.strip_prefix('-').unwrap_or(text).bytes().take_while(u8::is_ascii_digit).count()
}

/// The decimal number at the front of a text, perhaps with an exponent, and the rest.
fn number(text: &str) -> Result<(Number, &str), Problem> {
    let digits =
        |from: usize| text.as_bytes()[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = usize::from(text.starts_with('-'));
    let whole = digits(end);
    end += whole;
    let mut fraction = 0;
    if text[end..].starts_with('.') {
        fraction = digits(end + 1);
        end += if whole + fraction > 0 { 1 + fraction } else { 0 };
    }
    if whole + fraction == 0 {
        return Err(Problem::Syntax);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['-', '+']));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    let value: f64 = text[..end].parse().map_err(|_| Problem::Syntax)?;
    if value.abs() > 1e15 {
        return Err(if value.is_infinite() { Problem::Syntax } else { Problem::Value });
    }
    Ok(((value.trunc() as i64, value.fract()), &text[end..]))
}
