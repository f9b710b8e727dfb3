//! Dates and times: the calendar, time zones, ranges.
//!
//! Days count from 2000-01-01; timestamps are microseconds from there. The calendar is our own,
//! because PostgreSQL's reaches from 4714 BC to 5874897 AD. The time zone library only gives a
//! zone's offset at an instant. Outside the instants it knows, it is asked for the nearest one, or
//! for a like one of an earlier calendar cycle.
//!
//! What must hold:
//!
//! 1. The extreme integers are the infinities. A finite value lies within the ranges here, far from
//!    the extremes, so adding an offset does not overflow.
//! 2. A calculation that may leave the range ends through [`checked_date`] or
//!    [`checked_timestamp`].
//! 3. Years are astronomical inside: 0 is 1 BC. Only text has BC.
//! 4. [`days_of`] and [`date_of`] are each other's inverse for all days of the range.

mod abbreviations;
#[cfg(test)]
mod tests;
mod zone;

pub use zone::{Abbreviation, Zone};

use crate::error::{SqlError, SqlState};

/// Microseconds of a second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds of a minute.
pub const MINUTE: i64 = 60 * SECOND;
/// Microseconds of an hour.
pub const HOUR: i64 = 60 * MINUTE;
/// Microseconds of a day.
pub const DAY: i64 = 24 * HOUR;
/// Days from 1970-01-01 to 2000-01-01.
pub const EPOCH_DAYS: i64 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub const EPOCH_MICROS: i64 = EPOCH_DAYS * DAY;
/// The first date: 4714-11-24 BC.
pub(crate) const DATE_MIN: i64 = -2_451_545;
/// The day after the last date: 5874898-01-01.
const DATE_END: i64 = 2_145_031_949;
/// The first instant.
const TIMESTAMP_MIN: i64 = DATE_MIN * DAY;
/// The instant after the last: 294277-01-01.
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// A broken-down local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// The astronomical year: 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// Microseconds since midnight.
    pub micros: i64,
}

/// Days from 2000-01-01 to a date of the proleptic Gregorian calendar.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // In a year that begins in March the leap day is the last day.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 - EPOCH_DAYS
}

/// Year, month and day of a day counted from 2000-01-01.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + EPOCH_DAYS + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Number of days of a month.
pub fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Civil {
    /// The broken-down form of a local timestamp.
    pub fn of(micros: i64) -> Civil {
        let (year, month, day) = date_of(micros.div_euclid(DAY));
        Civil { year, month, day, micros: micros.rem_euclid(DAY) }
    }

    /// The local timestamp; None when it is out of range.
    pub fn micros(&self) -> Option<i64> {
        days_of(self.year, self.month, self.day)
            .checked_mul(DAY)?
            .checked_add(self.micros)
            .filter(|v| in_range(*v))
    }
}

/// Whether PostgreSQL has this finite timestamp.
pub fn in_range(micros: i64) -> bool {
    (TIMESTAMP_MIN..TIMESTAMP_END).contains(&micros)
}

/// Whether a timestamp is one of the infinities.
pub fn is_infinite(micros: i64) -> bool {
    micros == i64::MIN || micros == i64::MAX
}

/// The date of a day counted from 2000-01-01; 22008 when it is out of range.
pub fn checked_date(days: i64) -> Result<i32, SqlError> {
    i32::try_from(days)
        .ok()
        .filter(|_| (DATE_MIN..DATE_END).contains(&days))
        .ok_or_else(|| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range"))
}

/// 22008: the timestamp is outside the calendar.
pub fn timestamp_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

/// A timestamp within the calendar, else 22008.
pub fn checked_timestamp(micros: Option<i64>) -> Result<i64, SqlError> {
    micros.filter(|micros| in_range(*micros)).ok_or_else(timestamp_out_of_range)
}

/// A date's midnight as timestamp.
pub fn date_to_timestamp(days: i32) -> Result<i64, SqlError> {
    match days {
        i32::MIN => Ok(i64::MIN),
        i32::MAX => Ok(i64::MAX),
        _ => i64::from(days).checked_mul(DAY).filter(|v| in_range(*v)).ok_or_else(date_out_of_range),
    }
}

/// 22008: no timestamp has this date.
pub fn date_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
}

/// The date a timestamp falls on.
pub fn timestamp_to_date(micros: i64) -> i32 {
    match micros {
        i64::MIN => i32::MIN,
        i64::MAX => i32::MAX,
        _ => micros.div_euclid(DAY) as i32,
    }
}

/// Seconds east of UTC in a zone at an instant.
pub fn offset_at(zone: &Zone, micros: i64) -> i64 {
    zone.offset_at(micros)
}

/// The local time in a zone of an instant.
pub fn to_local(zone: &Zone, micros: i64) -> i64 {
    if is_infinite(micros) { micros } else { micros + zone.offset_at(micros) * SECOND }
}

/// The instant of a local time in a zone.
pub fn to_instant(zone: &Zone, local: i64) -> Result<i64, SqlError> {
    if is_infinite(local) {
        return Ok(local);
    }
    checked_timestamp(local.checked_sub(zone.offset_of_local(local) * SECOND))
}
