//! Numeric: exact decimals with a display scale, NaN and the infinities, with PostgreSQL's rules.
//!
//! Two forms exist: [`NumericRef`], the packed bytes that rows, arenas and plans hold, and
//! [`Numeric`], the unpacked form for calculation. A finite value is `mantissa * 10^-scale`, so
//! that the display scale costs nothing to keep. Values of at most 15 bytes of mantissa (36 digits)
//! take paths over `i128` that allocate nothing but the result's bytes.
//!
//! What must hold:
//!
//! 1. Packed bytes have no leading zeros in the magnitude and no sign for zero. The short path is
//!    chosen by their number.
//! 2. Packed bytes are part of a stored row (docs/formats.md).
//! 3. Values compare by value: equal ones may have other scales, and so other bytes.
//! 4. The short paths give the results of the long ones, display scale included.
//! 5. A packed value has at most [`SCALE_MAX`] digits behind the point. Too many digits before it
//!    are 22003 when the value is packed.
//! 6. A calculation with a number of more than `LONG_DIGITS` runs beside the core, or has safe
//!    points.

mod arithmetic;
mod digits;
mod math;
#[cfg(test)]
mod tests;
mod text;

use std::cmp::Ordering;

use bumpalo::Bump;
use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};

pub(crate) use arithmetic::pow10;
pub use arithmetic::{Operation, combine, combine_small};
pub(crate) use digits::{from_digits, to_digits};

use crate::error::{SqlError, SqlState};

/// The most digits after the decimal point.
pub const SCALE_MAX: u32 = 16383;
/// The most digits before the decimal point.
const INTEGER_DIGITS_MAX: u64 = 131_072;
/// The most digits after the point that division and similar functions produce.
const DISPLAY_SCALE_MAX: i64 = 1000;
/// The fewest significant digits that division and similar functions produce.
const SIGNIFICANT_DIGITS_MIN: i64 = 16;

/// Calculations with longer numbers run beside the core: a quotient of two numbers of this length
/// takes about 100 microseconds.
const LONG_DIGITS: u64 = 4000;

const KIND_POSITIVE: u8 = 0;
const KIND_NEGATIVE: u8 = 1;
const KIND_NAN: u8 = 2;
const KIND_INFINITY: u8 = 3;
const KIND_NEG_INFINITY: u8 = 4;

/// A numeric value in its packed form, as rows hold it.
///
/// One byte is the kind (0 positive or zero, 1 negative, 2 NaN, 3 infinity, 4 minus infinity), two
/// are the display scale (little endian). The magnitude of `value * 10^scale` follows as little
/// endian bytes without leading zeros (none for zero).
#[derive(Clone, Copy, Debug)]
pub struct NumericRef<'a>(pub &'a [u8]);

/// A numeric value for calculation.
#[derive(Clone, Debug)]
pub enum Numeric {
    /// Not a number: equal to itself, greater than all others.
    NaN,
    /// Infinity.
    Infinity,
    /// -Infinity.
    NegInfinity,
    /// `mantissa * 10^-scale`.
    Finite(Decimal),
}

/// A finite decimal.
#[derive(Clone, Debug)]
pub struct Decimal {
    /// The digits.
    pub mantissa: BigInt,
    /// Number of digits after the decimal point.
    pub scale: u32,
}

/// 22003: the value is outside numeric's range.
pub fn overflow() -> SqlError {
    SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

impl<'a> NumericRef<'a> {
    /// The packed bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    fn kind(self) -> u8 {
        self.0.first().copied().unwrap_or(KIND_NAN)
    }

    /// The display scale.
    pub fn scale(self) -> u32 {
        match self.0 {
            [_, low, high, ..] => u32::from(u16::from_le_bytes([*low, *high])),
            _ => 0,
        }
    }

    /// Whether the value is NaN.
    pub fn is_nan(self) -> bool {
        self.kind() == KIND_NAN
    }

    /// Whether the value is one of the infinities.
    pub fn is_infinite(self) -> bool {
        matches!(self.kind(), KIND_INFINITY | KIND_NEG_INFINITY)
    }

    /// Mantissa and scale when it is finite and has at most 36 digits.
    #[inline]
    pub fn small(self) -> Option<(i128, u32)> {
        let kind = self.kind();
        let magnitude = self.0.get(3..)?;
        if kind > KIND_NEGATIVE || magnitude.len() > 15 {
            return None;
        }
        let mut bytes = [0; 16];
        bytes[..magnitude.len()].copy_from_slice(magnitude);
        let value = i128::from_le_bytes(bytes);
        Some((if kind == KIND_NEGATIVE { -value } else { value }, self.scale()))
    }

    /// The value in its unpacked form.
    pub fn load(self) -> Numeric {
        match self.kind() {
            KIND_INFINITY => Numeric::Infinity,
            KIND_NEG_INFINITY => Numeric::NegInfinity,
            kind @ (KIND_POSITIVE | KIND_NEGATIVE) => {
                let magnitude = self.0.get(3..).unwrap_or_default();
                let sign = if kind == KIND_NEGATIVE { Sign::Minus } else { Sign::Plus };
                Numeric::Finite(Decimal {
                    mantissa: BigInt::from_bytes_le(sign, magnitude),
                    scale: self.scale(),
                })
            }
            _ => Numeric::NaN,
        }
    }

    /// Order by value: NaN is the greatest.
    pub fn compare(self, other: NumericRef<'_>) -> Ordering {
        if let (Some((left, left_scale)), Some((right, right_scale))) = (self.small(), other.small()) {
            if left_scale == right_scale {
                return left.cmp(&right);
            }
            let scale = left_scale.max(right_scale);
            if let (Some(left), Some(right)) =
                (rescale_small(left, scale - left_scale), rescale_small(right, scale - right_scale))
            {
                return left.cmp(&right);
            }
        }
        self.load().compare(&other.load())
    }
}

/// `value * 10^digits`; None when it does not fit.
#[inline]
fn rescale_small(value: i128, digits: u32) -> Option<i128> {
    if digits > 38 {
        return if value == 0 { Some(0) } else { None };
    }
    value.checked_mul(10i128.pow(digits))
}

/// Packs mantissa and scale into an arena.
pub fn store_small(mantissa: i128, scale: u32, arena: &Bump) -> NumericRef<'_> {
    let (buffer, length) = pack_small(mantissa, scale);
    NumericRef(arena.alloc_slice_copy(&buffer[..length]))
}

/// The packed bytes of mantissa and scale, and their number.
fn pack_small(mantissa: i128, scale: u32) -> ([u8; 19], usize) {
    let mut buffer = [0; 19];
    buffer[0] = u8::from(mantissa < 0);
    buffer[1..3].copy_from_slice(&(scale as u16).to_le_bytes());
    let magnitude = mantissa.unsigned_abs();
    buffer[3..].copy_from_slice(&magnitude.to_le_bytes());
    (buffer, 3 + (16 - magnitude.leading_zeros() as usize / 8))
}

impl From<i64> for Numeric {
    fn from(value: i64) -> Numeric {
        Numeric::Finite(Decimal { mantissa: value.into(), scale: 0 })
    }
}

impl Numeric {
    /// A finite value.
    pub fn finite(mantissa: BigInt, scale: u32) -> Numeric {
        Numeric::Finite(Decimal { mantissa, scale })
    }

    /// The packed bytes; 22003 when the value has more digits than the format allows.
    pub fn pack(&self) -> Result<Vec<u8>, SqlError> {
        let decimal = match self {
            Numeric::NaN => return Ok(vec![KIND_NAN, 0, 0]),
            Numeric::Infinity => return Ok(vec![KIND_INFINITY, 0, 0]),
            Numeric::NegInfinity => return Ok(vec![KIND_NEG_INFINITY, 0, 0]),
            Numeric::Finite(decimal) => decimal,
        };
        // A digit takes more than 3 bits: the exact count is needed only near the limit.
        if decimal.mantissa.bits() / 3 > INTEGER_DIGITS_MAX
            && decimal.digits() > INTEGER_DIGITS_MAX + u64::from(decimal.scale)
        {
            return Err(overflow());
        }
        let (sign, magnitude) = decimal.mantissa.to_bytes_le();
        let mut bytes = Vec::with_capacity(3 + magnitude.len());
        bytes.push(u8::from(sign == Sign::Minus));
        bytes.extend_from_slice(&(decimal.scale as u16).to_le_bytes());
        if sign != Sign::NoSign {
            bytes.extend_from_slice(&magnitude);
        }
        Ok(bytes)
    }

    /// The packed form, in an arena.
    pub fn store<'a>(&self, arena: &'a Bump) -> Result<NumericRef<'a>, SqlError> {
        if let Numeric::Finite(decimal) = self
            && let Some(small) = decimal.mantissa.to_i128()
        {
            return Ok(store_small(small, decimal.scale, arena));
        }
        Ok(NumericRef(arena.alloc_slice_copy(&self.pack()?)))
    }

    /// Order by value: NaN is the greatest.
    pub fn compare(&self, other: &Numeric) -> Ordering {
        let rank = |value: &Numeric| match value {
            Numeric::NegInfinity => 0,
            Numeric::Finite(_) => 1,
            Numeric::Infinity => 2,
            Numeric::NaN => 3,
        };
        match (self, other) {
            (Numeric::Finite(left), Numeric::Finite(right)) => left.compare(right),
            _ => rank(self).cmp(&rank(other)),
        }
    }

    /// The nearest float8.
    pub fn to_f64(&self) -> f64 {
        match self {
            Numeric::NaN => f64::NAN,
            Numeric::Infinity => f64::INFINITY,
            Numeric::NegInfinity => f64::NEG_INFINITY,
            Numeric::Finite(decimal) => decimal.to_f64(),
        }
    }

    /// The number with the first `digits` significant digits of a float. PostgreSQL uses 15 for a
    /// float8 and 6 for a float4.
    pub fn from_float(value: f64, digits: usize) -> Result<Numeric, SqlError> {
        if value.is_nan() {
            return Ok(Numeric::NaN);
        }
        if value.is_infinite() {
            return Ok(if value > 0.0 { Numeric::Infinity } else { Numeric::NegInfinity });
        }
        let text = format!("{value:.*e}", digits - 1);
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        // %.15g drops trailing zeros.
        let digits =
            if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        Numeric::parse(&format!("{digits}e{exponent}"))
    }

    /// The nearest integer, halves away from zero; None when it is out of range or not finite.
    pub fn to_i64(&self) -> Option<i64> {
        match self {
            Numeric::Finite(decimal) => decimal.round(0).mantissa.to_i64(),
            _ => None,
        }
    }

    /// Whether the value is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self, Numeric::Finite(decimal) if decimal.mantissa.is_zero())
    }

    /// -1, 0 or 1; 1 for NaN.
    pub fn signum(&self) -> i32 {
        match self {
            Numeric::NaN | Numeric::Infinity => 1,
            Numeric::NegInfinity => -1,
            Numeric::Finite(decimal) => decimal.mantissa.signum().to_i32().unwrap_or(0),
        }
    }

    /// The value rounded to a type modifier's scale; 22003 when it exceeds the modifier's
    /// precision.
    pub fn with_modifier(self, modifier: i32) -> Result<Numeric, SqlError> {
        if modifier < 4 {
            return Ok(self);
        }
        let (precision, scale) = super::registry::numeric_modifier(modifier);
        let field_overflow = |detail: String| {
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").with_detail(detail)
        };
        match self {
            Numeric::NaN => Ok(self),
            Numeric::Infinity | Numeric::NegInfinity => Err(field_overflow(format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            ))),
            Numeric::Finite(decimal) => {
                let rounded = decimal.round(scale);
                let integer_digits = i64::from(precision) - i64::from(scale);
                if !rounded.mantissa.is_zero()
                    && rounded.digits() as i64 - i64::from(rounded.scale) > integer_digits
                {
                    let limit =
                        if integer_digits == 0 { "1".to_owned() } else { format!("10^{integer_digits}") };
                    return Err(field_overflow(format!(
                        "A field with precision {precision}, scale {scale} must round to an absolute value less than {limit}."
                    )));
                }
                Ok(Numeric::Finite(rounded))
            }
        }
    }
}
