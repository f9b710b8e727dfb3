//! The session settings that values' text depends on.

use super::datetime::Zone;

/// How dates are written.
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

/// The order of day, month and year where the text leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    /// Month, day, year.
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

/// How intervals are written.
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

/// A session's settings of formats, and the beginning of its transaction (for 'now', 'today').
#[derive(Clone, Debug)]
pub struct Settings {
    /// TimeZone.
    pub time_zone: Zone,
    /// DateStyle's output part.
    pub date_style: DateStyle,
    /// DateStyle's order part.
    pub date_order: DateOrder,
    /// IntervalStyle.
    pub interval_style: IntervalStyle,
    /// `bytea_output = escape` instead of hex.
    pub bytea_escape: bool,
    /// extra_float_digits; above 0 means the shortest text that reads back equal.
    pub extra_float_digits: i32,
    /// When the transaction began: microseconds since 2000-01-01 UTC.
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
