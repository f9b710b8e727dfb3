//! Square root, exponential, logarithm and power, by fixed-point series over big integers, at
//! PostgreSQL's scales.
//!
//! What must hold:
//!
//! 1. The scale of a result is the one that PostgreSQL chooses, from an estimate of the result's
//!    weight. Its last digit is rounded once, from digits beyond it.
//! 2. Series run over integers of a fixed scale and end when a term is zero. Each term has a safe
//!    point.
//! 3. A result that cannot fit is refused by its estimated weight, before it is computed.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::arithmetic::{divide_round, division_by_zero};
use super::{DISPLAY_SCALE_MAX, Decimal, LONG_DIGITS, Numeric, SIGNIFICANT_DIGITS_MIN, overflow, pow10};
use crate::error::{SqlError, SqlState};

/// Digits kept in addition to the result's scale.
const GUARD: u32 = 10;
const LOG10_E: f64 = std::f64::consts::LOG10_E;

fn result_scale(wanted: i64, at_least: u32) -> u32 {
    wanted.max(i64::from(at_least)).clamp(0, DISPLAY_SCALE_MAX) as u32
}

fn power_error(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message)
}

/// e^(value * 10^-scale) at the same scale.
fn exp_fixed(value: &BigInt, scale: u32) -> Result<BigInt, SqlError> {
    // The value is halved until it is below 2^-8, the series summed, the result squared back. Each
    // squaring costs a bit, which the extra digits hold.
    let whole = (value / pow10(scale)).abs().bits() as u32;
    let halvings = whole + 9;
    // The result's integer digits multiply the error too.
    let extra = halvings / 3 + 8 + ((value / pow10(scale)).to_f64().unwrap_or(0.0).max(0.0) * LOG10_E) as u32;
    let one = pow10(scale + extra);
    let x = (value * pow10(extra)) >> halvings;
    let mut sum = &one + &x;
    let mut term = x.clone();
    let mut n = 2u32;
    loop {
        tick(&sum)?;
        term = (&term * &x) / &one / n;
        if term.is_zero() {
            break;
        }
        sum += &term;
        n += 1;
    }
    for _ in 0..halvings {
        sum = (&sum * &sum) / &one;
        tick(&sum)?;
    }
    Ok(divide_round(&sum, &pow10(extra)))
}

/// ln(value * 10^-scale), positive, at the same scale.
fn ln_fixed(value: &BigInt, scale: u32) -> Result<BigInt, SqlError> {
    let extra = 12;
    let one = pow10(scale + extra);
    let mut x = value * pow10(extra);
    // Square roots bring the value near 1. Each doubles the logarithm's weight.
    let mut roots = 0u32;
    let near = &one / 16;
    while (&x - &one).abs() > near {
        tick(&x)?;
        x = (&x * &one).sqrt();
        roots += 1;
    }
    // ln x = 2 artanh((x - 1) / (x + 1))
    let y = ((&x - &one) * &one) / (&x + &one);
    let square = (&y * &y) / &one;
    let mut term = y.clone();
    let mut sum = y;
    let mut n = 3u32;
    loop {
        tick(&sum)?;
        term = (&term * &square) / &one;
        if term.is_zero() {
            break;
        }
        sum += &term / n;
        n += 2;
    }
    Ok(divide_round(&(sum << (roots + 1)), &pow10(extra)))
}

/// A safe point after a product or quotient of numbers of this length.
fn tick(number: &BigInt) -> Result<(), SqlError> {
    let words = (number.bits() / 64 + 1) as usize;
    crate::work::tick(words.saturating_mul(words))
}

impl Decimal {
    /// ln(self) at a scale: the logarithm of a number near 1, plus a multiple of ln 10.
    fn ln_at(&self, scale: u32) -> Result<Decimal, SqlError> {
        // The exponent of ten has at most six digits.
        let working = scale + GUARD + 6;
        let mut exponent = self.exponent();
        let near = |exponent: i64| Decimal {
            mantissa: self.mantissa.clone(),
            scale: (i64::from(self.scale) + exponent) as u32,
        };
        let mut rest = near(exponent).round(working as i32).mantissa;
        if rest > pow10(working) * 3 {
            exponent += 1;
            rest = near(exponent).round(working as i32).mantissa;
        }
        let mut value = ln_fixed(&rest, working)?;
        if exponent != 0 {
            value += ln_fixed(&pow10(working + 1), working)? * exponent;
        }
        Ok(Decimal { mantissa: value, scale: working }.round(scale as i32))
    }

    fn exp_at(&self, scale: u32) -> Result<Decimal, SqlError> {
        let working = (scale + GUARD).max(self.scale);
        let mantissa = exp_fixed(&self.at_scale(working), working)?;
        Ok(Decimal { mantissa, scale: working }.round(scale as i32))
    }

    /// The decimal weight of ln(self), estimated as PostgreSQL does.
    fn ln_weight(&self) -> i64 {
        if self.compare(&Decimal { mantissa: 9.into(), scale: 1 }).is_ge()
            && self.compare(&Decimal { mantissa: 11.into(), scale: 1 }).is_le()
        {
            let difference = Decimal { mantissa: &self.mantissa - pow10(self.scale), scale: self.scale };
            if difference.mantissa.is_zero() {
                return 0;
            }
            let (weight, first) = difference.first_digit();
            return weight * 4 + (first.max(1) as f64).log10() as i64;
        }
        let ln = self.approximate_log10() * std::f64::consts::LN_10;
        ln.abs().log10() as i64
    }

    /// log10(|self|) as a float, without overflow.
    fn approximate_log10(&self) -> f64 {
        let digits = self.digits() as i64;
        let drop = (digits - 17).max(0) as u32;
        let head = (self.mantissa.abs() / pow10(drop)).to_f64().unwrap_or(1.0);
        head.log10() + f64::from(drop) - f64::from(self.scale)
    }

    fn as_integer(&self) -> Option<BigInt> {
        let (quotient, remainder) = self.mantissa.div_rem(&pow10(self.scale));
        remainder.is_zero().then_some(quotient)
    }

    /// self^exponent for an integer exponent.
    fn power_integer(&self, exponent: i64, exponent_scale: u32) -> Result<Numeric, SqlError> {
        if self.mantissa.is_zero() {
            return match exponent {
                0 => Ok(Numeric::finite(pow10(16), 16)),
                1.. => Ok(Numeric::finite(BigInt::zero(), 16.max(self.scale).max(exponent_scale))),
                _ => Err(division_by_zero()),
            };
        }
        let weight = self.approximate_log10() * exponent as f64;
        if weight > 131_072.0 + 4.0 {
            return Err(overflow());
        }
        if weight + 1.0 < -(DISPLAY_SCALE_MAX as f64) {
            return Ok(Numeric::finite(BigInt::zero(), DISPLAY_SCALE_MAX as u32));
        }
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - weight as i64, self.scale.max(exponent_scale));
        // Keep enough significant digits through the squarings.
        let keep = (weight.max(0.0) as u32) + scale + 2 * GUARD + exponent.unsigned_abs().max(1).ilog10();
        let mut result = Decimal { mantissa: BigInt::one(), scale: 0 };
        let mut base = self.clone();
        let mut left = exponent.unsigned_abs();
        while left > 0 {
            tick(&base.mantissa)?;
            if left & 1 == 1 {
                result = result.times(&base).keep_digits(keep);
            }
            left >>= 1;
            if left > 0 {
                base = base.times(&base).keep_digits(keep);
            }
        }
        let result = if exponent < 0 {
            Decimal { mantissa: BigInt::one(), scale: 0 }.divide_at(&result, scale)
        } else {
            result.round(scale as i32)
        };
        Ok(Numeric::Finite(result))
    }

    fn times(&self, other: &Decimal) -> Decimal {
        Decimal { mantissa: &self.mantissa * &other.mantissa, scale: self.scale + other.scale }
    }

    /// Keeps at most `keep` significant digits. Digits before the point always stay.
    fn keep_digits(self, keep: u32) -> Decimal {
        let excess = self.digits().saturating_sub(u64::from(keep)).min(u64::from(self.scale));
        if excess == 0 { self } else { self.round((u64::from(self.scale) - excess) as i32) }
    }
}

impl Decimal {
    /// The square root at a scale, of a value that is not negative.
    pub fn root(&self, scale: u32) -> Decimal {
        let working = scale + 2;
        let shift = i64::from(working) * 2 - i64::from(self.scale);
        let root = if shift >= 0 {
            (&self.mantissa * pow10(shift as u32)).sqrt()
        } else {
            (&self.mantissa / pow10(-shift as u32)).sqrt()
        };
        Decimal { mantissa: root, scale: working }.round(scale as i32)
    }
}

impl Numeric {
    /// Square root.
    pub fn sqrt(&self) -> Result<Numeric, SqlError> {
        let decimal = match self {
            Numeric::NaN | Numeric::Infinity => return Ok(self.clone()),
            Numeric::Finite(decimal) if !decimal.mantissa.is_negative() => decimal,
            _ => {
                return Err(SqlError::new(
                    SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                    "cannot take square root of a negative number",
                ));
            }
        };
        let (weight, _) = decimal.first_digit();
        let root_weight = if weight >= 0 { weight * 4 / 2 + 1 } else { 1 - (1 - weight * 4) / 2 };
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - root_weight, decimal.scale);
        Ok(Numeric::Finite(decimal.root(scale)))
    }

    /// e to this power.
    pub fn exp(&self) -> Result<Numeric, SqlError> {
        let decimal = match self {
            Numeric::NaN | Numeric::Infinity => return Ok(self.clone()),
            Numeric::NegInfinity => return Ok(Numeric::from(0)),
            Numeric::Finite(decimal) => decimal,
        };
        let weight = (decimal.to_f64() * LOG10_E).clamp(-2000.0, 2000.0);
        if decimal.to_f64() > 6000.0 {
            return Err(overflow());
        }
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - weight as i64, decimal.scale);
        if decimal.to_f64() < -6000.0 {
            return Ok(Numeric::finite(BigInt::zero(), scale));
        }
        Ok(Numeric::Finite(decimal.exp_at(scale)?))
    }

    fn logarithm_argument(&self) -> Result<Option<&Decimal>, SqlError> {
        let error = |message| Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, message));
        match self.signum() {
            0 => error("cannot take logarithm of zero"),
            1 => match self {
                Numeric::Finite(decimal) => Ok(Some(decimal)),
                _ => Ok(None),
            },
            _ => error("cannot take logarithm of a negative number"),
        }
    }

    /// Natural logarithm.
    pub fn ln(&self) -> Result<Numeric, SqlError> {
        let Some(decimal) = self.logarithm_argument()? else { return Ok(self.clone()) };
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - decimal.ln_weight(), decimal.scale);
        Ok(Numeric::Finite(decimal.ln_at(scale)?))
    }

    /// Logarithm to a base.
    pub fn log(&self, base: &Numeric) -> Result<Numeric, SqlError> {
        let (Some(base), Some(decimal)) = (base.logarithm_argument()?, self.logarithm_argument()?) else {
            return Ok(if matches!(self, Numeric::NaN) || matches!(base, Numeric::NaN) {
                Numeric::NaN
            } else if matches!(base, Numeric::Finite(_)) {
                Numeric::Infinity
            } else if matches!(self, Numeric::Finite(_)) {
                Numeric::from(0)
            } else {
                Numeric::NaN
            });
        };
        let (base_weight, weight) = (base.ln_weight(), decimal.ln_weight());
        let digits = weight - base_weight;
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - digits, base.scale.max(decimal.scale));
        // Both logarithms have at least the result's significant digits.
        let working = |weight: i64| (i64::from(scale) + digits - weight).max(0) as u32 + GUARD;
        let ln_base = base.ln_at(working(base_weight))?;
        if ln_base.mantissa.is_zero() {
            return Err(division_by_zero());
        }
        Ok(Numeric::Finite(decimal.ln_at(working(weight))?.divide_at(&ln_base, scale)))
    }

    /// self to the power of `exponent`.
    pub fn power(&self, exponent: &Numeric) -> Result<Numeric, SqlError> {
        let (Numeric::Finite(base), Numeric::Finite(exp)) = (self, exponent) else {
            return self.power_special(exponent);
        };
        if base.mantissa.is_zero() && exp.mantissa.is_negative() {
            return Err(power_error("zero raised to a negative power is undefined"));
        }
        let integer = exp.as_integer();
        if base.mantissa.is_negative() && integer.is_none() {
            return Err(power_error(
                "a negative number raised to a non-integer power yields a complex result",
            ));
        }
        if let Some(value) = integer.and_then(|value| value.to_i32()) {
            let (value, scale) = (i64::from(value), exp.scale);
            if base.approximate_log10().abs() * value as f64 <= LONG_DIGITS as f64 {
                return base.power_integer(value, scale);
            }
            let base = base.clone();
            return runtime::aside::run(move || base.power_integer(value, scale))
                .map_err(SqlError::stopped)?;
        }
        if base.mantissa.is_zero() {
            return Ok(Numeric::finite(BigInt::zero(), 16));
        }
        let negative = base.mantissa.is_negative() && exp.as_integer().is_some_and(|value| value.is_odd());
        let base = Decimal { mantissa: base.mantissa.abs(), scale: base.scale };
        let weight = base.approximate_log10() * exp.to_f64();
        if weight.abs() > 2000.0 * 3.01 * LOG10_E {
            return if weight > 0.0 {
                Err(overflow())
            } else {
                Ok(Numeric::finite(BigInt::zero(), DISPLAY_SCALE_MAX as u32))
            };
        }
        let scale = result_scale(SIGNIFICANT_DIGITS_MIN - weight as i64, base.scale.max(exp.scale));
        let working = scale + GUARD + weight.abs() as u32 + exp.digits() as u32;
        let product = base.ln_at(working)?.times(exp).round(working as i32);
        let result = product.exp_at(scale)?;
        Ok(Numeric::Finite(if negative { Decimal { mantissa: -result.mantissa, ..result } } else { result }))
    }

    /// Powers of NaN and the infinities.
    fn power_special(&self, exponent: &Numeric) -> Result<Numeric, SqlError> {
        let one = Numeric::from(1);
        if exponent.is_zero() || self.compare(&one).is_eq() {
            return Ok(one);
        }
        if matches!(self, Numeric::NaN) || matches!(exponent, Numeric::NaN) {
            return Ok(Numeric::NaN);
        }
        match (self, exponent) {
            (Numeric::Finite(_), _) => {
                if self.is_zero() {
                    return if exponent.signum() > 0 {
                        Ok(Numeric::from(0))
                    } else {
                        Err(power_error("zero raised to a negative power is undefined"))
                    };
                }
                if self.signum() < 0 && self.compare(&Numeric::from(-1)).is_eq() {
                    return Ok(one);
                }
                let grows = self.absolute().compare(&one).is_gt() == (exponent.signum() > 0);
                Ok(if grows { Numeric::Infinity } else { Numeric::from(0) })
            }
            (_, exponent) if exponent.signum() < 0 => Ok(Numeric::from(0)),
            (Numeric::Infinity, _) => Ok(Numeric::Infinity),
            (_, Numeric::Finite(value)) => match value.as_integer() {
                None => Err(power_error(
                    "a negative number raised to a non-integer power yields a complex result",
                )),
                Some(value) if value.is_odd() => Ok(Numeric::NegInfinity),
                Some(_) => Ok(Numeric::Infinity),
            },
            _ => Ok(Numeric::Infinity),
        }
    }
}
