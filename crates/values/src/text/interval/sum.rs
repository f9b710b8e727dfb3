//! The sum of an interval's fields while its text is read, and the units the fields may have.
//!
//! What must hold:
//!
//! 1. A field that overflows ends the reading. No sum wraps around.
//! 2. A fraction carries into the smaller fields as in PostgreSQL. Years carry into months, months
//!    and weeks into days, days into the clock.
//! 3. Each unit has its bit, by which the reader finds that a unit occurs twice.

use super::super::datetime::Problem;
use crate::types::datetime::{DAY, HOUR, MINUTE, SECOND};
use crate::types::interval::fields;

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

impl Unit {
    pub(super) fn bit(self) -> u32 {
        1 << self as u32
    }

    pub(super) fn by_name(word: &str) -> Option<Unit> {
        // The first ten letters identify a unit.
        Some(match word.get(..10).unwrap_or(word) {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Microsecond,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
            "m" | "mm" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
            "d" | "day" | "days" => Unit::Day,
            "w" | "week" | "weeks" => Unit::Week,
            "mon" | "mons" | "month" | "months" => Unit::Month,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
            "dec" | "decs" | "decade" | "decades" => Unit::Decade,
            "c" | "cent" | "century" | "centuries" => Unit::Century,
            "mil" | "mils" | "millennia" | "millennium" => Unit::Millennium,
            _ => return None,
        })
    }

    /// The unit of a last number that has none.
    pub(super) fn smallest(named: i32) -> Unit {
        use fields::{ALL, DAY as DAYS, HOUR as HOURS, MINUTE as MINUTES, MONTH, SECOND as SECONDS, YEAR};
        if named == ALL || named & SECONDS != 0 {
            Unit::Second
        } else if named & MINUTES != 0 {
            Unit::Minute
        } else if named & HOURS != 0 {
            Unit::Hour
        } else if named & DAYS != 0 {
            Unit::Day
        } else if named & MONTH != 0 {
            Unit::Month
        } else if named & YEAR != 0 {
            Unit::Year
        } else {
            Unit::Second
        }
    }
}

/// Fields summed up while a text is read.
#[derive(Default)]
pub(super) struct Sum {
    pub(super) years: i32,
    pub(super) months: i32,
    pub(super) days: i32,
    pub(super) micros: i64,
}

/// Adds a product to a field, both within the field's range.
fn grow(field: &mut i32, value: i64, scale: i64) -> Result<(), Problem> {
    let product = value.checked_mul(scale).and_then(|product| i32::try_from(product).ok());
    *field = product.and_then(|product| field.checked_add(product)).ok_or(Problem::Value)?;
    Ok(())
}

impl Sum {
    /// Adds a number of units. Its fraction carries into the smaller fields.
    pub(super) fn add(&mut self, value: i64, fraction: f64, unit: Unit) -> Result<(), Problem> {
        match unit {
            Unit::Microsecond => self.add_micros(value, fraction, 1),
            Unit::Millisecond => self.add_micros(value, fraction, 1000),
            Unit::Second => self.add_micros(value, fraction, SECOND),
            Unit::Minute => self.add_micros(value, fraction, MINUTE),
            Unit::Hour => self.add_micros(value, fraction, HOUR),
            Unit::Day => {
                grow(&mut self.days, value, 1)?;
                self.add_micros(0, fraction, DAY)
            }
            Unit::Week => self.add_days(value, fraction, 7),
            Unit::Month => {
                grow(&mut self.months, value, 1)?;
                self.add_days(0, fraction, 30)
            }
            Unit::Year => self.add_years(value, fraction, 1),
            Unit::Decade => self.add_years(value, fraction, 10),
            Unit::Century => self.add_years(value, fraction, 100),
            Unit::Millennium => self.add_years(value, fraction, 1000),
        }
    }

    fn add_years(&mut self, value: i64, fraction: f64, years: i64) -> Result<(), Problem> {
        grow(&mut self.years, value, years)?;
        grow(&mut self.months, (fraction * years as f64 * 12.0).round_ties_even() as i64, 1)
    }

    fn add_days(&mut self, value: i64, fraction: f64, days: i64) -> Result<(), Problem> {
        grow(&mut self.days, value, days)?;
        let fraction = fraction * days as f64;
        grow(&mut self.days, fraction as i64, 1)?;
        self.add_micros(0, fraction.fract(), DAY)
    }

    pub(super) fn add_micros(&mut self, value: i64, fraction: f64, unit: i64) -> Result<(), Problem> {
        // Half a microsecond is dropped.
        let part = fraction * unit as f64;
        let part = part.trunc() + if part.fract().abs() > 0.5 { part.signum() } else { 0.0 };
        let sum = value.checked_mul(unit).and_then(|whole| self.micros.checked_add(whole));
        self.micros = sum.and_then(|sum| sum.checked_add(part as i64)).ok_or(Problem::Value)?;
        Ok(())
    }

    pub(super) fn reversed(&self) -> Result<Sum, Problem> {
        let reversed = || {
            Some(Sum {
                years: self.years.checked_neg()?,
                months: self.months.checked_neg()?,
                days: self.days.checked_neg()?,
                micros: self.micros.checked_neg()?,
            })
        };
        reversed().ok_or(Problem::Value)
    }
}
