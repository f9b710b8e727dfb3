//! Intervals: months, days and microseconds kept apart, as PostgreSQL does.

mod input;

use std::cmp::Ordering;
use std::io::Write;

pub use input::fields;

use super::datetime::{DAY, HOUR, MINUTE, SECOND, write_fraction};
use super::settings::IntervalStyle;
use crate::error::{SqlError, SqlState};

/// An interval. The infinities have all fields at their extreme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Interval {
    /// Months, years included.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// 22008.
pub fn interval_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

fn round_to_micros(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

impl Interval {
    /// infinity
    pub const INFINITY: Interval = Interval { months: i32::MAX, days: i32::MAX, micros: i64::MAX };
    /// -infinity
    pub const NEG_INFINITY: Interval = Interval { months: i32::MIN, days: i32::MIN, micros: i64::MIN };

    /// Whether it is one of the infinities.
    pub fn is_infinite(self) -> bool {
        self == Interval::INFINITY || self == Interval::NEG_INFINITY
    }

    /// Microseconds with months of 30 days and days of 24 hours: what comparison goes by.
    pub fn span(self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY) + i128::from(self.micros)
    }

    /// Order by span.
    pub fn compare(self, other: Interval) -> Ordering {
        self.span().cmp(&other.span())
    }

    /// -self
    pub fn negate(self) -> Result<Interval, SqlError> {
        if self.is_infinite() {
            return Ok(if self == Interval::INFINITY { Interval::NEG_INFINITY } else { Interval::INFINITY });
        }
        Interval::checked(self.months.checked_neg(), self.days.checked_neg(), self.micros.checked_neg())
    }

    /// self + other
    pub fn plus(self, other: Interval) -> Result<Interval, SqlError> {
        if self.is_infinite() || other.is_infinite() {
            if self.is_infinite() && other.is_infinite() && self != other {
                return Err(interval_out_of_range());
            }
            return Ok(if self.is_infinite() { self } else { other });
        }
        Interval::checked(
            self.months.checked_add(other.months),
            self.days.checked_add(other.days),
            self.micros.checked_add(other.micros),
        )
    }

    /// self - other
    pub fn minus(self, other: Interval) -> Result<Interval, SqlError> {
        if self.is_infinite() || other.is_infinite() {
            return self.plus(other.negate()?);
        }
        Interval::checked(
            self.months.checked_sub(other.months),
            self.days.checked_sub(other.days),
            self.micros.checked_sub(other.micros),
        )
    }

    fn checked(months: Option<i32>, days: Option<i32>, micros: Option<i64>) -> Result<Interval, SqlError> {
        match (months, days, micros) {
            (Some(months), Some(days), Some(micros)) => {
                let value = Interval { months, days, micros };
                if value.is_infinite() { Err(interval_out_of_range()) } else { Ok(value) }
            }
            _ => Err(interval_out_of_range()),
        }
    }

    /// self * factor; what does not make a whole month or day goes down to the next smaller field.
    pub fn multiply(self, factor: f64) -> Result<Interval, SqlError> {
        if factor.is_infinite() && !self.is_infinite() {
            let product = self.span().signum() as f64 * factor;
            return match product {
                _ if product.is_nan() => Err(interval_out_of_range()),
                _ if product > 0.0 => Ok(Interval::INFINITY),
                _ => Ok(Interval::NEG_INFINITY),
            };
        }
        self.scaled(factor, |field| field * factor)
    }

    /// self / divisor, which is not zero.
    pub fn divide(self, divisor: f64) -> Result<Interval, SqlError> {
        if self.is_infinite() && divisor.is_infinite() {
            return Err(interval_out_of_range());
        }
        self.scaled(divisor, |field| field / divisor)
    }

    /// Each field by `scale`; `factor` gives an infinite interval its sign.
    fn scaled(self, factor: f64, scale: impl Fn(f64) -> f64) -> Result<Interval, SqlError> {
        if factor.is_nan() || self.is_infinite() && factor == 0.0 {
            return Err(interval_out_of_range());
        }
        if self.is_infinite() {
            return if factor < 0.0 { self.negate() } else { Ok(self) };
        }
        let months = scale(f64::from(self.months));
        let days = scale(f64::from(self.days));
        let whole = |field: f64| {
            let in_i32 = (-2_147_483_648.0..2_147_483_648.0).contains(&field);
            in_i32.then_some(field as i32).ok_or_else(interval_out_of_range)
        };
        let (whole_months, whole_days) = (whole(months)?, whole(days)?);
        let month_days = round_to_micros((months - months.trunc()) * 30.0);
        let mut seconds = round_to_micros((days - days.trunc() + month_days - month_days.trunc()) * 86_400.0);
        let mut day_carry = 0;
        // Rounding may have made a whole day of the rest.
        if seconds.abs() >= 86_400.0 {
            day_carry = (seconds / 86_400.0) as i32;
            seconds -= f64::from(day_carry) * 86_400.0;
        }
        let days = whole_days.checked_add(day_carry).and_then(|days| days.checked_add(month_days as i32));
        let micros = (scale(self.micros as f64) + seconds * 1e6).round_ties_even();
        let in_i64 = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&micros);
        Interval::checked(Some(whole_months), days, in_i64.then_some(micros as i64))
    }

    /// 24 hours to a day, 30 days to a month, signs alike: justify_interval.
    pub fn justify(self) -> Result<Interval, SqlError> {
        if self.is_infinite() {
            return Ok(self);
        }
        let mut days = i64::from(self.days) + self.micros / DAY;
        let mut micros = self.micros % DAY;
        let mut months = i64::from(self.months) + days / 30;
        days %= 30;
        if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
            days += 30;
            months -= 1;
        } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
            days -= 30;
            months += 1;
        }
        if days > 0 && micros < 0 {
            micros += DAY;
            days -= 1;
        } else if days < 0 && micros > 0 {
            micros -= DAY;
            days += 1;
        }
        Interval::checked(i32::try_from(months).ok(), i32::try_from(days).ok(), Some(micros))
    }

    /// 24 hours to a day.
    pub fn justify_hours(self) -> Result<Interval, SqlError> {
        if self.is_infinite() {
            return Ok(self);
        }
        let mut days = i64::from(self.days) + self.micros / DAY;
        let mut micros = self.micros % DAY;
        if days > 0 && micros < 0 {
            days -= 1;
            micros += DAY;
        } else if days < 0 && micros > 0 {
            days += 1;
            micros -= DAY;
        }
        Interval::checked(Some(self.months), i32::try_from(days).ok(), Some(micros))
    }

    /// 30 days to a month.
    pub fn justify_days(self) -> Result<Interval, SqlError> {
        if self.is_infinite() {
            return Ok(self);
        }
        let mut months = i64::from(self.months) + i64::from(self.days / 30);
        let mut days = self.days % 30;
        if months > 0 && days < 0 {
            months -= 1;
            days += 30;
        } else if months < 0 && days > 0 {
            months += 1;
            days -= 30;
        }
        Interval::checked(i32::try_from(months).ok(), Some(days), Some(self.micros))
    }

    /// Appends its text.
    pub fn write(self, style: IntervalStyle, out: &mut Vec<u8>) {
        if self.is_infinite() {
            out.extend_from_slice(if self == Interval::INFINITY { b"infinity" } else { b"-infinity" });
            return;
        }
        match style {
            IntervalStyle::Postgres => self.write_postgres(out),
            IntervalStyle::PostgresVerbose => self.write_verbose(out),
            IntervalStyle::SqlStandard => self.write_sql(out),
            IntervalStyle::Iso8601 => self.write_iso(out),
        }
    }

    /// Years, months, days, hours, minutes, seconds with microseconds as a separate field.
    fn fields(self) -> [i64; 7] {
        [
            i64::from(self.months / 12),
            i64::from(self.months % 12),
            i64::from(self.days),
            self.micros / HOUR,
            self.micros / MINUTE % 60,
            self.micros / SECOND % 60,
            self.micros % SECOND,
        ]
    }

    fn write_postgres(self, out: &mut Vec<u8>) {
        let start = out.len();
        let [years, months, days, ..] = self.fields();
        let mut after_negative = false;
        for (value, unit) in [(years, "year"), (months, "mon"), (days, "day")] {
            if value == 0 {
                continue;
            }
            let space = if out.len() > start { " " } else { "" };
            let plus = if after_negative && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            let _ = write!(out, "{space}{plus}{value} {unit}{plural}");
            after_negative = value < 0;
        }
        if self.micros != 0 || out.len() == start {
            if out.len() > start {
                out.push(b' ');
            }
            if self.micros < 0 {
                out.push(b'-');
            } else if after_negative {
                out.push(b'+');
            }
            self.write_clock(out);
        }
    }

    fn write_clock(self, out: &mut Vec<u8>) {
        let micros = self.micros.unsigned_abs() as i128;
        let seconds = (micros / i128::from(SECOND)) as i64;
        let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        write_fraction((micros % i128::from(SECOND)) as i64, out);
    }

    fn write_verbose(self, out: &mut Vec<u8>) {
        out.push(b'@');
        let [years, months, days, hours, minutes, seconds, micros] = self.fields();
        let mut ago = None;
        let mut parts = 0;
        for (value, unit) in
            [(years, "year"), (months, "mon"), (days, "day"), (hours, "hour"), (minutes, "min")]
        {
            if value == 0 {
                continue;
            }
            let negative = *ago.get_or_insert(value < 0);
            let value = if negative { -value } else { value };
            let plural = if value == 1 { "" } else { "s" };
            let _ = write!(out, " {value} {unit}{plural}");
            parts += 1;
        }
        if seconds != 0 || micros != 0 {
            let below = seconds < 0 || micros < 0;
            let negative = *ago.get_or_insert(below);
            let sign = if below == negative { "" } else { "-" };
            let _ = write!(out, " {sign}{}", seconds.abs());
            write_fraction(micros.abs(), out);
            let _ = write!(out, " sec{}", if seconds.abs() == 1 && micros == 0 { "" } else { "s" });
            parts += 1;
        }
        if parts == 0 {
            out.extend_from_slice(b" 0");
        }
        if ago == Some(true) {
            out.extend_from_slice(b" ago");
        }
    }

    fn write_sql(self, out: &mut Vec<u8>) {
        let [years, months, days, ..] = self.fields();
        let negative = self.months < 0 || self.days < 0 || self.micros < 0;
        let positive = self.months > 0 || self.days > 0 || self.micros > 0;
        let (has_months, has_days, has_time) = (self.months != 0, self.days != 0, self.micros != 0);
        if !has_months && !has_days && !has_time {
            out.push(b'0');
        } else if (negative && positive) || (has_months && (has_days || has_time)) {
            let sign = |value: i64| if value < 0 { '-' } else { '+' };
            let _ = write!(
                out,
                "{}{}-{} {}{} {}",
                sign(i64::from(self.months)),
                years.abs(),
                months.abs(),
                sign(days),
                days.abs(),
                sign(self.micros)
            );
            self.write_short_clock(out);
        } else if has_months {
            let _ = write!(out, "{}{}-{}", if negative { "-" } else { "" }, years.abs(), months.abs());
        } else {
            out.extend_from_slice(if negative { b"-" } else { b"" });
            if has_days {
                let _ = write!(out, "{} ", days.abs());
            }
            self.write_short_clock(out);
        }
    }

    fn write_short_clock(self, out: &mut Vec<u8>) {
        let seconds = (self.micros / SECOND).abs();
        let _ = write!(out, "{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        write_fraction((self.micros % SECOND).abs(), out);
    }

    fn write_iso(self, out: &mut Vec<u8>) {
        if self == Interval::default() {
            out.extend_from_slice(b"PT0S");
            return;
        }
        out.push(b'P');
        let [years, months, days, hours, minutes, seconds, micros] = self.fields();
        for (value, unit) in [(years, 'Y'), (months, 'M'), (days, 'D')] {
            if value != 0 {
                let _ = write!(out, "{value}{unit}");
            }
        }
        if self.micros != 0 {
            out.push(b'T');
            for (value, unit) in [(hours, 'H'), (minutes, 'M')] {
                if value != 0 {
                    let _ = write!(out, "{value}{unit}");
                }
            }
            if seconds != 0 || micros != 0 {
                let _ = write!(out, "{}{}", if self.micros < 0 { "-" } else { "" }, seconds.abs());
                write_fraction(micros.abs(), out);
                out.push(b'S');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Interval, SqlError> {
        Interval::parse(text, fields::ALL, IntervalStyle::Postgres)
    }

    #[test]
    fn text_as_postgresql_writes_it() {
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
}
