//! The calendar over the whole range of dates.

use super::*;

#[test]
fn days_and_calendar_dates_convert_both_ways() {
    assert_eq!(days_of(2000, 1, 1), 0);
    assert_eq!(days_of(-4713, 11, 24), DATE_MIN);
    assert_eq!(days_of(5_874_898, 1, 1), DATE_END);
    for days in (-2_451_545..3_000_000).step_by(97) {
        let (year, month, day) = date_of(days);
        assert_eq!(days_of(year, month, day), days);
    }
}
