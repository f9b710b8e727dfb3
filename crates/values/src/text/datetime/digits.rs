//! Numbers at the front of a text of a date, time or interval.

use super::Problem;

/// The integer at the front of a text, and the rest. Without digits it is 0 and the rest the whole
/// text. A number of more than 64 bits is an error.
pub(in crate::text) fn leading(text: &str) -> (Result<i64, Problem>, &str) {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let length = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return (Ok(0), text);
    }
    let (number, rest) = text.split_at(text.len() - unsigned.len() + length);
    (number.parse().map_err(|_| Problem::Value), rest)
}

/// As [`leading`], within 32 bits.
pub(in crate::text) fn leading_small(text: &str) -> (Result<i64, Problem>, &str) {
    let (value, rest) = leading(text);
    (value.and_then(|value| i32::try_from(value).map(i64::from).map_err(|_| Problem::Value)), rest)
}

/// The value of a fraction, from 0 to 1. The text begins with the decimal point.
pub(in crate::text) fn fraction(text: &str) -> Result<f64, Problem> {
    let digits = &text[1..];
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::Syntax);
    }
    if digits.is_empty() { Ok(0.0) } else { text.parse().map_err(|_| Problem::Syntax) }
}

/// A fraction of a second in microseconds, halves rounded to even. The text begins with the decimal
/// point.
pub(in crate::text) fn fraction_of_second(text: &str) -> Result<i64, Problem> {
    let digits = &text.as_bytes()[1..];
    if digits.len() > 6 || !digits.iter().all(u8::is_ascii_digit) {
        return Ok((fraction(text)? * 1e6).round_ties_even() as i64);
    }
    Ok((0..6).fold(0, |micros, at| micros * 10 + digits.get(at).map_or(0, |digit| i64::from(digit - b'0'))))
}

/// Hours, minutes, seconds and microseconds of a clock like `12:34:56.789`.
///
/// Two fields are minutes and seconds when the second has a fraction or `minutes_first` is set.
/// Hours may be any number that is not negative; the other fields are within their ranges.
pub(in crate::text) fn clock(text: &str, minutes_first: bool) -> Result<[i64; 4], Problem> {
    let (hours, rest) = leading(text);
    let hours = hours?;
    let rest = rest.strip_prefix(':').ok_or(Problem::Syntax)?;
    let (minutes, rest) = leading_small(rest);
    let minutes = minutes?;
    let as_minutes = |hours| i32::try_from(hours).map(i64::from).map_err(|_| Problem::Value);
    let fields = if let Some(rest) = rest.strip_prefix(':') {
        let (seconds, rest) = leading_small(rest);
        let seconds = seconds?;
        let micros = match rest.as_bytes().first() {
            None => 0,
            Some(b'.') => fraction_of_second(rest)?,
            Some(_) => return Err(Problem::Syntax),
        };
        [hours, minutes, seconds, micros]
    } else if rest.starts_with('.') {
        let micros = fraction_of_second(rest)?;
        [0, as_minutes(hours)?, minutes, micros]
    } else if !rest.is_empty() {
        return Err(Problem::Syntax);
    } else if minutes_first {
        [0, as_minutes(hours)?, minutes, 0]
    } else {
        [hours, minutes, 0, 0]
    };
    let [hours, minutes, seconds, _] = fields;
    if hours < 0 || !(0..60).contains(&minutes) || !(0..=60).contains(&seconds) {
        return Err(Problem::Value);
    }
    Ok(fields)
}

/// The seconds east of UTC of `+hh`, `-hhmm` or `+hh:mm:ss`.
pub(super) fn offset(text: &str) -> Result<i64, Problem> {
    let Some(unsigned) = text.strip_prefix(['+', '-']) else { return Err(Problem::Syntax) };
    let part = |text| {
        let (value, rest) = leading_small(text);
        value.map(|value| (value, rest)).map_err(|_| Problem::Displacement)
    };
    let (mut hours, mut rest) = part(unsigned)?;
    let (mut minutes, mut seconds) = (0, 0);
    if let Some(behind) = rest.strip_prefix(':') {
        (minutes, rest) = part(behind)?;
        if let Some(behind) = rest.strip_prefix(':') {
            (seconds, rest) = part(behind)?;
        }
    } else if rest.is_empty() && unsigned.len() > 2 {
        (hours, minutes) = (hours / 100, hours % 100);
    }
    if !(0..16).contains(&hours) || !(0..60).contains(&minutes) || !(0..60).contains(&seconds) {
        return Err(Problem::Displacement);
    }
    if !rest.is_empty() {
        return Err(Problem::Syntax);
    }
    let total = (hours * 60 + minutes) * 60 + seconds;
    Ok(if text.starts_with('-') { -total } else { total })
}
