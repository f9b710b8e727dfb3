//! The fields of dates, times and intervals by the names of their units: extract() and
//! date_trunc().
//!
//! What must hold:
//!
//! 1. [`UNITS`] has each unit under one name, by which this module knows it. Other spellings are
//!    translated once ([`unit_of`]).
//! 2. Fields are exact: they are numerics, and date_part() makes floats of them.
//! 3. An infinite value gives an infinity for a field that grows without end, and NULL for a cyclic
//!    one.
//! 4. An unknown unit is 22023, a known one that the type does not have 0A000.

use super::super::arguments::name;
use super::super::bad_argument;
use super::Result;
use crate::context::EvalContext;
use values::error::{SqlError, SqlState};
use values::types::datetime::{
    self, Civil, DAY, EPOCH_DAYS, EPOCH_MICROS, HOUR, MINUTE, SECOND, Zone, checked_timestamp, date_of,
    days_of, is_infinite,
};
use values::types::numeric::Numeric;
use values::types::{Datum, Interval};

/// The Julian day number of 2000-01-01.
const JULIAN_2000: i64 = 2_451_545;

/// The units: the name used in this module, and the unit's other names.
const UNITS: [(&str, &[&str]); 22] = [
    ("microseconds", &["microsecond", "us", "usec", "usecs", "useconds", "usecond"]),
    ("milliseconds", &["millisecond", "ms", "msec", "msecs", "mseconds", "msecond"]),
    ("second", &["seconds", "s", "sec", "secs"]),
    ("minute", &["minutes", "m", "min", "mins", "mm"]),
    ("hour", &["hours", "h", "hr", "hrs"]),
    ("day", &["days", "d"]),
    ("week", &["weeks", "w"]),
    ("month", &["months", "mon", "mons"]),
    ("quarter", &["qtr"]),
    ("year", &["years", "y", "yr", "yrs"]),
    ("decade", &["decades", "dec", "decs"]),
    ("century", &["centuries", "c", "cent"]),
    ("millennium", &["millennia", "mil", "mils"]),
    ("epoch", &[]),
    ("julian", &["j", "jd"]),
    ("dow", &[]),
    ("isodow", &[]),
    ("doy", &[]),
    ("isoyear", &[]),
    ("timezone", &[]),
    ("timezone_hour", &["timezone_h"]),
    ("timezone_minute", &["timezone_m"]),
];

/// The name of a unit in this module, or the given name when no unit has it. The first ten letters
/// identify a name.
pub(super) fn unit_of(unit: &str) -> &str {
    let sought = unit.as_bytes();
    let sought = &sought[..sought.len().min(10)];
    let same = |name: &str| name.as_bytes()[..name.len().min(10)].eq_ignore_ascii_case(sought);
    UNITS
        .iter()
        .find(|(name, others)| same(name) || others.iter().any(|name| same(name)))
        .map_or(unit, |unit| unit.0)
}

fn not_recognized(unit: &str, type_name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("unit \"{unit}\" not recognized for type {type_name}"),
    )
}

/// Words for a date or time, which have no fields.
const MOMENTS: [&str; 7] = ["now", "today", "tomorrow", "yesterday", "allballs", "infinity", "-infinity"];

fn is_moment(unit: &str) -> bool {
    MOMENTS.iter().any(|moment| moment.eq_ignore_ascii_case(unit))
}

/// The error for a unit that the type does not have.
fn unknown_unit(unit: &str, type_name: &str) -> SqlError {
    let dated = type_name.starts_with("date") || type_name.starts_with("timestamp");
    if !(dated && is_moment(unit)) && UNITS.iter().all(|(name, _)| *name != unit_of(unit)) {
        return not_recognized(unit, type_name);
    }
    unsupported_unit(unit, type_name)
}

fn unsupported_unit(unit: &str, type_name: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("unit \"{unit}\" not supported for type {type_name}"),
    )
}

/// The name in this module of a unit to truncate to; `mm` is none.
fn stretch_of(unit: &str) -> &str {
    if unit.eq_ignore_ascii_case("mm") { "mm" } else { unit_of(unit) }
}

/// As [`unknown_unit`], where only units of truncation are known: no days of the week, no epoch.
fn unknown_stretch(unit: &str, type_name: &str) -> SqlError {
    match unit_of(unit) {
        "timezone" | "timezone_hour" | "timezone_minute" => unsupported_unit(unit, type_name),
        _ => not_recognized(unit, type_name),
    }
}

/// A local timestamp truncated to a unit; perhaps out of range.
pub(super) fn truncated(unit: &str, local: i64, type_name: &str) -> Result<i64> {
    let infinite = is_infinite(local).then_some(local);
    let local = infinite.map_or(local, |_| 0);
    let civil = Civil::of(local);
    let floor = |unit: i64| local.div_euclid(unit) * unit;
    let start_of_year = |year: i64| days_of(year, 1, 1) * DAY;
    let start = match stretch_of(unit) {
        "microseconds" => local,
        "milliseconds" => floor(1000),
        "second" => floor(SECOND),
        "minute" => floor(MINUTE),
        "hour" => floor(HOUR),
        "day" => floor(DAY),
        // 2000-01-01 was a Saturday: Monday is 5 days earlier.
        "week" => ((local.div_euclid(DAY) + 5).div_euclid(7) * 7 - 5) * DAY,
        "month" => days_of(civil.year, civil.month, 1) * DAY,
        "quarter" => days_of(civil.year, (civil.month - 1) / 3 * 3 + 1, 1) * DAY,
        "year" => start_of_year(civil.year),
        "decade" => start_of_year(civil.year.div_euclid(10) * 10),
        "century" => start_of_year((civil.year - 1).div_euclid(100) * 100 + 1),
        "millennium" => start_of_year((civil.year - 1).div_euclid(1000) * 1000 + 1),
        _ => return Err(unknown_stretch(unit, type_name)),
    };
    Ok(infinite.unwrap_or(start))
}

/// An instant truncated to a unit in a zone.
pub(super) fn truncated_in_zone(unit: &str, instant: i64, zone: &Zone) -> Result<i64> {
    let local = truncated(unit, datetime::to_local(zone, instant), "timestamp with time zone")?;
    match stretch_of(unit) {
        _ if is_infinite(local) => Ok(local),
        // The truncated instant keeps the offset that the instant had.
        "microseconds" | "milliseconds" | "second" | "minute" | "hour" => {
            checked_timestamp(Some(local - datetime::offset_at(zone, instant) * SECOND))
        }
        _ => datetime::to_instant(zone, local),
    }
}

/// An interval truncated to a unit. Its parts keep their signs.
pub(super) fn truncated_span(unit: &str, span: Interval) -> Result<Interval> {
    let months = |unit: i32| Interval { months: span.months / unit * unit, days: 0, micros: 0 };
    let time = |unit: i64| Interval { micros: span.micros / unit * unit, ..span };
    let start = match stretch_of(unit) {
        "microseconds" => span,
        "milliseconds" => time(1000),
        "second" => time(SECOND),
        "minute" => time(MINUTE),
        "hour" => time(HOUR),
        "day" => Interval { micros: 0, ..span },
        "month" => months(1),
        "quarter" => months(3),
        "year" => months(12),
        "decade" => months(120),
        "century" => months(1200),
        "millennium" => months(12_000),
        "week" => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("unit \"{unit}\" not supported for type interval"),
            )
            .with_detail("Months usually have fractional weeks."));
        }
        _ => return Err(unknown_stretch(unit, "interval")),
    };
    Ok(if span.is_infinite() { span } else { start })
}

/// Microseconds as a decimal number of units.
fn scaled(micros: i64, scale: u32) -> Numeric {
    Numeric::finite(micros.into(), scale)
}

/// Week number and year of ISO 8601.
fn iso_week(days: i64, year: i64) -> (i64, i64) {
    let monday_of_week_1 = |year: i64| {
        let fourth = days_of(year, 1, 4);
        fourth - (fourth + 5).rem_euclid(7)
    };
    let iso_year = if days < monday_of_week_1(year) {
        year - 1
    } else if days >= monday_of_week_1(year + 1) {
        year + 1
    } else {
        year
    };
    ((days - monday_of_week_1(iso_year)) / 7 + 1, iso_year)
}

/// A field of a date, which is given as days since 2000-01-01.
fn date_part_of(unit: &str, days: i64, type_name: &str) -> Result<Numeric> {
    let (year, month, day) = date_of(days);
    // No year is 0: 1 BC is -1.
    let shown = |year: i64| if year > 0 { year } else { year - 1 };
    Ok(Numeric::from(match unit_of(unit) {
        "year" => shown(year),
        "month" => month,
        "day" => day,
        "dow" => (days + 6).rem_euclid(7),
        "isodow" => (days + 5).rem_euclid(7) + 1,
        "doy" => days - days_of(year, 1, 1) + 1,
        "quarter" => (month - 1) / 3 + 1,
        "week" => iso_week(days, year).0,
        "isoyear" => shown(iso_week(days, year).1),
        "decade" => year.div_euclid(10),
        "century" if year > 0 => (year + 99) / 100,
        "century" => -((99 - (year - 1)) / 100),
        "millennium" if year > 0 => (year + 999) / 1000,
        "millennium" => -((999 - (year - 1)) / 1000),
        _ => return Err(unknown_unit(unit, type_name)),
    }))
}

/// A field of a time of day.
fn clock_field(unit: &str, micros: i64, type_name: &str) -> Result<Numeric> {
    Ok(match unit_of(unit) {
        "hour" => Numeric::from(micros / HOUR),
        "minute" => Numeric::from(micros / MINUTE % 60),
        "second" => scaled(micros % MINUTE, 6),
        "milliseconds" => scaled(micros % MINUTE, 3),
        "microseconds" => Numeric::from(micros % MINUTE),
        _ => return Err(unknown_unit(unit, type_name)),
    })
}

/// A field of a local timestamp. `offset` is the zone's in seconds, for timestamptz.
fn field(unit: &str, local: i64, instant: i64, offset: Option<i64>, type_name: &str) -> Result<Numeric> {
    let (days, micros) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let whole = |value: i64| Ok(Numeric::from(value));
    match unit_of(unit) {
        "epoch" => Ok(Numeric::finite((i128::from(instant) + i128::from(EPOCH_MICROS)).into(), 6)),
        "hour" | "minute" | "second" | "milliseconds" | "microseconds" => {
            clock_field(unit, micros, type_name)
        }
        "julian" => {
            Ok(Numeric::from(days + JULIAN_2000).add(&Numeric::from(micros).divide(&Numeric::from(DAY))?))
        }
        "timezone" if offset.is_some() => whole(offset.unwrap_or(0)),
        "timezone_hour" if offset.is_some() => whole(offset.unwrap_or(0) / 3600),
        "timezone_minute" if offset.is_some() => whole(offset.unwrap_or(0) / 60 % 60),
        _ => date_part_of(unit, days, type_name),
    }
}

fn interval_field(unit: &str, span: Interval) -> Result<Option<Numeric>> {
    if span.is_infinite() {
        let infinite = if span == Interval::INFINITY { Numeric::Infinity } else { Numeric::NegInfinity };
        // A field that grows without end is infinite; a cyclic one is NULL.
        return match unit_of(unit) {
            "epoch" | "hour" | "day" | "year" | "decade" | "century" | "millennium" => Ok(Some(infinite)),
            "microseconds" | "milliseconds" | "second" | "minute" | "week" | "month" | "quarter" => Ok(None),
            _ if is_moment(unit) => Err(unsupported_unit(unit, "interval")),
            _ => Err(unknown_unit(unit, "interval")),
        };
    }
    finite_interval_field(unit, span).map(Some)
}

fn finite_interval_field(unit: &str, span: Interval) -> Result<Numeric> {
    let whole = |value: i64| Ok(Numeric::from(value));
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    match unit_of(unit) {
        "epoch" => {
            // A year counts 365.25 days here.
            let days = i128::from(years) * 36_525 + (i128::from(months) * 30 + i128::from(span.days)) * 100;
            Ok(Numeric::finite((days * i128::from(DAY) / 100 + i128::from(span.micros)).into(), 6))
        }
        "year" => whole(years),
        "month" => whole(months),
        "day" => whole(span.days.into()),
        "hour" => whole(span.micros / HOUR),
        "minute" => whole(span.micros / MINUTE % 60),
        "second" => Ok(scaled(span.micros % MINUTE, 6)),
        "milliseconds" => Ok(scaled(span.micros % MINUTE, 3)),
        "microseconds" => whole(span.micros % MINUTE),
        "quarter" if span.months < 0 => whole(months / 3 - 1),
        "quarter" => whole(months / 3 + 1),
        "week" => whole(i64::from(span.days / 7)),
        "decade" => whole(years / 10),
        "century" => whole(years / 100),
        "millennium" => whole(years / 1000),
        _ => Err(unknown_unit(unit, "interval")),
    }
}

/// A field of an infinite date or timestamp: one that grows without end is infinite, a cyclic one
/// NULL.
fn infinite_field(unit: &str, positive: bool, type_name: &str) -> Result<Option<Numeric>> {
    let dated = type_name == "date";
    match unit_of(unit) {
        "epoch" | "year" | "decade" | "century" | "millennium" | "julian" | "isoyear" => {
            Ok(Some(if positive { Numeric::Infinity } else { Numeric::NegInfinity }))
        }
        "day" | "week" | "month" | "quarter" | "dow" | "isodow" | "doy" => Ok(None),
        "microseconds" | "milliseconds" | "second" | "minute" | "hour" | "timezone" | "timezone_hour"
        | "timezone_minute"
            if !dated =>
        {
            Ok(None)
        }
        _ => Err(unknown_unit(unit, type_name)),
    }
}

/// A field of a date.
fn date_field(unit: &str, days: i32) -> Result<Option<Numeric>> {
    if matches!(days, i32::MIN | i32::MAX) {
        return infinite_field(unit, days > 0, "date");
    }
    let whole = |value: i64| Ok(Some(Numeric::from(value)));
    let days = i64::from(days);
    match unit_of(unit) {
        "epoch" => whole((days + EPOCH_DAYS) * (DAY / SECOND)),
        "julian" => whole(days + JULIAN_2000),
        "hour" | "minute" | "second" | "milliseconds" | "microseconds" => Err(unknown_unit(unit, "date")),
        _ => date_part_of(unit, days, "date").map(Some),
    }
}

/// extract(); None is NULL.
pub(super) fn extract(
    cx: &EvalContext<'_, '_>,
    unit: Datum<'_>,
    value: Datum<'_>,
) -> Result<Option<Numeric>> {
    let unit = name(unit)?;
    match value {
        Datum::Interval(span) => interval_field(unit, span),
        Datum::Time(micros) if unit_of(unit) == "epoch" => Ok(Some(scaled(micros, 6))),
        Datum::Time(micros) => clock_field(unit, micros, "time without time zone").map(Some),
        Datum::Date(days) => date_field(unit, days),
        Datum::Timestamp(local) if is_infinite(local) => {
            infinite_field(unit, local > 0, "timestamp without time zone")
        }
        Datum::Timestamp(local) => field(unit, local, local, None, "timestamp without time zone").map(Some),
        Datum::Timestamptz(instant) if is_infinite(instant) => {
            infinite_field(unit, instant > 0, "timestamp with time zone")
        }
        Datum::Timestamptz(instant) => {
            let offset = datetime::offset_at(&cx.session.settings().time_zone, instant);
            field(unit, instant + offset * SECOND, instant, Some(offset), "timestamp with time zone")
                .map(Some)
        }
        _ => Err(bad_argument("extract")),
    }
}
