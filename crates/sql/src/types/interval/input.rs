//! Intervals from text, and the fields that a type like `interval day to hour` names.

use super::super::datetime::{DAY, HOUR, MINUTE, SECOND, parse_fraction};
use super::Interval;
use crate::error::{SqlError, SqlState};

/// The fields that a type like `interval day to hour` names, by bits, as PostgreSQL numbers them.
pub mod fields {
    /// All of them: no field is named.
    pub const ALL: i32 = 0x7fff;
    pub(super) const MONTH: i32 = 1 << 1;
    pub(super) const YEAR: i32 = 1 << 2;
    pub(super) const DAY: i32 = 1 << 3;
    pub(super) const HOUR: i32 = 1 << 10;
    pub(super) const MINUTE: i32 = 1 << 11;
    pub(super) const SECOND: i32 = 1 << 12;

    /// Those a type modifier names.
    pub fn of(modifier: i32) -> i32 {
        if modifier < 0 { ALL } else { modifier >> 16 & ALL }
    }
}

impl Interval {
    /// Reads an interval.
    /// `fields`: which ones the type names ([`fields`]); they say what a number without a unit is.
    pub fn parse(text: &str, fields: i32) -> Result<Interval, SqlError> {
        let invalid = || {
            SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type interval: \"{text}\""),
            )
        };
        let lower = text.trim().to_ascii_lowercase();
        match lower.as_str() {
            "infinity" | "+infinity" => return Ok(Interval::INFINITY),
            "-infinity" => return Ok(Interval::NEG_INFINITY),
            _ => {}
        }
        let mut sum = Sum { named: fields, ..Sum::default() };
        match lower.strip_prefix('p') {
            Some(fields) => sum.iso(fields),
            None => sum.words(&lower),
        }
        .ok_or_else(invalid)?;
        sum.interval().ok_or_else(|| {
            SqlError::new(
                SqlState::INTERVAL_FIELD_OVERFLOW,
                format!("interval field value out of range: \"{text}\""),
            )
        })
    }

    /// Without the fields that are smaller than the smallest named one.
    #[must_use]
    pub fn within(self, named: i32) -> Interval {
        use fields::{ALL, DAY as DAYS, HOUR as HOURS, MINUTE as MINUTES, MONTH, SECOND as SECONDS, YEAR};
        if named == ALL || named & SECONDS != 0 || self.is_infinite() {
            return self;
        }
        let (months, days, micros) = (self.months, self.days, self.micros);
        if named & MINUTES != 0 {
            Interval { months, days, micros: micros / MINUTE * MINUTE }
        } else if named & HOURS != 0 {
            Interval { months, days, micros: micros / HOUR * HOUR }
        } else if named & DAYS != 0 {
            Interval { months, days, micros: 0 }
        } else if named & MONTH != 0 {
            Interval { months, days: 0, micros: 0 }
        } else if named & YEAR != 0 {
            Interval { months: months / 12 * 12, days: 0, micros: 0 }
        } else {
            self
        }
    }
}

/// What a number without a unit is.
fn bare_unit(named: i32) -> &'static str {
    use fields::{ALL, DAY as DAYS, HOUR as HOURS, MINUTE as MINUTES, MONTH, SECOND as SECONDS, YEAR};
    if named == ALL || named & SECONDS != 0 {
        "second"
    } else if named & MINUTES != 0 {
        "minute"
    } else if named & HOURS != 0 {
        "hour"
    } else if named & DAYS != 0 {
        "day"
    } else if named & MONTH != 0 {
        "month"
    } else if named & YEAR != 0 {
        "year"
    } else {
        "second"
    }
}

pub(super) fn round_to_micros(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

/// Fields summed up while a text is read.
#[derive(Default)]
struct Sum {
    months: f64,
    days: f64,
    micros: f64,
    /// Units that were there, by bits: none may be there twice.
    seen: u32,
    /// The fields the type names.
    named: i32,
}

/// The bits of a clock's three units, in [`Sum::seen`].
const CLOCK: u32 = 0b111;
/// The bit of years and months in one word.
const YEAR_MONTH: u32 = 1 << 12;

impl Sum {
    fn interval(&self) -> Option<Interval> {
        // Exact for the whole numbers below 2^53 microseconds that texts have.
        if self.months.abs() > 2_147_483_647.0
            || self.days.abs() > 2_147_483_647.0
            || self.micros.abs() > 9.22e18
        {
            return None;
        }
        Some(Interval { months: self.months as i32, days: self.days as i32, micros: self.micros as i64 })
    }

    /// A number with its unit; a fraction goes down to the smaller fields.
    fn add(&mut self, value: f64, unit: &str) -> Option<()> {
        let unit = if unit.is_empty() { bare_unit(self.named) } else { unit };
        self.note(match unit {
            "h" | "hr" | "hrs" | "hour" | "hours" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 1 << 1,
            "s" | "sec" | "secs" | "second" | "seconds" => 1 << 2,
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 1 << 3,
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" => 1 << 4,
            "d" | "day" | "days" => 1 << 5,
            "y" | "yr" | "yrs" | "year" | "years" => 1 << 6,
            "mon" | "mons" | "month" | "months" => 1 << 7,
            "w" | "week" | "weeks" => 1 << 8,
            "dec" | "decs" | "decade" | "decades" => 1 << 9,
            "c" | "cent" | "century" | "centuries" => 1 << 10,
            _ => 1 << 11,
        })?;
        let months = match unit {
            "y" | "yr" | "yrs" | "year" | "years" => 12.0,
            "mon" | "mons" | "month" | "months" => 1.0,
            "dec" | "decs" | "decade" | "decades" => 120.0,
            "c" | "cent" | "century" | "centuries" => 1200.0,
            "mil" | "mils" | "millennia" | "millennium" => 12_000.0,
            _ => 0.0,
        };
        if months > 0.0 {
            if months > 1.0 {
                self.months += (value * months).round_ties_even();
            } else {
                self.months += value.trunc();
                self.add_days((value - value.trunc()) * 30.0);
            }
            return Some(());
        }
        match unit {
            "w" | "week" | "weeks" => self.add_days(value * 7.0),
            "d" | "day" | "days" => self.add_days(value),
            "h" | "hr" | "hrs" | "hour" | "hours" => self.add_micros(value, HOUR),
            "m" | "min" | "mins" | "minute" | "minutes" => self.add_micros(value, MINUTE),
            "s" | "sec" | "secs" | "second" | "seconds" => self.add_micros(value, SECOND),
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => self.add_micros(value, 1000),
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" => self.add_micros(value, 1),
            _ => return None,
        }
        Some(())
    }

    /// None when one of these units has been there before.
    fn note(&mut self, units: u32) -> Option<()> {
        let fresh = self.seen & units == 0;
        self.seen |= units;
        fresh.then_some(())
    }

    fn add_days(&mut self, value: f64) {
        let value = round_to_micros(value);
        self.days += value.trunc();
        self.micros += ((value - value.trunc()) * DAY as f64).round_ties_even();
    }

    fn add_micros(&mut self, value: f64, unit: i64) {
        self.micros += (value * unit as f64).round_ties_even();
    }

    /// `1 year -2 days 03:04:05 ago`, `1-2`, `@ 3 hours`.
    fn words(&mut self, text: &str) -> Option<()> {
        let mut ago = false;
        let mut rest = text.trim_start_matches('@').trim_start();
        while !rest.is_empty() {
            if rest.starts_with("ago") {
                ago = true;
                rest = rest[3..].trim_start();
                continue;
            }
            let length = rest
                .find(|c: char| !(c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | ':')))
                .unwrap_or(rest.len());
            let (number, after) = rest.split_at(length);
            if number.is_empty() {
                return None;
            }
            rest = after.trim_start();
            if number.contains(':') {
                self.clock(number)?;
                continue;
            }
            if let Some(dash) = number[1..].find('-') {
                let years: f64 = number[..dash + 1].parse().ok()?;
                let months: f64 = number[dash + 2..].parse().ok()?;
                self.months += years * 12.0 + if number.starts_with('-') { -months } else { months };
                self.note(YEAR_MONTH)?;
                continue;
            }
            let value: f64 = number.parse().ok()?;
            let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let unit = &rest[..letters];
            if unit == "ago" {
                return None;
            }
            if unit.is_empty() && !rest.is_empty() {
                // "1 12:00" is a day and a time, "1 2 hours" is too.
                self.before_hours(rest)?;
                self.add(value, "day")?;
                continue;
            }
            self.add(value, unit)?;
            rest = rest[letters..].trim_start();
        }
        if ago {
            self.months = -self.months;
            self.days = -self.days;
            self.micros = -self.micros;
        }
        (self.seen != 0).then_some(())
    }

    /// Whether hours or a time of day come next.
    fn before_hours(&self, rest: &str) -> Option<()> {
        let next = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
        let unit = next.trim_start();
        let unit = &unit[..unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len())];
        let unit = if unit.is_empty() { bare_unit(self.named) } else { unit };
        let hours = next.starts_with(':') || matches!(unit, "h" | "hr" | "hrs" | "hour" | "hours");
        hours.then_some(())
    }

    /// `[-]hh:mm[:ss[.fff]]`
    fn clock(&mut self, text: &str) -> Option<()> {
        let (negative, digits) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let parts: Vec<&str> = digits.split(':').collect();
        let (hours, minutes, seconds) = match parts.as_slice() {
            [minutes, seconds] if seconds.contains('.') => ("0", *minutes, *seconds),
            [minutes, seconds] if self.named == fields::MINUTE | fields::SECOND => ("0", *minutes, *seconds),
            [hours, minutes] => (*hours, *minutes, "0"),
            [hours, minutes, seconds] => (*hours, *minutes, *seconds),
            _ => return None,
        };
        let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        let (minutes, whole): (i64, i64) = (minutes.parse().ok()?, whole.parse().ok()?);
        if minutes > 59 || whole > 60 {
            return None;
        }
        let fraction = parse_fraction(fraction)?;
        let micros =
            hours.parse::<i64>().ok()?.checked_mul(HOUR)? + minutes * MINUTE + whole * SECOND + fraction;
        self.micros += if negative { -micros as f64 } else { micros as f64 };
        self.note(CLOCK)
    }

    /// `1Y2M3DT4H5M6S` behind the P.
    fn iso(&mut self, text: &str) -> Option<()> {
        let mut in_time = false;
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('t') {
                in_time = true;
                rest = after;
                continue;
            }
            let length = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let value: f64 = rest[..length].parse().ok()?;
            let unit = match (&rest[length..length + 1], in_time) {
                ("m", false) => "mon",
                (unit @ ("y" | "w" | "d"), false) | (unit @ ("h" | "m" | "s"), true) => unit,
                _ => return None,
            };
            self.add(value, unit)?;
            rest = &rest[length + 1..];
        }
        (self.seen != 0).then_some(())
    }
}
