//! Dates, times and intervals from numbers, bins and ranges: make_date() and similar functions,
//! date_bin(), date_add(), OVERLAPS.
//!
//! What must hold:
//!
//! 1. Each part of a date or time is judged by itself, and nothing carries into a larger part. A
//!    time of 24:00 and a second of 60 are the exceptions.
//! 2. A float becomes microseconds by rounding halves to even, and is refused where it does not
//!    fit.
//! 3. The bins of date_bin() have one length, so a stride with months is refused.

use std::cmp::Ordering;

use super::super::arguments::{float, int, interval, name};
use super::{DATE, F8, Result, SPAN, STAMP, STAMPTZ, TEXT, TIME, add_interval_in, span_plus, stamp, zones};
use crate::context::EvalContext;
use crate::function::{Function, func};
use values::error::{SqlError, SqlState};
use values::text::float as floats;
use values::types::datetime::{
    self, DAY, EPOCH_MICROS, HOUR, MINUTE, checked_date, checked_timestamp, days_of, is_infinite, month_days,
};
use values::types::interval::interval_out_of_range;
use values::types::{Datum, Interval, compare, oid};

const I4: u32 = oid::INT4;

fn overflow(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, message)
}

/// Six digits of a number, as messages show it.
fn shown(value: f64) -> String {
    let mut out = Vec::new();
    floats::write_f64(value, -9, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Days since 2000-01-01 of year, month and day. With `counted` the message counts years before
/// Christ as astronomers do, which PostgreSQL's make_date() does.
fn make_date(a: &[Datum<'_>], counted: bool) -> Result<i32> {
    let (year, month, day) = (int(a[0])?, int(a[1])?, int(a[2])?);
    let least = year == i64::from(i32::MIN);
    let astronomical = if year < 0 && !least { year + 1 } else { year };
    let shown = if counted { astronomical } else { year };
    let refused = |what: &str| overflow(format!("{what} out of range: {shown}-{month:02}-{day:02}"));
    let fits = year != 0
        && !least
        && (1..=12).contains(&month)
        && (1..=month_days(astronomical, month)).contains(&day);
    if !fits {
        return Err(refused("date field value"));
    }
    checked_date(days_of(astronomical, month, day)).map_err(|_| refused("date"))
}

/// The microseconds of hour, minute and second.
fn make_clock(a: &[Datum<'_>]) -> Result<i64> {
    let (hour, minute, second) = (int(a[0])?, int(a[1])?, float(a[2])?);
    let micros = (second * 1e6).round_ties_even() as i64;
    let fits = (0..=24).contains(&hour) && (0..60).contains(&minute) && second >= 0.0 && micros <= MINUTE;
    let total = if fits { hour * HOUR + minute * MINUTE + micros } else { 0 };
    if !fits || total > DAY {
        let message = format!("time field value out of range: {hour}:{minute:02}:{:0>2}", shown(second));
        return Err(overflow(message));
    }
    Ok(total)
}

fn make_local(a: &[Datum<'_>]) -> Result<i64> {
    let days = i64::from(make_date(a, false)?);
    let clock = make_clock(&a[3..])?;
    let local = days.checked_mul(DAY).and_then(|days| days.checked_add(clock));
    local.filter(|local| datetime::in_range(*local)).ok_or_else(|| {
        let part = |at: usize| int(a[at]).unwrap_or_default();
        overflow(format!(
            "timestamp out of range: {}-{:02}-{:02} {}:{:02}:{:0>2}",
            part(0),
            part(1),
            part(2),
            part(3),
            part(4),
            shown(float(a[5]).unwrap_or_default())
        ))
    })
}

fn make_instant<'a>(cx: &EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let local = make_local(a)?;
    let Some(zone) = a.get(6) else {
        let zone = &cx.session.settings().time_zone;
        return datetime::to_instant(zone, local).map(Datum::Timestamptz);
    };
    zones::from_local_or_offset(cx, name(*zone)?, local).map(Datum::Timestamptz)
}

/// The interval of years, months, weeks, days, hours, minutes and seconds; missing ones are 0.
fn make_interval(a: &[Datum<'_>]) -> Result<Interval> {
    let part = |at: usize| a.get(at).map_or(Ok(0), |value| int(*value));
    let seconds = a.get(6).map_or(Ok(0.0), |value| float(*value))?;
    let months = i32::try_from(part(0)? * 12 + part(1)?);
    let days = i32::try_from(part(2)? * 7 + part(3)?);
    let micros = (seconds * 1e6).round_ties_even();
    if seconds.is_finite() && micros.is_infinite() {
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow"));
    }
    let in_i64 = micros.abs() < 9.223_372_036_854_775e18;
    let clock =
        in_i64.then(|| part(4).ok()?.checked_mul(HOUR)?.checked_add(part(5).ok()? * MINUTE)).flatten();
    match (months, days, clock.and_then(|clock| clock.checked_add(micros as i64))) {
        (Ok(months), Ok(days), Some(micros)) => {
            let value = Interval { months, days, micros };
            if value.is_infinite() { Err(interval_out_of_range()) } else { Ok(value) }
        }
        _ => Err(interval_out_of_range()),
    }
}

fn to_timestamp<'a>(a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let seconds = float(a[0])?;
    if seconds.is_infinite() {
        return Ok(Datum::Timestamptz(if seconds > 0.0 { i64::MAX } else { i64::MIN }));
    }
    if seconds.is_nan() {
        return Err(overflow("timestamp cannot be NaN"));
    }
    let micros = (seconds * 1e6).round_ties_even();
    let in_i64 = micros.abs() < 9.223_372_036_854_775e18;
    let since = in_i64.then_some(micros as i64).and_then(|micros| micros.checked_sub(EPOCH_MICROS));
    let since = since.filter(|since| datetime::in_range(*since));
    since
        .map(Datum::Timestamptz)
        .ok_or_else(|| overflow(format!("timestamp out of range: \"{}\"", shown(seconds))))
}

/// The start of a timestamp's bin. All bins have one length, and one of them starts at the origin.
fn binned(stride: Interval, source: i64, origin: i64) -> Result<i64> {
    if is_infinite(source) {
        return Ok(source);
    }
    if is_infinite(origin) {
        return Err(overflow("origin out of range"));
    }
    if stride.is_infinite() {
        return Err(overflow("timestamps cannot be binned into infinite intervals"));
    }
    if stride.months != 0 {
        let message = "timestamps cannot be binned into intervals containing months or years";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    let length = i64::from(stride.days).checked_mul(DAY).and_then(|days| days.checked_add(stride.micros));
    let length = length.ok_or_else(interval_out_of_range)?;
    if length <= 0 {
        return Err(overflow("stride must be greater than zero"));
    }
    let since = source.checked_sub(origin).ok_or_else(interval_out_of_range)?;
    checked_timestamp(source.checked_sub(since.rem_euclid(length)))
}

fn moved_in_zone<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>], back: bool) -> Result<Datum<'a>> {
    let span = interval(a[1])?;
    let span = if back { span.negate()? } else { span };
    match a.get(2) {
        None => span_plus(cx, a[0], span),
        Some(zone) => {
            let zone = zones::lasting(cx, name(*zone)?)?;
            add_interval_in(&zone, stamp(a[0])?, span).map(Datum::Timestamptz)
        }
    }
}

/// OVERLAPS of two ranges whose ends are in any order. An end that is NULL is unknown.
fn overlaps<'a>(ends: [Datum<'a>; 4]) -> Result<Datum<'a>> {
    let stretch = |one: Datum<'a>, other: Datum<'a>| {
        Ok(match (one, other) {
            (Datum::Null, Datum::Null) => None,
            (Datum::Null, start) | (start, Datum::Null) => Some((start, None)),
            _ if compare(one, other)?.is_gt() => Some((other, Some(one))),
            _ => Some((one, Some(other))),
        })
    };
    let [a, b, c, d] = ends;
    let (Some(first), Some(second)) = (stretch(a, b)?, stretch(c, d)?) else { return Ok(Datum::Null) };
    let (earlier, later) = match compare(first.0, second.0)? {
        Ordering::Less => (first, second),
        Ordering::Greater => (second, first),
        Ordering::Equal if first.1.is_none() || second.1.is_none() => return Ok(Datum::Null),
        Ordering::Equal => return Ok(Datum::Bool(true)),
    };
    Ok(match (earlier.1, later.1) {
        (None, _) => Datum::Null,
        (Some(end), _) if compare(later.0, end)?.is_lt() => Datum::Bool(true),
        (_, None) => Datum::Null,
        _ => Datum::Bool(false),
    })
}

/// OVERLAPS of ranges given by two ends, or by one end and the length.
fn code_overlaps<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let mut end = |start: Datum<'a>, end: Datum<'a>| match (start, end) {
        (Datum::Null, Datum::Interval(_)) => Ok(Datum::Null),
        (_, Datum::Interval(span)) => span_plus(cx, start, span),
        _ => Ok(end),
    };
    let (first, second) = (end(a[0], a[1])?, end(a[2], a[3])?);
    overlaps([a[0], first, a[2], second])
}

/// The four forms of OVERLAPS for one type.
macro_rules! overlapping {
    ($type:expr) => {
        [
            func("overlaps", &[$type, $type, $type, $type], oid::BOOL, code_overlaps).lax(),
            func("overlaps", &[$type, SPAN, $type, SPAN], oid::BOOL, code_overlaps).lax().stable(),
            func("overlaps", &[$type, $type, $type, SPAN], oid::BOOL, code_overlaps).lax().stable(),
            func("overlaps", &[$type, SPAN, $type, $type], oid::BOOL, code_overlaps).lax().stable(),
        ]
    };
}

const STAMPS: [Function; 4] = overlapping!(STAMP);
const INSTANTS: [Function; 4] = overlapping!(STAMPTZ);
const TIMES: [Function; 4] = overlapping!(TIME);

/// make_interval() of the first parts.
const fn made_interval(arguments: &'static [u32]) -> Function {
    func("make_interval", arguments, SPAN, |_, a| make_interval(a).map(Datum::Interval))
}

pub(in crate::functions) static FUNCTIONS: &[Function] = &[
    func("make_date", &[I4, I4, I4], DATE, |_, a| make_date(a, true).map(Datum::Date)),
    func("make_time", &[I4, I4, F8], TIME, |_, a| make_clock(a).map(Datum::Time)),
    func("make_timestamp", &[I4, I4, I4, I4, I4, F8], STAMP, |_, a| make_local(a).map(Datum::Timestamp)),
    func("make_timestamptz", &[I4, I4, I4, I4, I4, F8], STAMPTZ, |cx, a| make_instant(cx, a)).stable(),
    func("make_timestamptz", &[I4, I4, I4, I4, I4, F8, TEXT], STAMPTZ, |cx, a| make_instant(cx, a)).stable(),
    made_interval(&[]),
    made_interval(&[I4]),
    made_interval(&[I4, I4]),
    made_interval(&[I4, I4, I4]),
    made_interval(&[I4, I4, I4, I4]),
    made_interval(&[I4, I4, I4, I4, I4]),
    made_interval(&[I4, I4, I4, I4, I4, I4]),
    made_interval(&[I4, I4, I4, I4, I4, I4, F8]),
    func("to_timestamp", &[F8], STAMPTZ, |_, a| to_timestamp(a)),
    func("date_bin", &[SPAN, STAMP, STAMP], STAMP, |_, a| {
        binned(interval(a[0])?, stamp(a[1])?, stamp(a[2])?).map(Datum::Timestamp)
    }),
    func("date_bin", &[SPAN, STAMPTZ, STAMPTZ], STAMPTZ, |_, a| {
        binned(interval(a[0])?, stamp(a[1])?, stamp(a[2])?).map(Datum::Timestamptz)
    }),
    func("date_add", &[STAMPTZ, SPAN], STAMPTZ, |cx, a| moved_in_zone(cx, a, false)).stable(),
    func("date_add", &[STAMPTZ, SPAN, TEXT], STAMPTZ, |cx, a| moved_in_zone(cx, a, false)).stable(),
    func("date_subtract", &[STAMPTZ, SPAN], STAMPTZ, |cx, a| moved_in_zone(cx, a, true)).stable(),
    func("date_subtract", &[STAMPTZ, SPAN, TEXT], STAMPTZ, |cx, a| moved_in_zone(cx, a, true)).stable(),
    STAMPS[0],
    STAMPS[1],
    STAMPS[2],
    STAMPS[3],
    INSTANTS[0],
    INSTANTS[1],
    INSTANTS[2],
    INSTANTS[3],
    TIMES[0],
    TIMES[1],
    TIMES[2],
    TIMES[3],
];
