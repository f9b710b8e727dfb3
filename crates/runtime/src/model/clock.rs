//! Virtual time: the running thread's clock.

use super::machine::here;

/// The calendar's time at the machine's start: 2026-01-01 00:00 UTC, in nanoseconds since
/// 1970.
const CALENDAR: u64 = 1_767_225_600_000_000_000;
/// Time of a look at the clock, in nanoseconds.
const LOOK: u64 = 20;

/// Nanoseconds of a clock that never goes back.
pub(crate) fn monotonic() -> u64 {
    here().spend(LOOK);
    here().now()
}

/// Nanoseconds since 1970-01-01 00:00 UTC.
pub(crate) fn calendar() -> u64 {
    CALENDAR + monotonic()
}
