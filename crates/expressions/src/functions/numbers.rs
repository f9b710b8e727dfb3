//! Arithmetic operators.
//!
//! What must hold:
//!
//! 1. An integer result outside its type is an error. The operators compute over `i64` and look at
//!    the result's width last.
//! 2. A float result is an error where finite operands overflow to infinity, or operands other than
//!    zero underflow to it ([`checked_float`]).
//! 3. `integer_operators!` lists int4 with int4 second and int8 with int8 third. [`with_fast`]
//!    marks them by these indexes for evaluation in place.
//! 4. A division of long numerics runs beside the core ([`Numeric::calculate`]).

use super::arguments::{float, give_numeric, int, numeric, out_of_range};
use crate::context::EvalContext;
use crate::function::{Code, Fast, Function, func};
use values::error::{SqlError, SqlState};
use values::types::numeric::{Numeric, Operation, combine};
use values::types::{Datum, oid};

type Result<T> = std::result::Result<T, SqlError>;

const I2: u32 = oid::INT2;
const I4: u32 = oid::INT4;
const I8: u32 = oid::INT8;
const F4: u32 = oid::FLOAT4;
const F8: u32 = oid::FLOAT8;
const NUM: u32 = oid::NUMERIC;

fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

fn int2_result<'a>(value: Option<i64>) -> Result<Datum<'a>> {
    value.and_then(|v| v.try_into().ok()).map(Datum::Int2).ok_or_else(|| out_of_range("smallint"))
}

fn int4_result<'a>(value: Option<i64>) -> Result<Datum<'a>> {
    value.and_then(|v| v.try_into().ok()).map(Datum::Int4).ok_or_else(|| out_of_range("integer"))
}

fn int8_result<'a>(value: Option<i64>) -> Result<Datum<'a>> {
    value.map(Datum::Int8).ok_or_else(|| out_of_range("bigint"))
}

/// One integer operator in three widths, computed over i64.
macro_rules! integer_codes {
    ($($two:ident $four:ident $eight:ident $operation:expr;)*) => {
        $(fn $two<'a>(_: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
            int2_result($operation(int(a[0])?, int(a[1])?)?)
        }
        fn $four<'a>(_: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
            int4_result($operation(int(a[0])?, int(a[1])?)?)
        }
        fn $eight<'a>(_: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
            int8_result($operation(int(a[0])?, int(a[1])?)?)
        })*
    };
}

fn divide(a: i64, b: i64) -> Result<Option<i64>> {
    if b == 0 { Err(division_by_zero()) } else { Ok(a.checked_div(b)) }
}

fn modulo(a: i64, b: i64) -> Result<Option<i64>> {
    if b == 0 { Err(division_by_zero()) } else { Ok(Some(a.wrapping_rem(b))) }
}

integer_codes! {
    int2_add int4_add int8_add |a: i64, b: i64| Ok::<_, SqlError>(a.checked_add(b));
    int2_sub int4_sub int8_sub |a: i64, b: i64| Ok::<_, SqlError>(a.checked_sub(b));
    int2_mul int4_mul int8_mul |a: i64, b: i64| Ok::<_, SqlError>(a.checked_mul(b));
    int2_div int4_div int8_div divide;
    int2_mod int4_mod int8_mod modulo;
    int2_and int4_and int8_and |a: i64, b: i64| Ok::<_, SqlError>(Some(a & b));
    int2_or int4_or int8_or |a: i64, b: i64| Ok::<_, SqlError>(Some(a | b));
    int2_xor int4_xor int8_xor |a: i64, b: i64| Ok::<_, SqlError>(Some(a ^ b));
}

/// Checks a float result as PostgreSQL does: overflow to infinity and underflow to zero are errors.
pub(super) fn checked_float(value: f64, infinite_input: bool, zero_possible: bool) -> Result<f64> {
    let error =
        |what| SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("value out of range: {what}"));
    if value.is_infinite() && !infinite_input {
        return Err(error("overflow"));
    }
    if value == 0.0 && !zero_possible {
        return Err(error("underflow"));
    }
    Ok(value)
}

/// base ^ exponent
pub(super) fn float_power<'a>(_: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let (base, exponent) = (float(a[0])?, float(a[1])?);
    let error = |message| SqlError::new(SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION, message);
    if base == 0.0 && exponent < 0.0 {
        return Err(error("zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(error("a negative number raised to a non-integer power yields a complex result"));
    }
    let infinite = base.is_infinite() || exponent.is_infinite();
    Ok(Datum::Float8(checked_float(base.powf(exponent), infinite, base == 0.0 || infinite)?))
}

/// |/ value
pub(super) fn square_root<'a>(_: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let value = float(a[0])?;
    if value < 0.0 {
        return Err(SqlError::new(
            SqlState::INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "cannot take square root of a negative number",
        ));
    }
    Ok(Datum::Float8(value.sqrt()))
}

fn float_operation(operator: u8, a: f64, b: f64) -> Result<f64> {
    let infinite = a.is_infinite() || b.is_infinite();
    match operator {
        b'+' => checked_float(a + b, infinite, true),
        b'-' => checked_float(a - b, infinite, true),
        b'*' => checked_float(a * b, infinite, a == 0.0 || b == 0.0),
        _ if b == 0.0 && !a.is_nan() => Err(division_by_zero()),
        _ => checked_float(a / b, a.is_infinite(), a == 0.0 || b.is_infinite()),
    }
}

macro_rules! float_codes {
    ($($eight:ident $four:ident $operator:literal;)*) => {
        $(fn $eight<'a>(_: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
            Ok(Datum::Float8(float_operation($operator, float(a[0])?, float(a[1])?)?))
        }
        fn $four<'a>(_: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
            let (left, right) = (float(a[0])?, float(a[1])?);
            let wide = float_operation($operator, left, right)?;
            let infinite = left.is_infinite() || right.is_infinite();
            let narrow = f64::from(wide as f32);
            Ok(Datum::Float4(checked_float(narrow, infinite, wide == 0.0)? as f32))
        })*
    };
}

float_codes! {
    float8_add float4_add b'+';
    float8_sub float4_sub b'-';
    float8_mul float4_mul b'*';
    float8_div float4_div b'/';
}

fn numeric_operation<'a>(
    operation: Operation,
    cx: &EvalContext<'a, '_>,
    a: &[Datum<'a>],
) -> Result<Datum<'a>> {
    match a {
        [Datum::Numeric(left), Datum::Numeric(right)] => {
            Ok(Datum::Numeric(combine(operation, *left, *right, cx.arena)?))
        }
        _ => Err(super::bad_argument("numeric")),
    }
}

const fn arithmetic(
    name: &'static str,
    types: &'static [u32],
    result: u32,
    operator: &'static str,
    code: Code,
) -> Function {
    func(name, types, result, code).op(operator)
}

const fn fast(mut function: Function, fast: Fast) -> Function {
    function.fast = Some(fast);
    function
}

/// One operator over two integer widths. The result has the wider one.
macro_rules! integer_operators {
    ($operator:literal $two:ident $four:ident $eight:ident) => {
        [
            arithmetic(stringify!($two), &[I2, I2], I2, $operator, $two),
            arithmetic(stringify!($four), &[I4, I4], I4, $operator, $four),
            arithmetic(stringify!($eight), &[I8, I8], I8, $operator, $eight),
            arithmetic(stringify!($four), &[I2, I4], I4, $operator, $four),
            arithmetic(stringify!($four), &[I4, I2], I4, $operator, $four),
            arithmetic(stringify!($eight), &[I2, I8], I8, $operator, $eight),
            arithmetic(stringify!($eight), &[I8, I2], I8, $operator, $eight),
            arithmetic(stringify!($eight), &[I4, I8], I8, $operator, $eight),
            arithmetic(stringify!($eight), &[I8, I4], I8, $operator, $eight),
        ]
    };
}

const fn with_fast(list: [Function; 9], kind: Fast) -> [Function; 9] {
    let mut list = list;
    list[1] = fast(list[1], kind);
    list[2] = fast(list[2], kind);
    list
}

/// The four operations over the integer widths.
pub(super) static INTEGERS: [[Function; 9]; 4] = [
    with_fast(integer_operators!("+" int2_add int4_add int8_add), Fast::Add),
    with_fast(integer_operators!("-" int2_sub int4_sub int8_sub), Fast::Subtract),
    integer_operators!("*" int2_mul int4_mul int8_mul),
    integer_operators!("/" int2_div int4_div int8_div),
];

const fn negate(types: &'static [u32], result: u32) -> Function {
    arithmetic("minus", types, result, "-", |cx, a| {
        Ok(match a[0] {
            Datum::Int2(v) => return int2_result(Some(-i64::from(v))),
            Datum::Int4(v) => return int4_result(Some(-i64::from(v))),
            Datum::Int8(v) => return int8_result(v.checked_neg()),
            Datum::Float4(v) => Datum::Float4(-v),
            Datum::Float8(v) => Datum::Float8(-v),
            other => return give_numeric(&numeric(other)?.negate(), cx.arena),
        })
    })
}

const fn same(types: &'static [u32], result: u32) -> Function {
    arithmetic("plus", types, result, "+", |_, a| Ok(a[0]))
}

const fn absolute(
    name: &'static str,
    operator: &'static str,
    types: &'static [u32],
    result: u32,
) -> Function {
    arithmetic(name, types, result, operator, |cx, a| {
        Ok(match a[0] {
            Datum::Int2(v) => return int2_result(Some(i64::from(v).abs())),
            Datum::Int4(v) => return int4_result(Some(i64::from(v).abs())),
            Datum::Int8(v) => return int8_result(v.checked_abs()),
            Datum::Float4(v) => Datum::Float4(v.abs()),
            Datum::Float8(v) => Datum::Float8(v.abs()),
            other => return give_numeric(&numeric(other)?.absolute(), cx.arena),
        })
    })
}

fn shift(value: i64, by: i64, bits: u32) -> i64 {
    value.wrapping_shl((by as u32) & (bits - 1))
}

pub(super) static FUNCTIONS: &[Function] = &[
    arithmetic("int2mod", &[I2, I2], I2, "%", int2_mod),
    arithmetic("int4mod", &[I4, I4], I4, "%", int4_mod),
    arithmetic("int8mod", &[I8, I8], I8, "%", int8_mod),
    func("mod", &[I2, I2], I2, int2_mod),
    func("mod", &[I4, I4], I4, int4_mod),
    func("mod", &[I8, I8], I8, int8_mod),
    arithmetic("int2and", &[I2, I2], I2, "&", int2_and),
    arithmetic("int4and", &[I4, I4], I4, "&", int4_and),
    arithmetic("int8and", &[I8, I8], I8, "&", int8_and),
    arithmetic("int2or", &[I2, I2], I2, "|", int2_or),
    arithmetic("int4or", &[I4, I4], I4, "|", int4_or),
    arithmetic("int8or", &[I8, I8], I8, "|", int8_or),
    arithmetic("int2xor", &[I2, I2], I2, "#", int2_xor),
    arithmetic("int4xor", &[I4, I4], I4, "#", int4_xor),
    arithmetic("int8xor", &[I8, I8], I8, "#", int8_xor),
    arithmetic("int2not", &[I2], I2, "~", |_, a| int2_result(Some(!int(a[0])?))),
    arithmetic("int4not", &[I4], I4, "~", |_, a| int4_result(Some(!int(a[0])?))),
    arithmetic("int8not", &[I8], I8, "~", |_, a| int8_result(Some(!int(a[0])?))),
    arithmetic("int2shl", &[I2, I4], I2, "<<", |_, a| {
        Ok(Datum::Int2(shift(int(a[0])?, int(a[1])?, 32) as i16))
    }),
    arithmetic("int2shr", &[I2, I4], I2, ">>", |_, a| {
        Ok(Datum::Int2((int(a[0])? >> (int(a[1])? & 31)) as i16))
    }),
    arithmetic("int4shl", &[I4, I4], I4, "<<", |_, a| {
        Ok(Datum::Int4(shift(int(a[0])?, int(a[1])?, 32) as i32))
    }),
    arithmetic("int8shl", &[I8, I4], I8, "<<", |_, a| Ok(Datum::Int8(shift(int(a[0])?, int(a[1])?, 64)))),
    arithmetic("int4shr", &[I4, I4], I4, ">>", |_, a| {
        Ok(Datum::Int4((int(a[0])? >> (int(a[1])? & 31)) as i32))
    }),
    arithmetic("int8shr", &[I8, I4], I8, ">>", |_, a| Ok(Datum::Int8(int(a[0])? >> (int(a[1])? & 63)))),
    arithmetic("float4pl", &[F4, F4], F4, "+", float4_add),
    arithmetic("float4mi", &[F4, F4], F4, "-", float4_sub),
    arithmetic("float4mul", &[F4, F4], F4, "*", float4_mul),
    arithmetic("float4div", &[F4, F4], F4, "/", float4_div),
    arithmetic("float48pl", &[F4, F8], F8, "+", float8_add),
    arithmetic("float84pl", &[F8, F4], F8, "+", float8_add),
    arithmetic("float48mi", &[F4, F8], F8, "-", float8_sub),
    arithmetic("float84mi", &[F8, F4], F8, "-", float8_sub),
    arithmetic("float48mul", &[F4, F8], F8, "*", float8_mul),
    arithmetic("float84mul", &[F8, F4], F8, "*", float8_mul),
    arithmetic("float48div", &[F4, F8], F8, "/", float8_div),
    arithmetic("float84div", &[F8, F4], F8, "/", float8_div),
    arithmetic("float8pl", &[F8, F8], F8, "+", float8_add),
    arithmetic("float8mi", &[F8, F8], F8, "-", float8_sub),
    arithmetic("float8mul", &[F8, F8], F8, "*", float8_mul),
    arithmetic("float8div", &[F8, F8], F8, "/", float8_div),
    arithmetic("numeric_add", &[NUM, NUM], NUM, "+", |cx, a| numeric_operation(Operation::Add, cx, a)),
    arithmetic("numeric_sub", &[NUM, NUM], NUM, "-", |cx, a| numeric_operation(Operation::Subtract, cx, a)),
    arithmetic("numeric_mul", &[NUM, NUM], NUM, "*", |cx, a| numeric_operation(Operation::Multiply, cx, a)),
    arithmetic("numeric_div", &[NUM, NUM], NUM, "/", |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(numeric(a[1])?, Numeric::divide)?, cx.arena)
    }),
    arithmetic("numeric_mod", &[NUM, NUM], NUM, "%", |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(numeric(a[1])?, Numeric::modulo)?, cx.arena)
    }),
    func("mod", &[NUM, NUM], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(numeric(a[1])?, Numeric::modulo)?, cx.arena)
    }),
    func("div", &[NUM, NUM], NUM, |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(numeric(a[1])?, Numeric::divide_integer)?, cx.arena)
    }),
    arithmetic("numeric_power", &[NUM, NUM], NUM, "^", |cx, a| {
        give_numeric(&numeric(a[0])?.calculate(numeric(a[1])?, Numeric::power)?, cx.arena)
    }),
    arithmetic("dsqrt", &[F8], F8, "|/", square_root),
    arithmetic("dcbrt", &[F8], F8, "||/", |_, a| Ok(Datum::Float8(float(a[0])?.cbrt()))),
    arithmetic("dpow", &[F8, F8], F8, "^", float_power),
    negate(&[I2], I2),
    negate(&[I4], I4),
    negate(&[I8], I8),
    negate(&[F4], F4),
    negate(&[F8], F8),
    negate(&[NUM], NUM),
    same(&[I2], I2),
    same(&[I4], I4),
    same(&[I8], I8),
    same(&[F4], F4),
    same(&[F8], F8),
    same(&[NUM], NUM),
    absolute("abs", "", &[I2], I2),
    absolute("abs", "", &[I4], I4),
    absolute("abs", "", &[I8], I8),
    absolute("abs", "", &[F4], F4),
    absolute("abs", "", &[F8], F8),
    absolute("abs", "", &[NUM], NUM),
    absolute("int2abs", "@", &[I2], I2),
    absolute("int4abs", "@", &[I4], I4),
    absolute("int8abs", "@", &[I8], I8),
    absolute("float4abs", "@", &[F4], F4),
    absolute("float8abs", "@", &[F8], F8),
    absolute("numeric_abs", "@", &[NUM], NUM),
];
