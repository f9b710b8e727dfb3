//! Timestamps in the time zones that an expression names: AT TIME ZONE.
//!
//! What must hold:
//!
//! 1. The session's zone decides first what an abbreviation means ([`meant`]). So a function that
//!    calls one of these depends on the session, although it names a zone.
//! 2. Infinite timestamps stay as they are, in every zone.
//! 3. A moved timestamp is in range, or the move is an error.

use super::Result;
use crate::context::EvalContext;
use values::error::{SqlError, SqlState};
use values::types::Interval;
use values::types::datetime::{Abbreviation, SECOND, Zone, checked_timestamp, is_infinite, offset_at};

fn refused(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn meant(cx: &EvalContext<'_, '_>, name: &str) -> Result<Abbreviation> {
    Zone::meant_by(name, &cx.session.settings().time_zone)
        .ok_or_else(|| refused(format!("time zone \"{name}\" not recognized")))
}

/// A zone by name, also for an abbreviation of changing meaning.
pub(super) fn lasting(cx: &EvalContext<'_, '_>, name: &str) -> Result<Zone> {
    match meant(cx, name)? {
        Abbreviation::Constant { seconds, .. } => {
            Zone::constant(seconds).ok_or_else(|| refused(format!("time zone \"{name}\" not recognized")))
        }
        Abbreviation::Varying(zone) | Abbreviation::Zone(zone) => Ok(zone),
    }
}

/// The instant of a local time in a zone.
pub(super) fn from_local(cx: &EvalContext<'_, '_>, name: &str, local: i64) -> Result<i64> {
    if is_infinite(local) {
        return Ok(local);
    }
    let seconds = match meant(cx, name)? {
        Abbreviation::Constant { seconds, .. } => seconds,
        Abbreviation::Varying(zone) => zone.offset_called_locally(name, local),
        Abbreviation::Zone(zone) => zone.offset_of_local(local),
    };
    checked_timestamp(local.checked_sub(seconds * SECOND))
}

/// As [`from_local`], where the zone may be an offset (`+05:30`).
pub(super) fn from_local_or_offset(cx: &EvalContext<'_, '_>, name: &str, local: i64) -> Result<i64> {
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        let error = refused(format!("invalid input syntax for type numeric time zone: \"{name}\""));
        return Err(error.with_hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    match values::text::datetime::offset(name) {
        Some(Some(seconds)) => checked_timestamp(local.checked_sub(seconds * SECOND)),
        Some(None) => Err(refused(format!("numeric time zone \"{name}\" out of range"))),
        None => from_local(cx, name, local),
    }
}

/// The local time of an instant in a zone.
pub(super) fn to_local(cx: &EvalContext<'_, '_>, name: &str, instant: i64) -> Result<i64> {
    if is_infinite(instant) {
        return Ok(instant);
    }
    let seconds = match meant(cx, name)? {
        Abbreviation::Constant { seconds, .. } => seconds,
        Abbreviation::Varying(zone) => zone.offset_called(name, instant),
        Abbreviation::Zone(zone) => offset_at(&zone, instant),
    };
    checked_timestamp(instant.checked_add(seconds * SECOND))
}

/// A timestamp moved by an offset from UTC, east (1) or west (-1).
pub(super) fn moved(cx: &EvalContext<'_, '_>, offset: Interval, stamp: i64, direction: i64) -> Result<i64> {
    if is_infinite(stamp) {
        return Ok(stamp);
    }
    let shown = || {
        let mut out = Vec::new();
        offset.write(cx.session.settings().interval_style, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    if offset.is_infinite() {
        return Err(refused(format!("interval time zone \"{}\" must be finite", shown())));
    }
    if offset.months != 0 || offset.days != 0 {
        let message = format!("interval time zone \"{}\" must not include months or days", shown());
        return Err(refused(message));
    }
    let seconds = offset.micros / SECOND;
    checked_timestamp(seconds.checked_mul(SECOND * direction).and_then(|micros| stamp.checked_add(micros)))
}
