//! Reading of intervals, and their text in the style of PostgreSQL.

use crate::error::SqlError;
use crate::types::interval::{Interval, fields};
use crate::types::settings::IntervalStyle;

fn read(text: &str) -> Result<Interval, SqlError> {
    Interval::parse(text, fields::ALL, IntervalStyle::Postgres)
}

#[test]
fn intervals_read_and_write_as_in_postgresql() {
    for (input, output) in [
        ("1 year 2 mons 3 days 04:05:06.789", "1 year 2 mons 3 days 04:05:06.789"),
        ("-1 year +3 days -04:05", "-1 years +3 days -04:05:00"),
        ("1.5 months", "1 mon 15 days"),
        ("1.5 days", "1 day 12:00:00"),
        ("2 weeks", "14 days"),
        ("P1Y2M3DT4H5M6S", "1 year 2 mons 3 days 04:05:06"),
        ("1-2", "1 year 2 mons"),
        ("@ 3 hours ago", "-03:00:00"),
        ("90", "00:01:30"),
        ("0", "00:00:00"),
        ("100:00:00", "100:00:00"),
        ("1 12:00", "1 day 12:00:00"),
        ("2562047788:00:54.775807", "2562047788:00:54.775807"),
        ("-9223372036854775808 us", "-2562047788:00:54.775808"),
        ("0.1428571 weeks", "23:59:59.97408"),
    ] {
        let mut out = Vec::new();
        read(input).unwrap().write(IntervalStyle::Postgres, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), output, "{input}");
    }
    assert!(read("x").is_err());
}
