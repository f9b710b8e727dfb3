//! Intervals: months, days and microseconds, kept apart as in PostgreSQL.
//!
//! What must hold:
//!
//! 1. All fields at one extreme are an infinity. Every calculation asks for the infinities first
//!    and ends through `checked`, which refuses a finite value with that look.
//! 2. Intervals compare by their span, with months of 30 days and days of 24 hours. Equal ones may
//!    have other fields, and so another text and another effect on a date.
//! 3. A span fits `i128` for all fields, so comparisons never overflow.
//! 4. A field that overflows is 22008. Fields carry into each other only where a function says so.

use std::cmp::Ordering;

use super::datetime::{DAY, HOUR, MINUTE};
use crate::error::{SqlError, SqlState};

/// The fields that a type like `interval day to hour` names, as bits with PostgreSQL's numbers.
pub mod fields {
    /// All fields: the type names none.
    pub const ALL: i32 = 0x7fff;
    pub(crate) const MONTH: i32 = 1 << 1;
    pub(crate) const YEAR: i32 = 1 << 2;
    pub(crate) const DAY: i32 = 1 << 3;
    pub(crate) const HOUR: i32 = 1 << 10;
    pub(crate) const MINUTE: i32 = 1 << 11;
    pub(crate) const SECOND: i32 = 1 << 12;

    /// The fields that a type modifier names.
    pub fn of(modifier: i32) -> i32 {
        if modifier < 0 { ALL } else { modifier >> 16 & ALL }
    }
}

/// An interval. All fields of an infinity are at their extreme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months, years included.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// 22008: a field of the interval is out of range.
pub fn interval_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

fn round_to_micros(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

impl Interval {
    /// infinity
    pub const INFINITY: Interval = Interval { months: i32::MAX, days: i32::MAX, micros: i64::MAX };
    /// -infinity
    pub const NEG_INFINITY: Interval = Interval { months: i32::MIN, days: i32::MIN, micros: i64::MIN };

    /// Whether it is one of the infinities.
    pub fn is_infinite(self) -> bool {
        self == Interval::INFINITY || self == Interval::NEG_INFINITY
    }

    /// Microseconds, with months of 30 days and days of 24 hours. Comparisons use it.
    pub fn span(self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY) + i128::from(self.micros)
    }

    /// The order of the spans.
    pub fn compare(self, other: Interval) -> Ordering {
        self.span().cmp(&other.span())
    }

    /// -self
    pub fn negate(self) -> Result<Interval, SqlError> {
        if self.is_infinite() {
            return Ok(if self == Interval::INFINITY { Interval::NEG_INFINITY } else { Interval::INFINITY });
        }
        Interval::checked(self.months.checked_neg(), self.days.checked_neg(), self.micros.checked_neg())
    }

    /// self + other
    pub fn plus(self, other: Interval) -> Result<Interval, SqlError> {
        if self.is_infinite() || other.is_infinite() {
            if self.is_infinite() && other.is_infinite() && self != other {
                return Err(interval_out_of_range());
            }
            return Ok(if self.is_infinite() { self } else { other });
        }
        Interval::checked(
            self.months.checked_add(other.months),
            self.days.checked_add(other.days),
            self.micros.checked_add(other.micros),
        )
    }

    /// self - other
    pub fn minus(self, other: Interval) -> Result<Interval, SqlError> {
        if self.is_infinite() || other.is_infinite() {
            return self.plus(other.negate()?);
        }
        Interval::checked(
            self.months.checked_sub(other.months),
            self.days.checked_sub(other.days),
            self.micros.checked_sub(other.micros),
        )
    }

    fn checked(months: Option<i32>, days: Option<i32>, micros: Option<i64>) -> Result<Interval, SqlError> {
        match (months, days, micros) {
            (Some(months), Some(days), Some(micros)) => {
                let value = Interval { months, days, micros };
                if value.is_infinite() { Err(interval_out_of_range()) } else { Ok(value) }
            }
            _ => Err(interval_out_of_range()),
        }
    }

    /// self * factor. Parts of a month or day carry into the next smaller field.
    pub fn multiply(self, factor: f64) -> Result<Interval, SqlError> {
        if factor.is_infinite() && !self.is_infinite() {
            let product = self.span().signum() as f64 * factor;
            return match product {
                _ if product.is_nan() => Err(interval_out_of_range()),
                _ if product > 0.0 => Ok(Interval::INFINITY),
                _ => Ok(Interval::NEG_INFINITY),
            };
        }
        self.scaled(factor, |field| field * factor)
    }

    /// self / divisor, which is not zero.
    pub fn divide(self, divisor: f64) -> Result<Interval, SqlError> {
        if self.is_infinite() && divisor.is_infinite() {
            return Err(interval_out_of_range());
        }
        self.scaled(divisor, |field| field / divisor)
    }

    /// Each field by `scale`. The sign of `factor` decides that of an infinite interval.
    fn scaled(self, factor: f64, scale: impl Fn(f64) -> f64) -> Result<Interval, SqlError> {
        if factor.is_nan() || self.is_infinite() && factor == 0.0 {
            return Err(interval_out_of_range());
        }
        if self.is_infinite() {
            return if factor < 0.0 { self.negate() } else { Ok(self) };
        }
        let months = scale(f64::from(self.months));
        let days = scale(f64::from(self.days));
        let whole = |field: f64| {
            let in_i32 = (-2_147_483_648.0..2_147_483_648.0).contains(&field);
            in_i32.then_some(field as i32).ok_or_else(interval_out_of_range)
        };
        let (whole_months, whole_days) = (whole(months)?, whole(days)?);
        let month_days = round_to_micros((months - months.trunc()) * 30.0);
        let mut seconds = round_to_micros((days - days.trunc() + month_days - month_days.trunc()) * 86_400.0);
        let mut day_carry = 0;
        // Rounding may have made the rest a whole day.
        if seconds.abs() >= 86_400.0 {
            day_carry = (seconds / 86_400.0) as i32;
            seconds -= f64::from(day_carry) * 86_400.0;
        }
        let days = whole_days.checked_add(day_carry).and_then(|days| days.checked_add(month_days as i32));
        let micros = (scale(self.micros as f64) + seconds * 1e6).round_ties_even();
        let in_i64 = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros);
        Interval::checked(Some(whole_months), days, in_i64.then_some(micros as i64))
    }

    /// justify_interval(): 24 hours become a day, 30 days a month, and all fields get one sign.
    pub fn justify(self) -> Result<Interval, SqlError> {
        if self.is_infinite() {
            return Ok(self);
        }
        let mut days = i64::from(self.days) + self.micros / DAY;
        let mut micros = self.micros % DAY;
        let mut months = i64::from(self.months) + days / 30;
        days %= 30;
        if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
            days += 30;
            months -= 1;
        } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
            days -= 30;
            months += 1;
        }
        if days > 0 && micros < 0 {
            micros += DAY;
            days -= 1;
        } else if days < 0 && micros > 0 {
            micros -= DAY;
            days += 1;
        }
        Interval::checked(i32::try_from(months).ok(), i32::try_from(days).ok(), Some(micros))
    }

    /// justify_hours(): 24 hours become a day.
    pub fn justify_hours(self) -> Result<Interval, SqlError> {
        if self.is_infinite() {
            return Ok(self);
        }
        let mut days = i64::from(self.days) + self.micros / DAY;
        let mut micros = self.micros % DAY;
        if days > 0 && micros < 0 {
            days -= 1;
            micros += DAY;
        } else if days < 0 && micros > 0 {
            days += 1;
            micros -= DAY;
        }
        Interval::checked(Some(self.months), i32::try_from(days).ok(), Some(micros))
    }

    /// justify_days(): 30 days become a month.
    pub fn justify_days(self) -> Result<Interval, SqlError> {
        if self.is_infinite() {
            return Ok(self);
        }
        let mut months = i64::from(self.months) + i64::from(self.days / 30);
        let mut days = self.days % 30;
        if months > 0 && days < 0 {
            months -= 1;
            days += 30;
        } else if months < 0 && days > 0 {
            months += 1;
            days -= 30;
        }
        Interval::checked(i32::try_from(months).ok(), Some(days), Some(self.micros))
    }

    /// The interval without the fields below the smallest named one.
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
