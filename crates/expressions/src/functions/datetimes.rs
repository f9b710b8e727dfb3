//! Functions and operators over dates, times and intervals.
//!
//! What must hold:
//!
//! 1. The extreme integers are the infinities. A function asks for them before it computes, and no
//!    computation may end at one.
//! 2. A finite result passes [`checked_timestamp`] or [`checked_date`], so it can be written and
//!    read again.
//! 3. Months and days of an interval move a timestamptz by the calendar of a zone, the rest by the
//!    clock. Each step ends at an instant that exists.
//! 4. A function that reads the session's zone or time is at least stable.

mod fields;
pub(super) mod made;
mod zones;

use fields::{extract, truncated, truncated_in_zone, truncated_span};

use super::arguments::{float, give_numeric, give_text, int, interval, name};
use super::bad_argument;
use crate::context::EvalContext;
use crate::function::{Function, func};
use values::error::{SqlError, SqlState};
use values::types::datetime::{
    self, Civil, DAY, Zone, checked_date, checked_timestamp, days_of, is_infinite, month_days,
};
use values::types::{Datum, Interval, oid};

type Result<T> = std::result::Result<T, SqlError>;

const DATE: u32 = oid::DATE;
const TIME: u32 = oid::TIME;
const STAMP: u32 = oid::TIMESTAMP;
const STAMPTZ: u32 = oid::TIMESTAMPTZ;
const SPAN: u32 = oid::INTERVAL;
const TEXT: u32 = oid::TEXT;
const F8: u32 = oid::FLOAT8;

/// Moves a timestamp by months (the day cut to the month's length), then by days, then by
/// microseconds. 22008 when a step leaves the range.
pub(crate) fn add_interval(local: i64, span: Interval) -> Result<i64> {
    if is_infinite(local) || span.is_infinite() {
        let infinite = if span == Interval::INFINITY { i64::MAX } else { i64::MIN };
        return match (is_infinite(local), span.is_infinite()) {
            (true, true) if local != infinite => Err(datetime::timestamp_out_of_range()),
            (true, _) => Ok(local),
            _ => Ok(infinite),
        };
    }
    let moved = checked_timestamp(move_months(local, span.months))?;
    checked_timestamp(checked_timestamp(move_days(moved, span.days))?.checked_add(span.micros))
}

fn move_days(local: i64, days: i32) -> Option<i64> {
    let days = local.div_euclid(DAY) + i64::from(days);
    days.checked_mul(DAY)?.checked_add(local.rem_euclid(DAY))
}

/// The same day of another month, or that month's last day.
fn move_months(local: i64, months: i32) -> Option<i64> {
    if months == 0 {
        return Some(local);
    }
    let civil = Civil::of(local);
    let index = civil.year * 12 + civil.month - 1 + i64::from(months);
    let (year, month) = (index.div_euclid(12), index.rem_euclid(12) + 1);
    let day = civil.day.min(month_days(year, month));
    days_of(year, month, day).checked_mul(DAY)?.checked_add(civil.micros)
}

/// Moves a timestamptz: months and days by the calendar of the session's zone, the rest by the
/// clock.
pub(crate) fn add_interval_tz(cx: &EvalContext<'_, '_>, instant: i64, span: Interval) -> Result<i64> {
    add_interval_in(&cx.session.settings().time_zone, instant, span)
}

/// Moves an instant by a zone's calendar: first months, then days. Each step must end at an
/// existing instant.
fn add_interval_in(zone: &Zone, instant: i64, span: Interval) -> Result<i64> {
    if is_infinite(instant) || span.is_infinite() {
        return add_interval(instant, span);
    }
    let mut moved = instant;
    if span.months != 0 {
        let local = move_months(datetime::to_local(zone, moved), span.months);
        moved = datetime::to_instant(zone, local.ok_or_else(datetime::timestamp_out_of_range)?)?;
    }
    if span.days != 0 {
        let local = move_days(datetime::to_local(zone, moved), span.days);
        moved = datetime::to_instant(zone, local.ok_or_else(datetime::timestamp_out_of_range)?)?;
    }
    checked_timestamp(moved.checked_add(span.micros))
}

fn stamp(value: Datum<'_>) -> Result<i64> {
    match value {
        Datum::Timestamp(v) | Datum::Timestamptz(v) | Datum::Time(v) => Ok(v),
        Datum::Date(v) => datetime::date_to_timestamp(v),
        _ => Err(bad_argument("(timestamp)")),
    }
}

fn days_between<'a>(later: i64, earlier: i64) -> Result<Datum<'a>> {
    let infinite = |days: i64| days == i64::from(i32::MIN) || days == i64::from(i32::MAX);
    if infinite(later) || infinite(earlier) {
        return Err(SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "cannot subtract infinite dates"));
    }
    Ok(Datum::Int4((later - earlier) as i32))
}

fn date(value: Datum<'_>) -> Result<i64> {
    match value {
        Datum::Date(v) => Ok(v.into()),
        _ => Err(bad_argument("(date)")),
    }
}

fn date_plus<'a>(value: Datum<'a>, days: i64) -> Result<Datum<'a>> {
    let base = date(value)?;
    if base == i64::from(i32::MIN) || base == i64::from(i32::MAX) {
        return Ok(value);
    }
    checked_date(base + days).map(Datum::Date)
}

/// left - right where one of the two is infinite; None otherwise.
fn infinite_difference(left: i64, right: i64) -> Option<Result<Interval>> {
    let later = match (is_infinite(left), is_infinite(right)) {
        (false, false) => return None,
        (true, true) if left == right => return Some(Err(values::types::interval::interval_out_of_range())),
        (true, _) => left > 0,
        _ => right < 0,
    };
    Some(Ok(if later { Interval::INFINITY } else { Interval::NEG_INFINITY }))
}

fn difference<'a>(a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let (left, right) = (stamp(a[0])?, stamp(a[1])?);
    if let Some(infinite) = infinite_difference(left, right) {
        return infinite.map(Datum::Interval);
    }
    let micros = left.checked_sub(right).ok_or_else(values::types::interval::interval_out_of_range)?;
    Interval { months: 0, days: 0, micros }.justify_hours().map(Datum::Interval)
}

/// The symbolic difference in years, months, days and clock, as by age().
fn age(left: i64, right: i64) -> Result<Interval> {
    if let Some(infinite) = infinite_difference(left, right) {
        return infinite;
    }
    let (a, b) =
        if left >= right { (Civil::of(left), Civil::of(right)) } else { (Civil::of(right), Civil::of(left)) };
    let mut months = (a.year - b.year) * 12 + a.month - b.month;
    let mut days = a.day - b.day;
    let mut micros = a.micros - b.micros;
    if micros < 0 {
        micros += DAY;
        days -= 1;
    }
    if days < 0 {
        // The month to borrow from is that of the earlier date.
        days += month_days(b.year, b.month);
        months -= 1;
    }
    let sign = if left >= right { 1 } else { -1 };
    Ok(Interval { months: (months * sign) as i32, days: (days * sign) as i32, micros: micros * sign })
}

fn code_extract<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    match extract(cx, a[0], a[1])? {
        Some(number) => give_numeric(&number, cx.arena),
        None => Ok(Datum::Null),
    }
}

fn code_date_part<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let value = match a[1] {
        Datum::Date(_) => Datum::Timestamp(stamp(a[1])?),
        other => other,
    };
    let number = |unit| Ok::<_, SqlError>(extract(cx, unit, value)?.map(|number| number.to_f64()));
    // Seconds and milliseconds are added as floats, which decides the last digits.
    let part = match fields::unit_of(name(a[0])?) {
        "second" => number(Datum::Text("us"))?.map(|micros| (micros / 1e6).trunc() + micros % 1e6 / 1e6),
        "milliseconds" => {
            number(Datum::Text("us"))?.map(|micros| (micros / 1e6).trunc() * 1e3 + micros % 1e6 / 1e3)
        }
        _ => number(a[0])?,
    };
    Ok(part.map_or(Datum::Null, Datum::Float8))
}

fn span_plus<'a>(cx: &mut EvalContext<'a, '_>, value: Datum<'a>, span: Interval) -> Result<Datum<'a>> {
    Ok(match value {
        Datum::Timestamptz(instant) => Datum::Timestamptz(add_interval_tz(cx, instant, span)?),
        Datum::Time(_) if span.is_infinite() => {
            return Err(SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                "cannot add infinite interval to time",
            ));
        }
        // The clock wraps around; so does a sum beyond 64 bits, as in PostgreSQL.
        Datum::Time(micros) => Datum::Time(micros.wrapping_add(span.micros).rem_euclid(DAY)),
        other => Datum::Timestamp(add_interval(stamp(other)?, span)?),
    })
}

/// value + interval, and the mirrored value - interval.
macro_rules! moved {
    ($type:expr, $result:expr) => {
        [
            func("plus_interval", &[$type, SPAN], $result, |cx, a| span_plus(cx, a[0], interval(a[1])?))
                .stable()
                .op("+"),
            func("interval_plus", &[SPAN, $type], $result, |cx, a| span_plus(cx, a[1], interval(a[0])?))
                .stable()
                .op("+"),
            func("minus_interval", &[$type, SPAN], $result, |cx, a| {
                let span = interval(a[1])?;
                match a[0] {
                    Datum::Time(_) if span.is_infinite() => Err(SqlError::new(
                        SqlState::DATETIME_FIELD_OVERFLOW,
                        "cannot subtract infinite interval from time",
                    )),
                    Datum::Time(micros) => Ok(Datum::Time(micros.wrapping_sub(span.micros).rem_euclid(DAY))),
                    _ => {
                        stamp(a[0])?;
                        span_plus(cx, a[0], span.negate()?)
                    }
                }
            })
            .stable()
            .op("-"),
        ]
    };
}

const DATE_MOVED: [Function; 3] = moved!(DATE, STAMP);
const STAMP_MOVED: [Function; 3] = moved!(STAMP, STAMP);
const STAMPTZ_MOVED: [Function; 3] = moved!(STAMPTZ, STAMPTZ);
const TIME_MOVED: [Function; 3] = moved!(TIME, TIME);

/// The current time in the forms that functions return.
macro_rules! current {
    ($name:literal, $time:expr) => {
        func($name, &[], STAMPTZ, |cx, _| {
            let time: fn(&EvalContext<'_, '_>) -> i64 = $time;
            Ok(Datum::Timestamptz(time(cx)))
        })
    };
}

fn now(cx: &EvalContext<'_, '_>) -> i64 {
    cx.session.settings().transaction_time
}

fn local_now(cx: &EvalContext<'_, '_>) -> i64 {
    datetime::to_local(&cx.session.settings().time_zone, now(cx))
}

/// A timestamp, or a timestamptz in the session's zone; perhaps out of range.
fn local_of(cx: &EvalContext<'_, '_>, value: Datum<'_>) -> Result<i64> {
    match value {
        Datum::Timestamptz(instant) => Ok(datetime::to_local(&cx.session.settings().time_zone, instant)),
        other => stamp(other),
    }
}

fn code_age<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    age(local_of(cx, a[0])?, local_of(cx, a[1])?).map(Datum::Interval)
}

fn code_age_today<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let today = local_now(cx).div_euclid(DAY) * DAY;
    age(today, local_of(cx, a[0])?).map(Datum::Interval)
}

pub(super) static FUNCTIONS: &[Function] = &[
    current!("now", now).stable(),
    current!("current_timestamp", now).stable(),
    current!("transaction_timestamp", now).stable(),
    current!("statement_timestamp", |cx| cx.session.statement_time()).stable(),
    current!("clock_timestamp", |cx| cx.session.clock_time()).volatile(),
    func("current_date", &[], DATE, |cx, _| Ok(Datum::Date(datetime::timestamp_to_date(local_now(cx)))))
        .stable(),
    func("localtimestamp", &[], STAMP, |cx, _| Ok(Datum::Timestamp(local_now(cx)))).stable(),
    func("localtime", &[], TIME, |cx, _| Ok(Datum::Time(local_now(cx).rem_euclid(DAY)))).stable(),
    DATE_MOVED[0],
    DATE_MOVED[1],
    DATE_MOVED[2],
    STAMP_MOVED[0],
    STAMP_MOVED[1],
    STAMP_MOVED[2],
    STAMPTZ_MOVED[0],
    STAMPTZ_MOVED[1],
    STAMPTZ_MOVED[2],
    TIME_MOVED[0],
    TIME_MOVED[1],
    TIME_MOVED[2],
    func("date_pli", &[DATE, oid::INT4], DATE, |_, a| date_plus(a[0], int(a[1])?)).op("+"),
    func("integer_pl_date", &[oid::INT4, DATE], DATE, |_, a| date_plus(a[1], int(a[0])?)).op("+"),
    func("date_mii", &[DATE, oid::INT4], DATE, |_, a| date_plus(a[0], -int(a[1])?)).op("-"),
    func("date_mi", &[DATE, DATE], oid::INT4, |_, a| days_between(date(a[0])?, date(a[1])?)).op("-"),
    func("datetime_pl", &[DATE, TIME], STAMP, |_, a| {
        let midnight = stamp(a[0])?;
        if is_infinite(midnight) {
            return Ok(Datum::Timestamp(midnight));
        }
        checked_timestamp(midnight.checked_add(stamp(a[1])?)).map(Datum::Timestamp)
    })
    .op("+"),
    func("timestamp_mi", &[STAMP, STAMP], SPAN, |_, a| difference(a)).op("-"),
    func("timestamptz_mi", &[STAMPTZ, STAMPTZ], SPAN, |_, a| difference(a)).op("-"),
    func("time_mi_time", &[TIME, TIME], SPAN, |_, a| {
        Ok(Datum::Interval(Interval { months: 0, days: 0, micros: stamp(a[0])? - stamp(a[1])? }))
    })
    .op("-"),
    func("interval_pl", &[SPAN, SPAN], SPAN, |_, a| {
        interval(a[0])?.plus(interval(a[1])?).map(Datum::Interval)
    })
    .op("+"),
    func("interval_mi", &[SPAN, SPAN], SPAN, |_, a| {
        interval(a[0])?.minus(interval(a[1])?).map(Datum::Interval)
    })
    .op("-"),
    func("interval_um", &[SPAN], SPAN, |_, a| interval(a[0])?.negate().map(Datum::Interval)).op("-"),
    func("interval_mul", &[SPAN, F8], SPAN, |_, a| {
        interval(a[0])?.multiply(float(a[1])?).map(Datum::Interval)
    })
    .op("*"),
    func("mul_d_interval", &[F8, SPAN], SPAN, |_, a| {
        interval(a[1])?.multiply(float(a[0])?).map(Datum::Interval)
    })
    .op("*"),
    func("interval_div", &[SPAN, F8], SPAN, |_, a| {
        let divisor = float(a[1])?;
        if divisor == 0.0 {
            return Err(SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        interval(a[0])?.divide(divisor).map(Datum::Interval)
    })
    .op("/"),
    func("extract", &[TEXT, DATE], oid::NUMERIC, code_extract),
    func("extract", &[TEXT, TIME], oid::NUMERIC, code_extract),
    func("extract", &[TEXT, STAMP], oid::NUMERIC, code_extract),
    func("extract", &[TEXT, STAMPTZ], oid::NUMERIC, code_extract).stable(),
    func("extract", &[TEXT, SPAN], oid::NUMERIC, code_extract),
    func("date_part", &[TEXT, DATE], F8, code_date_part),
    func("date_part", &[TEXT, TIME], F8, code_date_part),
    func("date_part", &[TEXT, STAMP], F8, code_date_part),
    func("date_part", &[TEXT, STAMPTZ], F8, code_date_part).stable(),
    func("date_part", &[TEXT, SPAN], F8, code_date_part),
    func("date_trunc", &[TEXT, STAMP], STAMP, |_, a| {
        let start = truncated(name(a[0])?, stamp(a[1])?, "timestamp without time zone")?;
        if is_infinite(start) { Ok(start) } else { checked_timestamp(Some(start)) }.map(Datum::Timestamp)
    }),
    func("date_trunc", &[TEXT, STAMPTZ], STAMPTZ, |cx, a| {
        let zone = &cx.session.settings().time_zone;
        truncated_in_zone(name(a[0])?, stamp(a[1])?, zone).map(Datum::Timestamptz)
    })
    .stable(),
    func("date_trunc", &[TEXT, STAMPTZ, TEXT], STAMPTZ, |cx, a| {
        let zone = zones::lasting(cx, name(a[2])?)?;
        truncated_in_zone(name(a[0])?, stamp(a[1])?, &zone).map(Datum::Timestamptz)
    })
    .stable(),
    func("date_trunc", &[TEXT, SPAN], SPAN, |_, a| {
        truncated_span(name(a[0])?, interval(a[1])?).map(Datum::Interval)
    }),
    func("age", &[STAMP, STAMP], SPAN, code_age),
    func("age", &[STAMPTZ, STAMPTZ], SPAN, code_age).stable(),
    func("age", &[STAMP], SPAN, code_age_today).stable(),
    func("age", &[STAMPTZ], SPAN, code_age_today).stable(),
    // The age of a transaction. With it age() of an untyped argument has two candidates, as in
    // PostgreSQL.
    func("age", &[oid::XID], oid::INT4, |_, _| Err(SqlError::unsupported("function age(xid)"))),
    func("timezone", &[TEXT, STAMP], STAMPTZ, |cx, a| {
        zones::from_local(cx, name(a[0])?, stamp(a[1])?).map(Datum::Timestamptz)
    })
    .stable(),
    func("timezone", &[TEXT, STAMPTZ], STAMP, |cx, a| {
        zones::to_local(cx, name(a[0])?, stamp(a[1])?).map(Datum::Timestamp)
    })
    .stable(),
    func("timezone", &[SPAN, STAMP], STAMPTZ, |cx, a| {
        zones::moved(cx, interval(a[0])?, stamp(a[1])?, -1).map(Datum::Timestamptz)
    }),
    func("timezone", &[SPAN, STAMPTZ], STAMP, |cx, a| {
        zones::moved(cx, interval(a[0])?, stamp(a[1])?, 1).map(Datum::Timestamp)
    }),
    func("timezone", &[STAMP], STAMPTZ, |cx, a| {
        datetime::to_instant(&cx.session.settings().time_zone, stamp(a[0])?).map(Datum::Timestamptz)
    })
    .stable(),
    func("timezone", &[STAMPTZ], STAMP, |cx, a| super::convert::local_time(cx, a[0]).map(Datum::Timestamp))
        .stable(),
    func("justify_hours", &[SPAN], SPAN, |_, a| interval(a[0])?.justify_hours().map(Datum::Interval)),
    func("justify_days", &[SPAN], SPAN, |_, a| interval(a[0])?.justify_days().map(Datum::Interval)),
    func("justify_interval", &[SPAN], SPAN, |_, a| interval(a[0])?.justify().map(Datum::Interval)),
    func("isfinite", &[DATE], oid::BOOL, |_, a| {
        Ok(Datum::Bool(!matches!(a[0], Datum::Date(i32::MIN | i32::MAX))))
    }),
    func("isfinite", &[STAMP], oid::BOOL, |_, a| Ok(Datum::Bool(!is_infinite(stamp(a[0])?)))),
    func("isfinite", &[STAMPTZ], oid::BOOL, |_, a| Ok(Datum::Bool(!is_infinite(stamp(a[0])?)))),
    func("isfinite", &[SPAN], oid::BOOL, |_, a| Ok(Datum::Bool(!interval(a[0])?.is_infinite()))),
    func("timeofday", &[], TEXT, |cx, _| {
        let mut out = Vec::new();
        values::text::datetime::write_timestamptz(cx.session.clock_time(), cx.session.settings(), &mut out);
        give_text(&String::from_utf8_lossy(&out), cx.arena)
    })
    .volatile(),
];
