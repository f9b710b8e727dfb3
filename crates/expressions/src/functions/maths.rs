//! Mathematical functions.
//!
//! What must hold:
//!
//! 1. Functions over numerics go through [`Numeric::calculate`], which runs long calculations
//!    beside the core.
//! 2. Results round where PostgreSQL's do: the constants and the order of operations are its own.
//! 3. An argument outside a function's domain is an error, and NaN is not outside of it.
//! 4. Functions of random numbers are volatile, and draw from the session's generator.

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::arguments::{float, give_numeric, int, invalid, numeric, out_of_range};
use super::numbers::{checked_float, float_power, square_root};
use crate::context::EvalContext;
use crate::function::{Function, func};
use values::error::{SqlError, SqlState};
use values::types::numeric::{Decimal, Numeric};
use values::types::{Datum, oid};

type Result<T> = std::result::Result<T, SqlError>;

const I4: u32 = oid::INT4;
const I8: u32 = oid::INT8;
const F8: u32 = oid::FLOAT8;
const NUM: u32 = oid::NUMERIC;

fn logarithm(value: f64, take: impl Fn(f64) -> f64) -> Result<Datum<'static>> {
    let error = |message| Err(SqlError::new(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, message));
    if value == 0.0 {
        return error("cannot take logarithm of zero");
    }
    if value < 0.0 {
        return error("cannot take logarithm of a negative number");
    }
    Ok(Datum::Float8(take(value)))
}

fn bounded(value: f64, take: impl Fn(f64) -> f64) -> Result<Datum<'static>> {
    if !(-1.0..=1.0).contains(&value) && !value.is_nan() {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range"));
    }
    Ok(Datum::Float8(take(value)))
}

fn finite_angle(value: f64, take: impl Fn(f64) -> f64) -> Result<Datum<'static>> {
    if value.is_infinite() {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range"));
    }
    Ok(Datum::Float8(take(value)))
}

/// PostgreSQL's constant: a multiplication or division by it rounds as in PostgreSQL.
const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

macro_rules! plain {
    ($name:literal, $take:expr) => {
        func($name, &[F8], F8, |_, a| {
            let take: fn(f64) -> f64 = $take;
            Ok(Datum::Float8(take(float(a[0])?)))
        })
    };
}

/// A numeric function that cannot fail.
macro_rules! exact {
    ($name:literal, $take:expr) => {
        func($name, &[NUM], NUM, |cx, a| {
            let take: fn(&Numeric, &Numeric) -> Result<Numeric> = |v, _| Ok($take(v));
            give_numeric(&numeric(a[0])?.calculate(Numeric::NaN, take)?, cx.arena)
        })
    };
}

fn greatest_divisor(a: i64, b: i64) -> i128 {
    let (mut a, mut b) = (i128::from(a).abs(), i128::from(b).abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn least_multiple(a: i64, b: i64) -> i128 {
    if a == 0 || b == 0 { 0 } else { (i128::from(a) / greatest_divisor(a, b) * i128::from(b)).abs() }
}

fn give_int4<'a>(value: i128) -> Result<Datum<'a>> {
    value.try_into().map(Datum::Int4).map_err(|_| out_of_range("integer"))
}

fn give_int8<'a>(value: i128) -> Result<Datum<'a>> {
    value.try_into().map(Datum::Int8).map_err(|_| out_of_range("bigint"))
}

fn scale_argument(value: Datum<'_>) -> Result<i32> {
    Ok(int(value)? as i32)
}

fn bucket_error(message: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION, message)
}

/// Checks the arguments that both kinds of width_bucket() refuse.
fn check_buckets(count: i64, nan: bool, infinite_bound: bool) -> Result<()> {
    if count <= 0 {
        return Err(bucket_error("count must be greater than zero"));
    }
    if nan {
        return Err(bucket_error("operand, lower bound, and upper bound cannot be NaN"));
    }
    if infinite_bound {
        return Err(bucket_error("lower and upper bounds must be finite"));
    }
    Ok(())
}

/// The bucket of a value outside the bounds: 0 before the lower one, `count` + 1 from the upper one
/// on. None for a value between the bounds, whose bucket the caller computes.
fn outer_bucket(
    from_low: Ordering,
    from_high: Ordering,
    bounds: Ordering,
    count: i64,
) -> Result<Option<i64>> {
    let (before, behind) = match bounds {
        Ordering::Less => (from_low.is_lt(), from_high.is_ge()),
        Ordering::Greater => (from_low.is_gt(), from_high.is_le()),
        Ordering::Equal => return Err(bucket_error("lower bound cannot equal upper bound")),
    };
    Ok(if before { Some(0) } else { behind.then_some(count + 1) })
}

fn width_bucket<'a>(a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let (value, low, high, count) = (float(a[0])?, float(a[1])?, float(a[2])?, int(a[3])?);
    check_buckets(
        count,
        value.is_nan() || low.is_nan() || high.is_nan(),
        low.is_infinite() || high.is_infinite(),
    )?;
    let order = |x: f64, y: f64| x.partial_cmp(&y).unwrap_or(Ordering::Equal);
    let bucket = match outer_bucket(order(value, low), order(value, high), order(low, high), count)? {
        Some(outer) => outer,
        None => {
            // The difference of the bounds may be too large for a float.
            let half = if (high - low).is_infinite() { 0.5 } else { 1.0 };
            let part = (value * half - low * half) / (high * half - low * half);
            // Rounding up to 1 would pass the last bucket.
            ((part * count as f64) as i64).min(count - 1) + 1
        }
    };
    give_int4(bucket.into())
}

/// width_bucket() over numerics, exact.
fn numeric_width_bucket<'a>(a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let (Datum::Numeric(value), Datum::Numeric(low), Datum::Numeric(high)) = (a[0], a[1], a[2]) else {
        return Err(super::bad_argument("width_bucket"));
    };
    let count = int(a[3])?;
    check_buckets(
        count,
        value.is_nan() || low.is_nan() || high.is_nan(),
        low.is_infinite() || high.is_infinite(),
    )?;
    if let Some(outer) = outer_bucket(value.compare(low), value.compare(high), low.compare(high), count)? {
        return give_int4(outer.into());
    }
    let (Numeric::Finite(value), Numeric::Finite(low), Numeric::Finite(high)) =
        (value.load(), low.load(), high.load())
    else {
        return Err(super::bad_argument("width_bucket"));
    };
    let scale = value.scale.max(low.scale).max(high.scale);
    let at_scale = |number: Decimal| number.mantissa * BigInt::from(10).pow(scale - number.scale);
    let (value, low, high) = (at_scale(value), at_scale(low), at_scale(high));
    // Both differences have the sign of the bounds' order, so that this rounds down.
    let bucket = (value - &low) * BigInt::from(count) / (high - low) + BigInt::from(1);
    give_int4(i128::try_from(bucket).unwrap_or(i128::MAX))
}

/// A random integer from a range, both ends included.
fn random_between(cx: &EvalContext<'_, '_>, low: i64, high: i64) -> Result<i64> {
    if low > high {
        return Err(invalid("lower bound must be less than or equal to upper bound"));
    }
    let span = (i128::from(high) - i128::from(low) + 1) as u128;
    Ok((i128::from(low) + (u128::from(cx.session.random()) % span) as i128) as i64)
}

pub(super) static FUNCTIONS: &[Function] = &[
    exact!("ceil", Numeric::ceiling),
    exact!("ceiling", Numeric::ceiling),
    exact!("floor", Numeric::floor),
    exact!("round", |v: &Numeric| v.round(0)),
    exact!("trunc", |v: &Numeric| v.truncate(0)),
    func("trim_scale", &[NUM], NUM, |cx, a| give_numeric(&numeric(a[0])?.trim_scale()?, cx.arena)),
    plain!("ceil", f64::ceil),
    plain!("ceiling", f64::ceil),
    plain!("floor", f64::floor),
    plain!("round", f64::round_ties_even),
    plain!("trunc", f64::trunc),
    func("round", &[NUM, I4], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.round(scale_argument(a[1])?), cx.arena)
    }),
    func("trunc", &[NUM, I4], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.truncate(scale_argument(a[1])?), cx.arena)
    }),
    func("sign", &[NUM], NUM, |cx, a| {
        let number = numeric(a[0])?;
        let sign =
            if matches!(number, Numeric::NaN) { number } else { Numeric::from(i64::from(number.signum())) };
        give_numeric(&sign, cx.arena)
    }),
    plain!("sign", |v| if v > 0.0 {
        1.0
    } else if v < 0.0 {
        -1.0
    } else {
        0.0
    }),
    func("scale", &[NUM], I4, |_, a| {
        Ok(match a[0] {
            Datum::Numeric(number) if matches!(number.load(), Numeric::Finite(_)) => {
                Datum::Int4(number.scale() as i32)
            }
            _ => Datum::Null,
        })
    }),
    func("min_scale", &[NUM], I4, |_, a| {
        Ok(match numeric(a[0])?.trim_scale()? {
            Numeric::Finite(decimal) => Datum::Int4(decimal.scale as i32),
            _ => Datum::Null,
        })
    }),
    func("sqrt", &[NUM], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(Numeric::NaN, |v, _| v.sqrt())?, cx.arena)
    }),
    func("sqrt", &[F8], F8, square_root),
    plain!("cbrt", f64::cbrt),
    func("exp", &[NUM], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(Numeric::NaN, |v, _| v.exp())?, cx.arena)
    }),
    func("exp", &[F8], F8, |_, a| {
        let value = float(a[0])?;
        Ok(Datum::Float8(checked_float(value.exp(), value.is_infinite(), value.is_infinite())?))
    }),
    func("ln", &[NUM], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(Numeric::NaN, |v, _| v.ln())?, cx.arena)
    }),
    func("ln", &[F8], F8, |_, a| logarithm(float(a[0])?, f64::ln)),
    func("log", &[NUM], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(Numeric::from(10), Numeric::log)?, cx.arena)
    }),
    func("log10", &[NUM], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(Numeric::from(10), Numeric::log)?, cx.arena)
    }),
    func("log", &[NUM, NUM], NUM, |cx, a| {
        give_numeric(&numeric(a[1])?.calculate(numeric(a[0])?, Numeric::log)?, cx.arena)
    }),
    func("log", &[F8], F8, |_, a| logarithm(float(a[0])?, f64::log10)),
    func("log10", &[F8], F8, |_, a| logarithm(float(a[0])?, f64::log10)),
    func("power", &[NUM, NUM], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(numeric(a[1])?, Numeric::power)?, cx.arena)
    }),
    func("pow", &[NUM, NUM], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(numeric(a[1])?, Numeric::power)?, cx.arena)
    }),
    func("power", &[F8, F8], F8, float_power),
    func("pow", &[F8, F8], F8, float_power),
    func("degrees", &[F8], F8, |_, a| {
        let angle = float(a[0])?;
        let degrees = angle / RADIANS_PER_DEGREE;
        checked_float(degrees, angle.is_infinite(), angle == 0.0).map(Datum::Float8)
    }),
    func("radians", &[F8], F8, |_, a| {
        let angle = float(a[0])?;
        let radians = angle * RADIANS_PER_DEGREE;
        checked_float(radians, angle.is_infinite(), angle == 0.0).map(Datum::Float8)
    }),
    plain!("atan", f64::atan),
    plain!("sinh", f64::sinh),
    plain!("cosh", f64::cosh),
    plain!("tanh", f64::tanh),
    // The standard library's function squares its argument.
    plain!("asinh", |v| if v.is_finite() && v.abs() > 1e100 {
        (v.abs().ln() + std::f64::consts::LN_2).copysign(v)
    } else {
        v.asinh()
    }),
    func("sin", &[F8], F8, |_, a| finite_angle(float(a[0])?, f64::sin)),
    func("cos", &[F8], F8, |_, a| finite_angle(float(a[0])?, f64::cos)),
    func("tan", &[F8], F8, |_, a| finite_angle(float(a[0])?, f64::tan)),
    func("cot", &[F8], F8, |_, a| finite_angle(float(a[0])?, |v| 1.0 / v.tan())),
    func("asin", &[F8], F8, |_, a| bounded(float(a[0])?, f64::asin)),
    func("acos", &[F8], F8, |_, a| bounded(float(a[0])?, f64::acos)),
    func("atan2", &[F8, F8], F8, |_, a| Ok(Datum::Float8(float(a[0])?.atan2(float(a[1])?)))),
    func("pi", &[], F8, |_, _| Ok(Datum::Float8(std::f64::consts::PI))),
    func("gcd", &[I4, I4], I4, |_, a| give_int4(greatest_divisor(int(a[0])?, int(a[1])?))),
    func("gcd", &[I8, I8], I8, |_, a| give_int8(greatest_divisor(int(a[0])?, int(a[1])?))),
    func("gcd", &[NUM, NUM], NUM, |cx, a| {
        let take: fn(&Numeric, &Numeric) -> Result<Numeric> = |left, right| Ok(left.gcd(right));
        give_numeric(&numeric(a[0])?.calculate(numeric(a[1])?, take)?, cx.arena)
    }),
    func("lcm", &[I4, I4], I4, |_, a| give_int4(least_multiple(int(a[0])?, int(a[1])?))),
    func("lcm", &[I8, I8], I8, |_, a| give_int8(least_multiple(int(a[0])?, int(a[1])?))),
    func("lcm", &[NUM, NUM], NUM, |cx, a| {
        let take: fn(&Numeric, &Numeric) -> Result<Numeric> = |left, right| Ok(left.lcm(right));
        give_numeric(&numeric(a[0])?.calculate(numeric(a[1])?, take)?, cx.arena)
    }),
    func("factorial", &[I8], NUM, |cx, a| give_numeric(&Numeric::factorial(int(a[0])?)?, cx.arena)),
    func("width_bucket", &[F8, F8, F8, I4], I4, |_, a| width_bucket(a)),
    func("width_bucket", &[NUM, NUM, NUM, I4], I4, |_, a| numeric_width_bucket(a)),
    func("random", &[], F8, |cx, _| {
        Ok(Datum::Float8((cx.session.random() >> 11) as f64 / (1u64 << 53) as f64))
    })
    .volatile(),
    func("random", &[I4, I4], I4, |cx, a| {
        Ok(Datum::Int4(random_between(cx, int(a[0])?, int(a[1])?)? as i32))
    })
    .volatile(),
    func("random", &[I8, I8], I8, |cx, a| Ok(Datum::Int8(random_between(cx, int(a[0])?, int(a[1])?)?)))
        .volatile(),
    func("setseed", &[F8], oid::VOID, |cx, a| {
        cx.session.set_seed(float(a[0])?);
        Ok(Datum::Text(""))
    })
    .volatile(),
];
