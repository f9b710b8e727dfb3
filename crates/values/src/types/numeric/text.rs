//! Numeric as text and in PostgreSQL's binary format.

use num_bigint::{BigInt, Sign};
use num_traits::{Num, Signed, Zero};

use super::digits::{from_digits, to_digits};
use super::{Decimal, INTEGER_DIGITS_MAX, Numeric, NumericRef, SCALE_MAX, overflow, pow10};
use crate::error::{SqlError, SqlState};
use crate::types::binary;

fn invalid(text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type numeric: \"{text}\""),
    )
}

impl NumericRef<'_> {
    /// Appends its text.
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

    /// Appends PostgreSQL's binary format: digits to base 10000.
    pub fn write_binary(self, out: &mut Vec<u8>) {
        let (sign, decimal) = match self.load() {
            Numeric::NaN => (0xC000u16, None),
            Numeric::Infinity => (0xD000, None),
            Numeric::NegInfinity => (0xF000, None),
            Numeric::Finite(decimal) => {
                (if decimal.mantissa.is_negative() { 0x4000 } else { 0 }, Some(decimal))
            }
        };
        // PostgreSQL sends 32 as the scale of an infinite value.
        let infinite_scale = if sign == 0xC000 { 0 } else { 32 };
        let scale = decimal.as_ref().map_or(infinite_scale, |decimal| decimal.scale);
        let (digits, weight) = decimal.map_or((Vec::new(), 0), |decimal| decimal.base_10000());
        out.extend_from_slice(&(digits.len() as i16).to_be_bytes());
        out.extend_from_slice(&(weight as i16).to_be_bytes());
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&(scale as u16).to_be_bytes());
        for digit in digits {
            out.extend_from_slice(&digit.to_be_bytes());
        }
    }
}

/// Writes digits with the point `scale` from their end.
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

impl Decimal {
    /// Digits to base 10000 without leading and trailing zeros, and the weight of the first.
    fn base_10000(&self) -> (Vec<u16>, i64) {
        if self.mantissa.is_zero() {
            return (Vec::new(), 0);
        }
        // Align the point on a digit boundary, then split.
        let padding = (4 - self.scale % 4) % 4;
        let fraction = i64::from((self.scale + padding) / 4);
        // By way of the text: dividing by 10000 for each digit would be much slower.
        let mut decimals = to_digits(self.mantissa.magnitude());
        decimals.resize(decimals.len() + padding as usize, b'0');
        let mut digits: Vec<u16> = decimals
            .rchunks(4)
            .map(|group| group.iter().fold(0, |digit, byte| digit * 10 + u16::from(byte - b'0')))
            .collect();
        let weight = digits.len() as i64 - fraction - 1;
        let trailing = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..trailing);
        digits.reverse();
        (digits, weight)
    }
}

impl Numeric {
    /// Reads numeric's text form.
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

    /// Reads PostgreSQL's binary format.
    pub fn parse_binary(bytes: &[u8]) -> Result<Numeric, SqlError> {
        let bad = |what: &str| {
            SqlError::new(
                SqlState::INVALID_BINARY_REPRESENTATION,
                format!("invalid {what} in external \"numeric\" value"),
            )
        };
        let word =
            |at: usize| bytes.get(at * 2..at * 2 + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        let (Some(count), Some(weight), Some(sign), Some(scale)) = (word(0), word(1), word(2), word(3))
        else {
            return Err(binary::too_short());
        };
        if !matches!(sign, 0 | 0x4000 | 0xC000 | 0xD000 | 0xF000) {
            return Err(bad("sign"));
        }
        if u32::from(scale) > SCALE_MAX {
            return Err(bad("scale"));
        }
        binary::of_length(bytes, 8 + usize::from(count) * 2)?;
        match sign {
            0xC000 => return Ok(Numeric::NaN),
            0xD000 => return Ok(Numeric::Infinity),
            0xF000 => return Ok(Numeric::NegInfinity),
            _ => {}
        }
        let mut digits = Vec::with_capacity(usize::from(count) * 4);
        for index in 0..usize::from(count) {
            let digit = word(4 + index).filter(|digit| *digit < 10_000).ok_or_else(|| bad("digit"))?;
            digits.extend([1000, 100, 10, 1].map(|unit| b'0' + (digit / unit % 10) as u8));
        }
        let mut mantissa = BigInt::from(from_digits(&digits)?.unwrap_or_default());
        // The digits' own scale, which may be below or above the display scale.
        let own = (i64::from(count) - 1 - i64::from(weight as i16)) * 4;
        if own < 0 {
            mantissa *= pow10(-own as u32);
        }
        let decimal =
            Decimal { mantissa: if sign == 0x4000 { -mantissa } else { mantissa }, scale: own.max(0) as u32 };
        Ok(Numeric::Finite(decimal.truncate(i32::from(scale))))
    }
}

enum Problem {
    Syntax,
    Range,
    /// The statement was interrupted.
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

/// Digits without the single underscores between them; None when one stands elsewhere.
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
