//! Intervals: months, days and microseconds kept apart, as PostgreSQL does.

/// An interval. `INFINITY` and `NEG_INFINITY` are all fields at their extreme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months, years included.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}
