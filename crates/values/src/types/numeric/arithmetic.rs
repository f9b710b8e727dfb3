//! Addition to division, rounding and comparison of decimals.
//!
//! What must hold:
//!
//! 1. Addition, subtraction and multiplication are exact. A product is rounded only where its scale
//!    would exceed [`SCALE_MAX`].
//! 2. The paths over `i128` give the same value and scale as the long ones, or no result.
//! 3. A quotient has the scale that PostgreSQL gives it, and rounds halves away from zero.
//! 4. Comparison is by value. It builds a common scale only for numbers of one order of magnitude,
//!    because others could take thousands of digits.
//! 5. A product of long numbers has a safe point before it or runs beside the core
//!    ([`Numeric::calculate`]).

use std::cmp::Ordering;

use bumpalo::Bump;
use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::digits::{product_work, to_digits};
use super::{
    DISPLAY_SCALE_MAX, Decimal, LONG_DIGITS, Numeric, NumericRef, SCALE_MAX, SIGNIFICANT_DIGITS_MIN,
    rescale_small, store_small,
};
use crate::error::{SqlError, SqlState};

/// 10 to the power of `digits`.
pub(crate) fn pow10(digits: u32) -> BigInt {
    if digits <= 38 { BigInt::from(10i128.pow(digits)) } else { BigInt::from(10).pow(digits) }
}

/// The four operations that have a path over `i128`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// +
    Add,
    /// -
    Subtract,
    /// *
    Multiply,
}

/// `left op right`, into the arena.
pub fn combine<'a>(
    operation: Operation,
    left: NumericRef<'_>,
    right: NumericRef<'_>,
    arena: &'a Bump,
) -> Result<NumericRef<'a>, SqlError> {
    if let (Some(left), Some(right)) = (left.small(), right.small())
        && let Some((mantissa, scale)) = combine_small(operation, left, right)
    {
        return Ok(store_small(mantissa, scale, arena));
    }
    let (left, right) = (left.load(), right.load());
    match operation {
        Operation::Add => left.add(&right),
        Operation::Subtract => left.add(&right.negate()),
        Operation::Multiply => {
            if let (Numeric::Finite(left), Numeric::Finite(right)) = (&left, &right) {
                crate::work::tick(product_work(left.mantissa.magnitude(), right.mantissa.magnitude()))?;
            }
            left.multiply(&right)
        }
    }
    .store(arena)
}

/// As [`combine`], over `i128`; None when a number or the result does not fit.
#[inline]
pub fn combine_small(operation: Operation, left: (i128, u32), right: (i128, u32)) -> Option<(i128, u32)> {
    if operation == Operation::Multiply {
        let scale = left.1 + right.1;
        return if scale > SCALE_MAX { None } else { Some((left.0.checked_mul(right.0)?, scale)) };
    }
    let scale = left.1.max(right.1);
    let a = rescale_small(left.0, scale - left.1)?;
    let b = rescale_small(right.0, scale - right.1)?;
    let sum = if operation == Operation::Add { a.checked_add(b)? } else { a.checked_sub(b)? };
    Some((sum, scale))
}

impl Numeric {
    /// Applies `operation` to two numbers. It runs beside the core when one of them is long: the
    /// library's products and quotients of thousands of digits have no safe point.
    pub fn calculate(
        self,
        other: Numeric,
        operation: impl FnOnce(&Numeric, &Numeric) -> Result<Numeric, SqlError> + Send + 'static,
    ) -> Result<Numeric, SqlError> {
        if !self.is_long() && !other.is_long() {
            return operation(&self, &other);
        }
        runtime::aside::run(move || operation(&self, &other)).map_err(SqlError::stopped)?
    }

    fn is_long(&self) -> bool {
        // A digit takes more than three bits.
        matches!(self, Numeric::Finite(decimal) if decimal.mantissa.bits() > 3 * LONG_DIGITS)
    }
}

/// Divides and rounds halves away from zero.
pub(super) fn divide_round(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let (quotient, remainder) = numerator.div_rem(denominator);
    if remainder.abs() * 2 >= denominator.abs() {
        let step =
            if (numerator.sign() == Sign::Minus) == (denominator.sign() == Sign::Minus) { 1 } else { -1 };
        quotient + step
    } else {
        quotient
    }
}

impl Decimal {
    /// Number of decimal digits of the mantissa (1 for zero).
    pub fn digits(&self) -> u64 {
        if let Some(small) = self.mantissa.to_i128() {
            return u64::from(small.unsigned_abs().checked_ilog10().unwrap_or(0)) + 1;
        }
        // The first 64 bits give the logarithm to more than 9 places.
        let shift = self.mantissa.bits().saturating_sub(64);
        let head = (self.mantissa.magnitude() >> shift).to_f64().unwrap_or(1.0);
        let estimate = head.log10() + shift as f64 * std::f64::consts::LOG10_2;
        if (estimate - estimate.round()).abs() > 1e-6 {
            return estimate as u64 + 1;
        }
        let nearest = estimate.round() as u64;
        nearest + u64::from(*self.mantissa.magnitude() >= *pow10(nearest as u32).magnitude())
    }

    /// The exponent of the most significant digit; 0 for zero.
    pub fn exponent(&self) -> i64 {
        if self.mantissa.is_zero() { 0 } else { self.digits() as i64 - 1 - i64::from(self.scale) }
    }

    /// Weight and value of the first digit to base 10000, on which PostgreSQL's result scales
    /// depend.
    pub(super) fn first_digit(&self) -> (i64, i64) {
        if self.mantissa.is_zero() {
            return (0, 0);
        }
        let weight = self.exponent().div_euclid(4);
        let shift = weight * 4 + i64::from(self.scale);
        let magnitude = self.mantissa.abs();
        let digit =
            if shift >= 0 { magnitude / pow10(shift as u32) } else { magnitude * pow10(-shift as u32) };
        (weight, digit.to_i64().unwrap_or(0))
    }

    /// The mantissa at a scale not below its own.
    pub(super) fn at_scale(&self, scale: u32) -> BigInt {
        if scale == self.scale { self.mantissa.clone() } else { &self.mantissa * pow10(scale - self.scale) }
    }

    /// Rounds to digits after the point, or before it when `scale` is negative, halves away from
    /// zero. The display scale becomes `scale`, at least 0.
    pub fn round(&self, scale: i32) -> Decimal {
        self.cut(scale, divide_round)
    }

    /// Cuts off the digits after those of `scale`.
    pub fn truncate(&self, scale: i32) -> Decimal {
        self.cut(scale, |numerator, denominator| numerator / denominator)
    }

    fn cut(&self, scale: i32, divide: impl Fn(&BigInt, &BigInt) -> BigInt) -> Decimal {
        let shown = scale.max(0) as u32;
        if i64::from(scale) >= i64::from(self.scale) {
            return Decimal { mantissa: self.at_scale(shown), scale: shown };
        }
        let drop = (i64::from(self.scale) - i64::from(scale)) as u64;
        if drop > self.digits() + 1 {
            return Decimal { mantissa: BigInt::zero(), scale: shown };
        }
        let mut mantissa = divide(&self.mantissa, &pow10(drop as u32));
        if scale < 0 {
            mantissa *= pow10(scale.unsigned_abs());
        }
        Decimal { mantissa, scale: shown }
    }

    pub(super) fn compare(&self, other: &Decimal) -> Ordering {
        let (left, right) = (self.mantissa.sign(), other.mantissa.sign());
        if left != right || left == Sign::NoSign {
            return left.cmp(&right);
        }
        if self.scale == other.scale {
            return self.mantissa.cmp(&other.mantissa);
        }
        // Different orders of magnitude need no common scale, which may take thousands of digits.
        let order = self.exponent().cmp(&other.exponent());
        if order != Ordering::Equal {
            return if left == Sign::Minus { order.reverse() } else { order };
        }
        let scale = self.scale.max(other.scale);
        self.at_scale(scale).cmp(&other.at_scale(scale))
    }

    pub(super) fn to_f64(&self) -> f64 {
        if let Some(small) = self.mantissa.to_i64()
            && small.unsigned_abs() < 1 << 53
            && self.scale <= 22
        {
            // Both are exact, so the quotient is correctly rounded.
            return small as f64 / 10f64.powi(self.scale as i32);
        }
        let mut text = String::from_utf8(to_digits(self.mantissa.magnitude())).unwrap_or_default();
        text += &format!("e-{}", self.scale);
        let value: f64 = text.parse().unwrap_or(f64::NAN);
        if self.mantissa.is_negative() { -value } else { value }
    }

    /// Divides at a scale and rounds halves away from zero. The divisor is not zero.
    pub(crate) fn divide_at(&self, divisor: &Decimal, scale: u32) -> Decimal {
        let shift = i64::from(scale) + i64::from(divisor.scale) - i64::from(self.scale);
        let mantissa = if shift >= 0 {
            divide_round(&(&self.mantissa * pow10(shift as u32)), &divisor.mantissa)
        } else {
            divide_round(&self.mantissa, &(&divisor.mantissa * pow10(-shift as u32)))
        };
        Decimal { mantissa, scale }
    }

    /// The scale that PostgreSQL gives a quotient.
    pub(crate) fn quotient_scale(&self, divisor: &Decimal) -> u32 {
        let (weight, first) = self.first_digit();
        let (divisor_weight, divisor_first) = divisor.first_digit();
        let mut quotient_weight = weight - divisor_weight;
        if first <= divisor_first {
            quotient_weight -= 1;
        }
        (SIGNIFICANT_DIGITS_MIN - quotient_weight * 4)
            .max(i64::from(self.scale))
            .max(i64::from(divisor.scale))
            .clamp(0, DISPLAY_SCALE_MAX) as u32
    }
}

pub fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

impl Numeric {
    /// -self
    #[must_use]
    pub fn negate(&self) -> Numeric {
        match self {
            Numeric::NaN => Numeric::NaN,
            Numeric::Infinity => Numeric::NegInfinity,
            Numeric::NegInfinity => Numeric::Infinity,
            Numeric::Finite(decimal) => Numeric::finite(-&decimal.mantissa, decimal.scale),
        }
    }

    /// |self|
    #[must_use]
    pub fn absolute(&self) -> Numeric {
        if self.signum() < 0 { self.negate() } else { self.clone() }
    }

    /// self + other
    #[must_use]
    pub fn add(&self, other: &Numeric) -> Numeric {
        match (self, other) {
            (Numeric::Finite(left), Numeric::Finite(right)) => {
                let scale = left.scale.max(right.scale);
                Numeric::finite(left.at_scale(scale) + right.at_scale(scale), scale)
            }
            (Numeric::NaN, _) | (_, Numeric::NaN) => Numeric::NaN,
            (Numeric::Infinity, Numeric::NegInfinity) | (Numeric::NegInfinity, Numeric::Infinity) => {
                Numeric::NaN
            }
            (Numeric::Finite(_), infinite) | (infinite, _) => infinite.clone(),
        }
    }

    /// self * other
    #[must_use]
    pub fn multiply(&self, other: &Numeric) -> Numeric {
        match (self, other) {
            (Numeric::Finite(left), Numeric::Finite(right)) => {
                let product =
                    Decimal { mantissa: &left.mantissa * &right.mantissa, scale: left.scale + right.scale };
                Numeric::Finite(if product.scale > SCALE_MAX {
                    product.round(SCALE_MAX as i32)
                } else {
                    product
                })
            }
            (Numeric::NaN, _) | (_, Numeric::NaN) => Numeric::NaN,
            _ => match self.signum() * other.signum() {
                0 => Numeric::NaN,
                1 => Numeric::Infinity,
                _ => Numeric::NegInfinity,
            },
        }
    }

    /// self / other, at PostgreSQL's scale for it.
    pub fn divide(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        Ok(match (self, other) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => Numeric::NaN,
            (_, Numeric::Finite(divisor)) if divisor.mantissa.is_zero() => return Err(division_by_zero()),
            (Numeric::Finite(left), Numeric::Finite(right)) => {
                Numeric::Finite(left.divide_at(right, left.quotient_scale(right)))
            }
            (Numeric::Finite(_), _) => Numeric::from(0),
            (_, Numeric::Finite(_)) if self.signum() * other.signum() > 0 => Numeric::Infinity,
            (_, Numeric::Finite(_)) => Numeric::NegInfinity,
            _ => Numeric::NaN,
        })
    }

    /// div(): the quotient truncated to an integer.
    pub fn divide_integer(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        match (self, other) {
            (Numeric::Finite(left), Numeric::Finite(right)) if !right.mantissa.is_zero() => {
                let scale = left.scale.max(right.scale);
                Ok(Numeric::finite(left.at_scale(scale) / right.at_scale(scale), 0))
            }
            _ => self.divide(other),
        }
    }

    /// The remainder, with the dividend's sign.
    pub fn modulo(&self, other: &Numeric) -> Result<Numeric, SqlError> {
        Ok(match (self, other) {
            (Numeric::NaN, _) | (_, Numeric::NaN) => Numeric::NaN,
            (_, Numeric::Finite(divisor)) if divisor.mantissa.is_zero() => return Err(division_by_zero()),
            (Numeric::Finite(left), Numeric::Finite(right)) => {
                let scale = left.scale.max(right.scale);
                Numeric::finite(left.at_scale(scale) % right.at_scale(scale), scale)
            }
            (Numeric::Finite(_), _) => self.clone(),
            _ => Numeric::NaN,
        })
    }

    /// The least integer that is not below the number.
    #[must_use]
    pub fn ceiling(&self) -> Numeric {
        self.to_integer(|mantissa, unit| mantissa.div_ceil(unit))
    }

    /// The greatest integer that is not above the number.
    #[must_use]
    pub fn floor(&self) -> Numeric {
        self.to_integer(|mantissa, unit| mantissa.div_floor(unit))
    }

    fn to_integer(&self, divide: impl Fn(&BigInt, &BigInt) -> BigInt) -> Numeric {
        match self {
            Numeric::Finite(decimal) => Numeric::finite(divide(&decimal.mantissa, &pow10(decimal.scale)), 0),
            other => other.clone(),
        }
    }

    /// The number rounded to a scale.
    #[must_use]
    pub fn round(&self, scale: i32) -> Numeric {
        match self {
            Numeric::Finite(decimal) => Numeric::Finite(decimal.round(clamp_scale(scale))),
            other => other.clone(),
        }
    }

    /// The number truncated to a scale.
    #[must_use]
    pub fn truncate(&self, scale: i32) -> Numeric {
        match self {
            Numeric::Finite(decimal) => Numeric::Finite(decimal.truncate(clamp_scale(scale))),
            other => other.clone(),
        }
    }

    /// trim_scale(): the number without trailing zeros after the point.
    pub fn trim_scale(&self) -> Result<Numeric, SqlError> {
        let Numeric::Finite(decimal) = self else { return Ok(self.clone()) };
        let mut trimmed = decimal.clone();
        let ten = BigInt::from(10);
        while trimmed.scale > 0 {
            let (quotient, remainder) = trimmed.mantissa.div_rem(&ten);
            if !remainder.is_zero() {
                break;
            }
            tick(&quotient)?;
            trimmed = Decimal { mantissa: quotient, scale: trimmed.scale - 1 };
        }
        Ok(Numeric::Finite(trimmed))
    }

    /// Greatest common divisor.
    #[must_use]
    pub fn gcd(&self, other: &Numeric) -> Numeric {
        match (self, other) {
            (Numeric::Finite(left), Numeric::Finite(right)) => {
                let scale = left.scale.max(right.scale);
                Numeric::finite(left.at_scale(scale).gcd(&right.at_scale(scale)), scale)
            }
            _ => Numeric::NaN,
        }
    }

    /// Least common multiple.
    #[must_use]
    pub fn lcm(&self, other: &Numeric) -> Numeric {
        match (self, other) {
            (Numeric::Finite(left), Numeric::Finite(right)) => {
                let scale = left.scale.max(right.scale);
                Numeric::finite(left.at_scale(scale).lcm(&right.at_scale(scale)), scale)
            }
            _ => Numeric::NaN,
        }
    }

    /// n!
    pub fn factorial(n: i64) -> Result<Numeric, SqlError> {
        if n < 0 {
            return Err(SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                "factorial of a negative number is undefined",
            ));
        }
        if n > 32177 {
            return Err(super::overflow());
        }
        let mut product = BigInt::one();
        for factor in 2..=n {
            product *= factor;
            tick(&product)?;
        }
        Ok(Numeric::finite(product, 0))
    }
}

/// Counts work that is linear in a number's length.
fn tick(number: &BigInt) -> Result<(), SqlError> {
    crate::work::tick((number.bits() / 8) as usize)
}

fn clamp_scale(scale: i32) -> i32 {
    scale.clamp(-(131_072 + 1), SCALE_MAX as i32)
}
