//! The text form of numerics.

use num_bigint::{BigInt, Sign};
use num_traits::{Num, Signed};

use super::digits::{from_digits, to_digits};
use super::{Decimal, INTEGER_DIGITS_MAX, Numeric, NumericRef, SCALE_MAX, overflow, pow10};
use crate::error::{SqlError, SqlState};

fn invalid(text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type numeric: \"{text}\""),
    )
}

impl NumericRef<'_> {
    /// Appends the number's text.
    pub fn write(self, out: &mut Vec<u8>) {
        if let Some((mantissa, scale)) = self.small() {
            write_digits(mantissa < 0, mantissa.unsigned_abs().to_string().as_bytes(), scale, out);
            return;
        }
        match self.load() {
            Numeric::NaN => out.extend_from_slice(b"NaN"),
            Numeric::Infinity => out.extend_from_slice(b"Infinity"),
            Numeric::NegInfinity => out.extend_from_slice(b"-Infinity"),
            Numeric::Finite(decimal) => {
                let digits = to_digits(decimal.mantissa.magnitude());
                write_digits(decimal.mantissa.is_negative(), &digits, decimal.scale, out);
            }
        }
    }
}

/// Appends digits with the point before the last `scale` of them.
fn write_digits(negative: bool, digits: &[u8], scale: u32, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
    let scale = scale as usize;
    if digits.len() <= scale {
        out.push(b'0');
    } else {
        out.extend_from_slice(&digits[..digits.len() - scale]);
    }
    if scale > 0 {
        out.push(b'.');
        out.resize(out.len() + scale.saturating_sub(digits.len()), b'0');
        out.extend_from_slice(&digits[digits.len().saturating_sub(scale)..]);
    }
}

impl Numeric {
    /// Reads a number: decimal, with an exponent, or hexadecimal, octal and binary, with
    /// underscores.
    pub fn parse(text: &str) -> Result<Numeric, SqlError> {
        let trimmed = text.trim_matches(is_space);
        let (negative, unsigned) = match trimmed.as_bytes().first() {
            Some(b'-') => (true, &trimmed[1..]),
            Some(b'+') => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        let lower = unsigned.to_ascii_lowercase();
        match lower.as_str() {
            "nan" if unsigned.len() == trimmed.len() => return Ok(Numeric::NaN),
            "infinity" | "inf" => return Ok(if negative { Numeric::NegInfinity } else { Numeric::Infinity }),
            _ => {}
        }
        if let Some(radix) = radix_of(&lower) {
            let digits = strip_underscores(&lower[2..], true).ok_or_else(|| invalid(text))?;
            let value = BigInt::from_str_radix(&digits, radix).map_err(|_| invalid(text))?;
            return Ok(Numeric::finite(if negative { -value } else { value }, 0));
        }
        parse_decimal(&lower, negative).map_err(|problem| match problem {
            Problem::Syntax => invalid(text),
            Problem::Range => overflow(),
            Problem::Ended(error) => error,
        })
    }
}

enum Problem {
    Syntax,
    Range,
    /// An interrupt ended the statement.
    Ended(SqlError),
}

fn radix_of(lower: &str) -> Option<u32> {
    match lower.get(..2)? {
        "0x" => Some(16),
        "0o" => Some(8),
        "0b" => Some(2),
        _ => None,
    }
}

/// The digits without the single underscores between them; None when an underscore stands
/// elsewhere.
fn strip_underscores(digits: &str, leading: bool) -> Option<String> {
    let digits = if leading { digits.strip_prefix('_').unwrap_or(digits) } else { digits };
    if digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    Some(digits.replace('_', ""))
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn parse_decimal(lower: &str, negative: bool) -> Result<Numeric, Problem> {
    let (number, exponent) = match lower.split_once('e') {
        Some((number, exponent)) => {
            let sign = exponent.strip_prefix('+').unwrap_or(exponent);
            let digits =
                strip_underscores(sign.strip_prefix('-').unwrap_or(sign), false).ok_or(Problem::Syntax)?;
            if digits.is_empty()
                || !digits.bytes().all(|b| b.is_ascii_digit())
                || (exponent.starts_with("+-"))
            {
                return Err(Problem::Syntax);
            }
            let value: i64 = digits.parse().map_err(|_| Problem::Range)?;
            (number, if sign.starts_with('-') { -value } else { value })
        }
        None => (lower, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = strip_underscores(whole, false).ok_or(Problem::Syntax)?;
    let fraction = strip_underscores(fraction, false).ok_or(Problem::Syntax)?;
    if whole.is_empty() && fraction.is_empty() {
        return Err(Problem::Syntax);
    }
    if !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return Err(Problem::Syntax);
    }
    let digits = whole + &fraction;
    let significant = digits.trim_start_matches('0');
    let scale = fraction.len() as i64 - exponent;
    if significant.len() as i64 - scale > INTEGER_DIGITS_MAX as i64 && !significant.is_empty() {
        return Err(Problem::Range);
    }
    if exponent.abs() > 200_000 || scale > i64::from(SCALE_MAX) {
        return Err(Problem::Range);
    }
    let sign = if negative { Sign::Minus } else { Sign::Plus };
    let magnitude = if significant.len() <= 38 {
        significant.parse::<u128>().unwrap_or(0).into()
    } else {
        from_digits(significant.as_bytes()).map_err(Problem::Ended)?.ok_or(Problem::Syntax)?
    };
    let mut mantissa = BigInt::from_biguint(sign, magnitude);
    if scale < 0 {
        mantissa *= pow10(-scale as u32);
    }
    let decimal = Decimal { mantissa, scale: scale.max(0) as u32 };
    Ok(Numeric::Finite(decimal))
}
