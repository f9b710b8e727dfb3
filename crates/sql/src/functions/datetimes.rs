//! Functions and operators over dates, times and intervals.

mod fields;
mod zones;

use fields::{extract, truncated, truncated_in_zone, truncated_span};

use super::arguments::{float, give_numeric, give_text, int, interval, text};
use super::convert::local_time;
use super::{Function, bad_argument, func};
use crate::error::{SqlError, SqlState};
use crate::expr::EvalContext;
use crate::types::datetime::{
    self, Civil, DAY, EPOCH_MICROS, HOUR, MINUTE, checked_date, checked_timestamp, days_of, is_infinite,
    month_days,
};
use crate::types::{Datum, Interval, oid};

type Result<T> = std::result::Result<T, SqlError>;

const DATE: u32 = oid::DATE;
const TIME: u32 = oid::TIME;
const STAMP: u32 = oid::TIMESTAMP;
const STAMPTZ: u32 = oid::TIMESTAMPTZ;
const SPAN: u32 = oid::INTERVAL;
const TEXT: u32 = oid::TEXT;
const F8: u32 = oid::FLOAT8;

/// A timestamp moved by months (the day cut to the month's length), then days, then microseconds; it stays in range
/// all the way.
pub fn add_interval(local: i64, span: Interval) -> Result<i64> {
    if is_infinite(local) || span.is_infinite() {
        let infinite = if span == Interval::INFINITY { i64::MAX } else { i64::MIN };
        return match (is_infinite(local), span.is_infinite()) {
            (true, true) if local != infinite => Err(datetime::timestamp_out_of_range()),
            (true, _) => Ok(local),
            _ => Ok(infinite),
        };
    }
    let moved = checked_timestamp(Some(move_months(local, span.months)))?;
    let days = moved.div_euclid(DAY) + i64::from(span.days);
    let moved = days.checked_mul(DAY).and_then(|days| days.checked_add(moved.rem_euclid(DAY)));
    checked_timestamp(checked_timestamp(moved)?.checked_add(span.micros))
}

fn move_months(local: i64, months: i32) -> i64 {
    if months == 0 {
        return local;
    }
    let civil = Civil::of(local);
    let index = civil.year * 12 + civil.month - 1 + i64::from(months);
    let (year, month) = (index.div_euclid(12), index.rem_euclid(12) + 1);
    let day = civil.day.min(month_days(year, month));
    // Out of range values saturate and are refused by the caller's check.
    days_of(year, month, day).saturating_mul(DAY).saturating_add(civil.micros)
}

/// A timestamptz moved: months and days by the session's calendar, the rest by the clock.
pub fn add_interval_tz(cx: &EvalContext<'_, '_>, instant: i64, span: Interval) -> Result<i64> {
    if is_infinite(instant) || span.is_infinite() || (span.months == 0 && span.days == 0) {
        return add_interval(instant, span);
    }
    let zone = &cx.session.settings().time_zone;
    let local = datetime::to_local(zone, instant);
    let moved = add_interval(local, Interval { micros: 0, ..span })?;
    checked_timestamp(datetime::to_instant(zone, moved)?.checked_add(span.micros))
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

/// left - right where one of them is infinite.
fn infinite_difference(left: i64, right: i64) -> Option<Result<Interval>> {
    let later = match (is_infinite(left), is_infinite(right)) {
        (false, false) => return None,
        (true, true) if left == right => return Some(Err(crate::types::interval::interval_out_of_range())),
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
    let micros = left.checked_sub(right).ok_or_else(crate::types::interval::interval_out_of_range)?;
    Interval { months: 0, days: 0, micros }.justify_hours().map(Datum::Interval)
}

/// Symbolic difference: years, months, days and clock, as age() counts them.
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
        // The month that is borrowed from is the earlier date's.
        days += if left >= right { month_days(b.year, b.month) } else { month_days(a.year, a.month) };
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
    Ok(extract(cx, a[0], value)?.map_or(Datum::Null, |number| Datum::Float8(number.to_f64())))
}

fn make_date(a: &[Datum<'_>]) -> Result<i64> {
    let (year, month, day) = (int(a[0])?, int(a[1])?, int(a[2])?);
    let astronomical = if year < 0 { year + 1 } else { year };
    if year == 0 || !(1..=12).contains(&month) || day < 1 || day > month_days(astronomical, month) {
        return Err(SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date field value out of range: {year}-{month:02}-{day:02}"),
        ));
    }
    Ok(days_of(astronomical, month, day))
}

fn make_clock(hour: i64, minute: i64, second: f64) -> Result<i64> {
    let micros = (second * 1e6).round_ties_even() as i64;
    let total = hour * HOUR + minute * MINUTE + micros;
    if !(0..=24).contains(&hour)
        || !(0..60).contains(&minute)
        || !(0.0..=60.0).contains(&second)
        || total > DAY
    {
        return Err(SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("time field value out of range: {hour}:{minute:02}:{second:02}"),
        ));
    }
    Ok(total)
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
        Datum::Time(micros) => Datum::Time((micros + span.micros % DAY).rem_euclid(DAY)),
        other => Datum::Timestamp(add_interval(stamp(other)?, span)?),
    })
}

/// value + interval and its mirror, value - interval.
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
                span_plus(cx, a[0], interval(a[1])?.negate()?)
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

/// The current time in the forms functions give it.
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

fn code_age<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    age(local_time(cx, a[0])?, local_time(cx, a[1])?).map(Datum::Interval)
}

fn code_age_today<'a>(cx: &mut EvalContext<'a, '_>, a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let today = local_now(cx).div_euclid(DAY) * DAY;
    age(today, local_time(cx, a[0])?).map(Datum::Interval)
}

fn to_timestamp<'a>(a: &[Datum<'a>]) -> Result<Datum<'a>> {
    let seconds = float(a[0])?;
    if seconds.is_infinite() {
        return Ok(Datum::Timestamptz(if seconds > 0.0 { i64::MAX } else { i64::MIN }));
    }
    let micros = (seconds * 1e6).round_ties_even();
    let in_i64 = micros.abs() < 9.2e18;
    let since = in_i64.then_some(micros as i64).and_then(|micros| micros.checked_sub(EPOCH_MICROS));
    checked_timestamp(since).map(Datum::Timestamptz)
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
        checked_timestamp(stamp(a[0])?.checked_add(stamp(a[1])?)).map(Datum::Timestamp)
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
        interval(a[0])?.plus(interval(a[1])?.negate()?).map(Datum::Interval)
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
        truncated(text(a[0])?, stamp(a[1])?, "timestamp without time zone").map(Datum::Timestamp)
    }),
    func("date_trunc", &[TEXT, STAMPTZ], STAMPTZ, |cx, a| {
        let zone = &cx.session.settings().time_zone;
        truncated_in_zone(text(a[0])?, stamp(a[1])?, zone).map(Datum::Timestamptz)
    })
    .stable(),
    func("date_trunc", &[TEXT, STAMPTZ, TEXT], STAMPTZ, |cx, a| {
        let zone = zones::lasting(cx, text(a[2])?)?;
        truncated_in_zone(text(a[0])?, stamp(a[1])?, &zone).map(Datum::Timestamptz)
    })
    .stable(),
    func("date_trunc", &[TEXT, SPAN], SPAN, |_, a| {
        truncated_span(text(a[0])?, interval(a[1])?).map(Datum::Interval)
    }),
    func("age", &[STAMP, STAMP], SPAN, code_age),
    func("age", &[STAMPTZ, STAMPTZ], SPAN, code_age).stable(),
    func("age", &[STAMP], SPAN, code_age_today).stable(),
    func("age", &[STAMPTZ], SPAN, code_age_today).stable(),
    func("timezone", &[TEXT, STAMP], STAMPTZ, |cx, a| {
        zones::from_local(cx, text(a[0])?, stamp(a[1])?).map(Datum::Timestamptz)
    }),
    func("timezone", &[TEXT, STAMPTZ], STAMP, |cx, a| {
        zones::to_local(cx, text(a[0])?, stamp(a[1])?).map(Datum::Timestamp)
    }),
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
    func("timezone", &[STAMPTZ], STAMP, |cx, a| {
        Ok(Datum::Timestamp(datetime::to_local(&cx.session.settings().time_zone, stamp(a[0])?)))
    })
    .stable(),
    func("justify_hours", &[SPAN], SPAN, |_, a| interval(a[0])?.justify_hours().map(Datum::Interval)),
    func("justify_days", &[SPAN], SPAN, |_, a| interval(a[0])?.justify_days().map(Datum::Interval)),
    func("justify_interval", &[SPAN], SPAN, |_, a| interval(a[0])?.justify().map(Datum::Interval)),
    func("isfinite", &[DATE], oid::BOOL, |_, a| Ok(Datum::Bool(!is_infinite(stamp(a[0])?)))),
    func("isfinite", &[STAMP], oid::BOOL, |_, a| Ok(Datum::Bool(!is_infinite(stamp(a[0])?)))),
    func("isfinite", &[STAMPTZ], oid::BOOL, |_, a| Ok(Datum::Bool(!is_infinite(stamp(a[0])?)))),
    func("isfinite", &[SPAN], oid::BOOL, |_, a| Ok(Datum::Bool(!interval(a[0])?.is_infinite()))),
    func("make_date", &[oid::INT4, oid::INT4, oid::INT4], DATE, |_, a| {
        checked_date(make_date(a)?).map(Datum::Date)
    }),
    func("make_time", &[oid::INT4, oid::INT4, F8], TIME, |_, a| {
        make_clock(int(a[0])?, int(a[1])?, float(a[2])?).map(Datum::Time)
    }),
    func("make_timestamp", &[oid::INT4, oid::INT4, oid::INT4, oid::INT4, oid::INT4, F8], STAMP, |_, a| {
        let clock = make_clock(int(a[3])?, int(a[4])?, float(a[5])?)?;
        checked_timestamp(make_date(a)?.checked_mul(DAY).and_then(|days| days.checked_add(clock)))
            .map(Datum::Timestamp)
    }),
    func("to_timestamp", &[F8], STAMPTZ, |_, a| to_timestamp(a)),
    func("timeofday", &[], TEXT, |cx, _| {
        let mut out = Vec::new();
        datetime::write_timestamptz(cx.session.clock_time(), cx.session.settings(), &mut out);
        Ok(give_text(&String::from_utf8_lossy(&out), cx.arena))
    })
    .volatile(),
];
