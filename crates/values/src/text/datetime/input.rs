//! Dates and times from text, in the forms PostgreSQL reads: the third step, which makes the type's
//! own value of a decoded moment.
//!
//! What must hold:
//!
//! 1. A finite value is within the calendar, or the text is refused.
//! 2. The decoded moment lies two days within `i64`, which leaves room for an offset of at most a
//!    day.
//! 3. A zone in the text counts for a timestamptz only. The other types accept and ignore it.
//! 4. Each problem has PostgreSQL's SQLSTATE and message, with the whole text in it.

use super::Problem;
use super::decode::{Moment, Place, decode};
use super::split::Fields;
use super::words::{Special, is_word};
use crate::error::{SqlError, SqlState};
use crate::types::datetime::{DAY, EPOCH_DAYS, EPOCH_MICROS, SECOND, checked_date, days_of, in_range};
use crate::types::settings::Settings;

/// Bytes that the fields of a date or time may take, and of a timestamp.
const ROOM: usize = 129;
const TIMESTAMP_ROOM: usize = 153;

#[cold]
fn error(problem: Problem, type_name: &str, text: &str) -> SqlError {
    let value = |state, what: &str| SqlError::new(state, format!("{what} out of range: \"{text}\""));
    match problem {
        Problem::Syntax => SqlError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type {type_name}: \"{text}\""),
        ),
        Problem::Value => value(SqlState::DATETIME_FIELD_OVERFLOW, "date/time field value"),
        Problem::Order => value(SqlState::DATETIME_FIELD_OVERFLOW, "date/time field value")
            .with_hint("Perhaps you need a different \"DateStyle\" setting."),
        Problem::Displacement => {
            value(SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE, "time zone displacement")
        }
        Problem::Zone(name) => {
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized"))
        }
        Problem::Range => {
            let what = if type_name == "date" { "date" } else { "timestamp" };
            value(SqlState::DATETIME_FIELD_OVERFLOW, what)
        }
    }
}

fn moment(text: &str, room: usize, settings: &Settings, time_only: bool) -> Result<Moment, Problem> {
    let fields = Fields::split(text, room, is_word).ok_or(Problem::Syntax)?;
    decode(&fields, settings, time_only)
}

/// Reads a date.
pub(in crate::text) fn parse_date(text: &str, settings: &Settings) -> Result<i32, SqlError> {
    let read = || {
        let moment = moment(text, ROOM, settings, false)?;
        match moment.special {
            Some(Special::Infinity) => Ok(i32::MAX),
            Some(Special::NegInfinity) => Ok(i32::MIN),
            Some(_) => Ok(-EPOCH_DAYS as i32),
            None => {
                let (year, month, day) = moment.date;
                checked_date(days_of(year, month, day)).map_err(|_| Problem::Range)
            }
        }
    };
    read().map_err(|problem| error(problem, "date", text))
}

/// Reads a time of day. A zone or a date in the text is accepted and ignored.
pub(in crate::text) fn parse_time(text: &str, settings: &Settings) -> Result<i64, SqlError> {
    let read = moment(text, ROOM, settings, true);
    read.map(|moment| moment.micros).map_err(|problem| error(problem, "time", text))
}

/// Reads a timestamp. A zone in the text is ignored.
pub(in crate::text) fn parse_timestamp(text: &str, settings: &Settings) -> Result<i64, SqlError> {
    let read = || {
        let moment = moment(text, TIMESTAMP_ROOM, settings, false)?;
        local(&moment)?.filter_range()
    };
    read().map_err(|problem| error(problem, "timestamp", text))
}

/// Reads a timestamptz.
pub(in crate::text) fn parse_timestamptz(text: &str, settings: &Settings) -> Result<i64, SqlError> {
    let read = || {
        let moment = moment(text, TIMESTAMP_ROOM, settings, false)?;
        let local = match local(&moment)? {
            Local::Named(instant) => return Ok(instant),
            Local::Civil(local) => local,
        };
        let east = match &moment.place {
            Place::Session => settings.time_zone.offset_of_local(local),
            Place::Offset(seconds) => *seconds,
            Place::Named(zone) => zone.offset_of_local(local),
            Place::Called(name, zone) => zone.offset_called_locally(name, local),
        };
        // A zone in POSIX's notation is up to 168 hours from UTC, more than `local` leaves room
        // for.
        Local::Civil(local.checked_sub(east * SECOND).ok_or(Problem::Range)?).filter_range()
    };
    read().map_err(|problem| error(problem, "timestamp with time zone", text))
}

/// A timestamp before its range is checked.
enum Local {
    /// A moment by name: the same in every zone.
    Named(i64),
    Civil(i64),
}

impl Local {
    fn filter_range(self) -> Result<i64, Problem> {
        match self {
            Local::Named(micros) => Ok(micros),
            Local::Civil(micros) if in_range(micros) => Ok(micros),
            Local::Civil(_) => Err(Problem::Range),
        }
    }
}

fn local(moment: &Moment) -> Result<Local, Problem> {
    Ok(match moment.special {
        Some(Special::Infinity) => Local::Named(i64::MAX),
        Some(Special::NegInfinity) => Local::Named(i64::MIN),
        Some(_) => Local::Named(-EPOCH_MICROS),
        None => {
            let (year, month, day) = moment.date;
            let micros =
                days_of(year, month, day).checked_mul(DAY).and_then(|days| days.checked_add(moment.micros));
            // The bound leaves room for a day's shift. Longer offsets are subtracted with a check.
            Local::Civil(
                micros
                    .filter(|micros| micros.unsigned_abs() < i64::MAX as u64 - 2 * DAY as u64)
                    .ok_or(Problem::Range)?,
            )
        }
    })
}
