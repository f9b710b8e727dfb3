//! The clock of SQL: microseconds since 2000.

/// Microseconds from 1970 to 2000.
const EPOCH: i64 = 946_684_800_000_000;

/// The present time in microseconds since 2000.
pub(crate) fn clock() -> i64 {
    runtime::time::wall() - EPOCH
}
