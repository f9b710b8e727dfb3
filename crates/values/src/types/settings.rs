//! The session settings that the text of values depends on.

use super::datetime::Zone;

/// The format of dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateStyle {
    /// 1997-12-17 07:37:16-08
    Iso,
    /// 12/17/1997 07:37:16.00 PST
    Sql,
    /// Wed Dec 17 07:37:16 1997 PST
    Postgres,
    /// 17.12.1997 07:37:16.00 PST
    German,
}

/// The order of day, month and year where a text leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    /// Month, day, year.
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

/// The format of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalStyle {
    /// 1 year 2 mons 3 days 04:05:06
    Postgres,
    /// @ 1 year 2 mons 3 days 4 hours 5 mins 6 secs
    PostgresVerbose,
    /// +1-2 +3 +4:05:06
    SqlStandard,
    /// P1Y2M3DT4H5M6S
    Iso8601,
}

/// The session's formats, and the time at which its transaction began (for 'now' and 'today').
#[derive(Clone, Debug)]
pub struct Settings {
    /// The setting TimeZone.
    pub time_zone: Zone,
    /// The output part of DateStyle.
    pub date_style: DateStyle,
    /// The order part of DateStyle.
    pub date_order: DateOrder,
    /// The setting IntervalStyle.
    pub interval_style: IntervalStyle,
    /// Whether bytea_output is escape instead of hex.
    pub bytea_escape: bool,
    /// The setting extra_float_digits; above 0 means the shortest text that reads back equal.
    pub extra_float_digits: i32,
    /// The transaction's begin in microseconds since 2000-01-01 UTC.
    pub transaction_time: i64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            time_zone: Zone::utc(),
            date_style: DateStyle::Iso,
            date_order: DateOrder::Mdy,
            interval_style: IntervalStyle::Postgres,
            bytea_escape: false,
            extra_float_digits: 1,
            transaction_time: 0,
        }
    }
}

/// The settings whose names PostgreSQL writes with capitals, all of them settings of formats.
const CAPITALIZED: [&str; 3] = ["DateStyle", "IntervalStyle", "TimeZone"];

/// A setting's name as PostgreSQL writes it; a name is read in any case.
pub fn proper_name(name: &str) -> &str {
    CAPITALIZED.into_iter().find(|known| known.eq_ignore_ascii_case(name)).unwrap_or(name)
}
