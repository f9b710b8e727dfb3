//! Dates and times: the calendar, time zones, ranges. Days count from 2000-01-01, timestamps in microseconds from there.
//!
//! The calendar is our own, because PostgreSQL's reaches from 4714 BC to 5874897 AD; only a time zone's offset at an
//! instant is asked of the time zone library, at the nearest or, in a later age, an alike instant that it knows.

mod input;
mod output;
#[cfg(test)]
mod tests;

use jiff::tz::{AmbiguousOffset, TimeZone};

pub(in crate::types) use input::parse_fraction;
pub use input::{parse_date, parse_time, parse_timestamp, parse_timestamptz};
pub use output::{write_date, write_fraction, write_time, write_timestamp, write_timestamptz};

use crate::error::{SqlError, SqlState};

/// Microseconds of a second.
pub const SECOND: i64 = 1_000_000;
/// Of a minute.
pub const MINUTE: i64 = 60 * SECOND;
/// Of an hour.
pub const HOUR: i64 = 60 * MINUTE;
/// Of a day.
pub const DAY: i64 = 24 * HOUR;
/// Days from 1970-01-01 to 2000-01-01.
pub const EPOCH_DAYS: i64 = 10_957;
/// Microseconds from 1970-01-01 to 2000-01-01.
pub const EPOCH_MICROS: i64 = EPOCH_DAYS * DAY;
/// The first day there is: 4714-11-24 BC.
const DATE_MIN: i64 = -2_451_545;
/// The day after the last date: 5874898-01-01.
const DATE_END: i64 = 2_145_031_949;
/// The first instant.
const TIMESTAMP_MIN: i64 = DATE_MIN * DAY;
/// The instant after the last: 294277-01-01.
const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;

/// A broken-down local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    /// Astronomical year: 0 is 1 BC.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// Microseconds since midnight.
    pub micros: i64,
}

/// Days since 2000-01-01 of a date of the proleptic Gregorian calendar.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March put the leap day last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468 - EPOCH_DAYS
}

/// Year, month and day of days since 2000-01-01.
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

/// Days of a month.
pub fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Civil {
    /// Of a local timestamp.
    pub fn of(micros: i64) -> Civil {
        let (year, month, day) = date_of(micros.div_euclid(DAY));
        Civil { year, month, day, micros: micros.rem_euclid(DAY) }
    }

    /// The local timestamp, None when out of range.
    pub fn micros(&self) -> Option<i64> {
        days_of(self.year, self.month, self.day)
            .checked_mul(DAY)?
            .checked_add(self.micros)
            .filter(|v| in_range(*v))
    }
}

/// Whether it is a finite timestamp that PostgreSQL has.
pub fn in_range(micros: i64) -> bool {
    (TIMESTAMP_MIN..TIMESTAMP_END).contains(&micros)
}

/// Whether a timestamp is one of the infinities.
pub fn is_infinite(micros: i64) -> bool {
    micros == i64::MIN || micros == i64::MAX
}

/// A date of that many days, checked.
pub fn checked_date(days: i64) -> Result<i32, SqlError> {
    i32::try_from(days)
        .ok()
        .filter(|_| (DATE_MIN..DATE_END).contains(&days))
        .ok_or_else(|| SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range"))
}

/// The error for timestamps beyond the calendar.
pub fn timestamp_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

/// A checked timestamp.
pub fn checked_timestamp(micros: Option<i64>) -> Result<i64, SqlError> {
    micros.filter(|micros| in_range(*micros)).ok_or_else(timestamp_out_of_range)
}

/// A date's midnight as timestamp.
pub fn date_to_timestamp(days: i32) -> Result<i64, SqlError> {
    match days {
        i32::MIN => Ok(i64::MIN),
        i32::MAX => Ok(i64::MAX),
        _ => i64::from(days).checked_mul(DAY).filter(|v| in_range(*v)).ok_or_else(|| {
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range for timestamp")
        }),
    }
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
pub fn offset_at(zone: &TimeZone, micros: i64) -> i64 {
    i64::from(zone.to_offset(instant(micros)).seconds())
}

/// Offset and abbreviation of a zone at an instant.
pub fn offset_and_name(zone: &TimeZone, micros: i64) -> (i64, String) {
    let info = zone.to_offset_info(instant(micros));
    (i64::from(info.offset().seconds()), info.abbreviation().to_owned())
}

/// The calendar repeats itself, weekdays included, after this many years.
const CYCLE: i64 = 400;

fn instant(micros: i64) -> jiff::Timestamp {
    let mut unix = micros.saturating_add(EPOCH_MICROS);
    let last = jiff::Timestamp::MAX.as_microsecond();
    if unix > last {
        // A zone's rules go on for ever: the same moment of an earlier cycle has the same offset.
        let cycle = days_of(2000 + CYCLE, 1, 1) * DAY;
        unix -= ((unix - last) / cycle + 1) * cycle;
    }
    jiff::Timestamp::from_microsecond(unix).unwrap_or(if unix < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    })
}

/// The local time in a zone of an instant.
pub fn to_local(zone: &TimeZone, micros: i64) -> i64 {
    if is_infinite(micros) { micros } else { micros + offset_at(zone, micros) * SECOND }
}

/// The instant of a local time in a zone. In a gap the offset before it holds, in a repeated hour the later one.
pub fn to_instant(zone: &TimeZone, local: i64) -> Result<i64, SqlError> {
    if is_infinite(local) {
        return Ok(local);
    }
    let civil = Civil::of(local);
    let later = (civil.year - 9998).max(0);
    let clamped = (civil.year - (later + CYCLE - 1) / CYCLE * CYCLE).max(-9998);
    let seconds = civil.micros / SECOND;
    let date = jiff::civil::DateTime::new(
        clamped as i16,
        civil.month as i8,
        civil.day.min(month_days(clamped, civil.month)) as i8,
        (seconds / 3600) as i8,
        (seconds / 60 % 60) as i8,
        (seconds % 60) as i8,
        0,
    )
    .map_err(|_| timestamp_out_of_range())?;
    let offset = match zone.to_ambiguous_zoned(date).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { before, .. } => before,
        AmbiguousOffset::Fold { after, .. } => after,
    };
    checked_timestamp(local.checked_sub(i64::from(offset.seconds()) * SECOND))
}

/// A time zone by name ("Europe/Berlin", "utc"), abbreviation ("PST"), or POSIX-like offset ("+02", "UTC+3": west is
/// positive there). None when it is not known.
pub fn zone_by_name(name: &str) -> Option<TimeZone> {
    let trimmed = name.trim();
    if trimmed.eq_ignore_ascii_case("utc")
        || trimmed.eq_ignore_ascii_case("z")
        || trimmed.eq_ignore_ascii_case("zulu")
    {
        return Some(TimeZone::UTC);
    }
    if let Some(seconds) = abbreviation(trimmed) {
        return fixed(seconds);
    }
    // Moscow's offset from UTC has changed under this name.
    if trimmed.eq_ignore_ascii_case("msk") {
        return TimeZone::get("Europe/Moscow").ok();
    }
    if let Ok(zone) = TimeZone::get(trimmed) {
        return Some(zone);
    }
    let split = trimmed.find(['+', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])?;
    // Offsets in zone names are POSIX's: west is positive.
    let offset = input::parse_offset(&trimmed[split..])?;
    fixed(-offset)
}

/// A zone that is always so many seconds east of UTC.
pub fn fixed(seconds: i64) -> Option<TimeZone> {
    jiff::tz::Offset::from_seconds(i32::try_from(seconds).ok()?).ok().map(TimeZone::fixed)
}

/// Seconds east of UTC of the common abbreviations of PostgreSQL's default set.
fn abbreviation(name: &str) -> Option<i64> {
    let hours = match name.to_ascii_uppercase().as_str() {
        "GMT" | "UT" | "UCT" | "WET" => 0.0,
        "BST" | "CET" | "MET" | "WAT" | "WEST" => 1.0,
        "CEST" | "EET" | "MEST" | "SAST" | "METDST" => 2.0,
        "EEST" | "EAT" => 3.0,
        "MSD" => 4.0,
        "IST" => 2.0,
        "JST" | "KST" => 9.0,
        "AEST" => 10.0,
        "AEDT" => 11.0,
        "ACST" => 9.5,
        "AWST" | "SGT" | "HKT" => 8.0,
        "NZST" => 12.0,
        "NZDT" => 13.0,
        "NST" => -3.5,
        "AST" => -4.0,
        "EDT" => -4.0,
        "EST" | "CDT" => -5.0,
        "CST" | "MDT" => -6.0,
        "MST" | "PDT" => -7.0,
        "PST" | "AKDT" => -8.0,
        "AKST" => -9.0,
        "HST" => -10.0,
        _ => return None,
    };
    Some((hours * 3600.0) as i64)
}
