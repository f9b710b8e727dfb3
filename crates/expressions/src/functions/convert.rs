//! The functions that casts call.
//!
//! What must hold:
//!
//! 1. A value outside the target's range is an error and never wraps around. OIDs and int4 are the
//!    exception: both have the same 32 bits.
//! 2. Halves of floats round to even, halves of numerics away from zero.
//! 3. A conversion that reads the session's zone is stable. Casts between types of times choose by
//!    the source whether it is one ([`to_time`]).
//! 4. A comparison with a timestamptz has no range: a local time beyond all instants lies beyond
//!    all but the infinities.

use super::arguments::{as_float, name as name_argument, out_of_range};
use super::bad_argument;
use crate::context::EvalContext;
use crate::function::{Code, Function, func};
use values::error::{SqlError, SqlState};
use values::text::float::{parse_f32, parse_f64};
use values::types::compare::unpadded;
use values::types::datetime::{self, DAY};
use values::types::numeric::{Numeric, NumericRef, store_small};
use values::types::{Datum, Interval, oid};

type Result<T> = std::result::Result<T, SqlError>;

/// Any number as an integer. Halves of floats round to even, halves of numerics away from zero.
fn integer(value: Datum<'_>, name: &str) -> Result<i64> {
    let float = |value: f64| {
        let rounded = value.round_ties_even();
        if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
            Ok(rounded as i64)
        } else {
            Err(out_of_range(name))
        }
    };
    match value {
        Datum::Float4(v) => float(v.into()),
        Datum::Float8(v) => float(v),
        Datum::Numeric(v) => {
            let number = v.load();
            let special = match number {
                Numeric::NaN => "NaN",
                Numeric::Infinity | Numeric::NegInfinity => "infinity",
                Numeric::Finite(_) => return number.to_i64().ok_or_else(|| out_of_range(name)),
            };
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("cannot convert {special} to {name}")))
        }
        other => other.as_i64().ok_or_else(|| bad_argument(name)),
    }
}

fn to_int2<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    let value = integer(arguments[0], "smallint")?;
    value.try_into().map(Datum::Int2).map_err(|_| out_of_range("smallint"))
}

fn to_int4<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    if let Datum::Oid(value) = arguments[0] {
        return Ok(Datum::Int4(value as i32));
    }
    let value = integer(arguments[0], "integer")?;
    value.try_into().map(Datum::Int4).map_err(|_| out_of_range("integer"))
}

fn to_int8<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    integer(arguments[0], "bigint").map(Datum::Int8)
}

/// The text of a numeric. PostgreSQL converts through text: the result is rounded once and may
/// overflow or underflow.
fn numeric_text(number: NumericRef<'_>) -> String {
    let mut shown = Vec::new();
    number.write(&mut shown);
    String::from_utf8_lossy(&shown).into_owned()
}

fn to_float4<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    if let Datum::Numeric(number) = arguments[0] {
        return parse_f32(&numeric_text(number)).map(Datum::Float4);
    }
    if let Some(integer) = arguments[0].as_i64() {
        return Ok(Datum::Float4(integer as f32));
    }
    let wide = as_float(arguments[0]).ok_or_else(|| bad_argument("float4"))?;
    let value = wide as f32;
    if value.is_infinite() && !wide.is_infinite() {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    if value == 0.0 && wide != 0.0 {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow"));
    }
    Ok(Datum::Float4(value))
}

fn to_float8<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    let wide = as_float(arguments[0]).ok_or_else(|| bad_argument("float8"))?;
    if let Datum::Numeric(number) = arguments[0]
        && (wide.is_infinite() || wide == 0.0)
    {
        return parse_f64(&numeric_text(number)).map(Datum::Float8);
    }
    Ok(Datum::Float8(wide))
}

fn to_numeric<'a>(context: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    let number = match arguments[0] {
        Datum::Float4(v) => Numeric::from_float(v.into(), 6)?.store(context.arena)?,
        Datum::Float8(v) => Numeric::from_float(v, 15)?.store(context.arena)?,
        other => store_small(other.as_i64().ok_or_else(|| bad_argument("numeric"))?.into(), 0, context.arena),
    };
    Ok(Datum::Numeric(number))
}

fn code_to_oid<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    let value = arguments[0].as_i64().ok_or_else(|| bad_argument("oid"))?;
    match arguments[0] {
        Datum::Int8(_) => u32::try_from(value).map(Datum::Oid).map_err(|_| out_of_range("OID")),
        _ => Ok(Datum::Oid(value as u32)),
    }
}

fn code_unpad<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    match arguments[0] {
        Datum::Padded(text) => Ok(Datum::Text(unpadded(text))),
        _ => Err(bad_argument("text")),
    }
}

fn code_to_name<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    match arguments[0] {
        Datum::Text(text) => Ok(Datum::Text(values::identifier::truncate_name(text))),
        Datum::Padded(text) => Ok(Datum::Text(values::identifier::truncate_name(unpadded(text)))),
        _ => Err(bad_argument("name")),
    }
}

fn code_bool_to_int4<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    Ok(Datum::Int4(i32::from(matches!(arguments[0], Datum::Bool(true)))))
}

fn code_int4_to_bool<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    Ok(Datum::Bool(arguments[0].as_i64() != Some(0)))
}

/// A date, timestamp or timestamptz as local timestamp in the session's zone.
pub(super) fn local_time(context: &EvalContext<'_, '_>, value: Datum<'_>) -> Result<i64> {
    match value {
        Datum::Date(days) => datetime::date_to_timestamp(days),
        Datum::Timestamp(micros) => Ok(micros),
        Datum::Timestamptz(micros) if datetime::is_infinite(micros) => Ok(micros),
        Datum::Timestamptz(micros) => datetime::checked_timestamp(Some(datetime::to_local(
            &context.session.settings().time_zone,
            micros,
        ))),
        _ => Err(bad_argument("timestamp")),
    }
}

fn to_date<'a>(context: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    Ok(Datum::Date(datetime::timestamp_to_date(local_time(context, arguments[0])?)))
}

fn to_timestamp<'a>(context: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    Ok(Datum::Timestamp(local_time(context, arguments[0])?))
}

fn to_timestamptz<'a>(context: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    let local = local_time(context, arguments[0])?;
    let instant = datetime::to_instant(&context.session.settings().time_zone, local);
    instant.map(Datum::Timestamptz).map_err(|error| match arguments[0] {
        Datum::Date(_) => datetime::date_out_of_range(),
        _ => error,
    })
}

/// As [`to_timestamptz`], for a comparison. A local time that no timestamptz can hold does not
/// fail: it becomes a value beyond every finite instant, inside the infinities.
fn to_comparable_instant<'a>(
    context: &mut EvalContext<'a, '_>,
    arguments: &[Datum<'a>],
) -> Result<Datum<'a>> {
    let late = match arguments[0] {
        Datum::Date(days) => days > 0,
        Datum::Timestamp(micros) => micros > 0,
        _ => return Err(bad_argument("timestamptz")),
    };
    let beyond = Datum::Timestamptz(if late { i64::MAX - 1 } else { i64::MIN + 1 });
    Ok(to_timestamptz(context, arguments).unwrap_or(beyond))
}

fn code_to_time<'a>(context: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    match arguments[0] {
        Datum::Interval(interval) if interval.is_infinite() => {
            Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "cannot convert infinite interval to time"))
        }
        Datum::Interval(interval) => Ok(Datum::Time(interval.micros.rem_euclid(DAY))),
        value => {
            let local = local_time(context, value)?;
            if datetime::is_infinite(local) {
                return Ok(Datum::Null);
            }
            Ok(Datum::Time(local.rem_euclid(DAY)))
        }
    }
}

fn to_interval<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    match arguments[0] {
        Datum::Time(micros) => Ok(Datum::Interval(Interval { months: 0, days: 0, micros })),
        _ => Err(bad_argument("interval")),
    }
}

/// The bytes of an integer, the most significant first.
fn int_to_bytea<'a>(context: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>> {
    let bytes: &'a [u8] = match arguments[0] {
        Datum::Int2(value) => context.arena.alloc(value.to_be_bytes()),
        Datum::Int4(value) => context.arena.alloc(value.to_be_bytes()),
        Datum::Int8(value) => context.arena.alloc(value.to_be_bytes()),
        _ => return Err(bad_argument("bytea")),
    };
    Ok(Datum::Bytea(bytes))
}

/// The integer whose last bytes these are; at most `width` bytes.
fn bytes_to_int(value: Datum<'_>, width: usize, name: &str) -> Result<i64> {
    let Datum::Bytea(bytes) = value else { return Err(bad_argument(name)) };
    if bytes.len() > width {
        return Err(out_of_range(name));
    }
    Ok(bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte)))
}

const fn conversion(name: &'static str, result: u32, code: Code) -> Function {
    func(name, &[oid::ANY], result, code)
}

static NUMBERS: [Function; 6] = [
    conversion("int2", oid::INT2, to_int2),
    conversion("int4", oid::INT4, to_int4),
    conversion("int8", oid::INT8, to_int8),
    conversion("float4", oid::FLOAT4, to_float4),
    conversion("float8", oid::FLOAT8, to_float8),
    conversion("numeric", oid::NUMERIC, to_numeric),
];
static TIMES: [Function; 5] = [
    conversion("date", oid::DATE, to_date),
    conversion("timestamp", oid::TIMESTAMP, to_timestamp),
    conversion("timestamptz", oid::TIMESTAMPTZ, to_timestamptz).stable(),
    conversion("time", oid::TIME, code_to_time),
    conversion("interval", oid::INTERVAL, to_interval),
];
/// The conversions of a timestamptz, which depend on the session's zone.
static LOCAL_TIMES: [Function; 3] = [
    conversion("date", oid::DATE, to_date).stable(),
    conversion("timestamp", oid::TIMESTAMP, to_timestamp).stable(),
    conversion("time", oid::TIME, code_to_time).stable(),
];
static TO_BYTEA: Function = conversion("bytea", oid::BYTEA, int_to_bytea);
static FROM_BYTEA: [Function; 3] = [
    conversion("int2", oid::INT2, |_, a| Ok(Datum::Int2(bytes_to_int(a[0], 2, "smallint")? as i16))),
    conversion("int4", oid::INT4, |_, a| Ok(Datum::Int4(bytes_to_int(a[0], 4, "integer")? as i32))),
    conversion("int8", oid::INT8, |_, a| Ok(Datum::Int8(bytes_to_int(a[0], 8, "bigint")?))),
];
static COMPARABLE_INSTANT: Function =
    conversion("timestamptz", oid::TIMESTAMPTZ, to_comparable_instant).stable();
static TEXT_TO_CLASS: Function = conversion("regclass", oid::REGCLASS, |cx, a| {
    let name = name_argument(a[0])?;
    values::text::alias::named_class(name, cx.session).map(Datum::Oid)
})
.stable();
static TO_OID: Function = conversion("oid", oid::OID, code_to_oid);
static UNPAD: Function = conversion("text", oid::TEXT, code_unpad);
static TO_NAME: Function = conversion("name", oid::NAME, code_to_name);
static BOOL_TO_TEXT: Function = conversion("text", oid::TEXT, |_, a| {
    Ok(Datum::Text(if matches!(a[0], Datum::Bool(true)) { "true" } else { "false" }))
});
static BOOL_TO_INT4: Function = conversion("int4", oid::INT4, code_bool_to_int4);
static INT4_TO_BOOL: Function = conversion("bool", oid::BOOL, code_int4_to_bool);

static CHAR_TO_INT4: Function = conversion("int4", oid::INT4, |_, a| {
    Ok(if let Datum::Char(value) = a[0] { Datum::Int4(i32::from(value as i8)) } else { Datum::Null })
});
static INT4_TO_CHAR: Function = conversion("char", oid::CHAR, |_, a| {
    let Datum::Int4(value) = a[0] else { return Ok(Datum::Null) };
    let byte = i8::try_from(value).map_err(|_| out_of_range("\"char\""))?;
    Ok(Datum::Char(byte as u8))
});

fn find(list: &'static [Function], to: u32) -> Option<&'static Function> {
    list.iter().find(|function| function.result == to)
}

/// The function that converts to a number type.
pub(super) fn to_number(to: u32) -> Option<&'static Function> {
    find(&NUMBERS, to)
}

/// The function that converts between types of dates and times.
pub(super) fn to_time(from: u32, to: u32) -> Option<&'static Function> {
    if from == oid::TIMESTAMPTZ { find(&LOCAL_TIMES, to) } else { find(&TIMES, to) }
}

/// The function that converts integers to bytea.
pub(super) fn to_bytea() -> &'static Function {
    &TO_BYTEA
}

/// The function that converts bytea to an integer type.
pub(super) fn from_bytea(to: u32) -> Option<&'static Function> {
    find(&FROM_BYTEA, to)
}

/// The function that converts dates and timestamps to timestamptz for a comparison.
pub(super) fn comparable_instant() -> &'static Function {
    &COMPARABLE_INSTANT
}

/// The function that converts text to regclass.
pub(super) fn text_to_class() -> &'static Function {
    &TEXT_TO_CLASS
}

/// The function that converts integers to oid.
pub(super) fn to_oid() -> &'static Function {
    &TO_OID
}

/// The function that drops bpchar's padding.
pub(super) fn unpad() -> &'static Function {
    &UNPAD
}

/// The function that cuts text to a name's length.
pub(super) fn to_name() -> &'static Function {
    &TO_NAME
}

/// The function that converts "char" to int4.
pub(super) fn char_to_int4() -> &'static Function {
    &CHAR_TO_INT4
}

/// The function that converts int4 to "char".
pub(super) fn int4_to_char() -> &'static Function {
    &INT4_TO_CHAR
}

/// The function that converts bool to int4.
pub(super) fn bool_to_int4() -> &'static Function {
    &BOOL_TO_INT4
}

/// The function that converts int4 to bool.
pub(super) fn int4_to_bool() -> &'static Function {
    &INT4_TO_BOOL
}

/// The function that converts bool to text: the whole word, where output has one letter.
pub(super) fn bool_to_text() -> &'static Function {
    &BOOL_TO_TEXT
}
