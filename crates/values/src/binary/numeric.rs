//! Numeric in PostgreSQL's binary format: digits to base 10000.

use num_bigint::BigInt;
use num_traits::{Signed, Zero};

use super::{of_length, too_short};
use crate::error::{SqlError, SqlState};
use crate::types::NumericRef;
use crate::types::numeric::{Decimal, Numeric, SCALE_MAX, from_digits, pow10, to_digits};

impl NumericRef<'_> {
    /// Appends PostgreSQL's binary format: number of digits, weight of the first, sign, display
    /// scale (16 bits each), then the digits to base 10000.
    pub(crate) fn write_binary(self, out: &mut Vec<u8>) {
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

impl Decimal {
    /// Digits to base 10000 without leading and trailing zeros, and the weight of the first.
    fn base_10000(&self) -> (Vec<u16>, i64) {
        if self.mantissa.is_zero() {
            return (Vec::new(), 0);
        }
        // Align the point on a digit boundary, then split.
        let padding = (4 - self.scale % 4) % 4;
        let fraction = i64::from((self.scale + padding) / 4);
        // Converting the decimal text is much faster than a division by 10000 for each digit.
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
    /// Reads PostgreSQL's binary format.
    pub(crate) fn parse_binary(bytes: &[u8]) -> Result<Numeric, SqlError> {
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
            return Err(too_short());
        };
        if !matches!(sign, 0 | 0x4000 | 0xC000 | 0xD000 | 0xF000) {
            return Err(bad("sign"));
        }
        if u32::from(scale) > SCALE_MAX {
            return Err(bad("scale"));
        }
        of_length(bytes, 8 + usize::from(count) * 2)?;
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
        // The scale of the digits, which may be below or above the display scale.
        let own = (i64::from(count) - 1 - i64::from(weight as i16)) * 4;
        if own < 0 {
            mantissa *= pow10(-own as u32);
        }
        let decimal =
            Decimal { mantissa: if sign == 0x4000 { -mantissa } else { mantissa }, scale: own.max(0) as u32 };
        Ok(Numeric::Finite(decimal.truncate(i32::from(scale))))
    }
}
