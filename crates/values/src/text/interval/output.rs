//! Intervals to text, in the four styles of IntervalStyle.

use std::io::Write;

use super::super::datetime::write_fraction;
use crate::types::datetime::{HOUR, MINUTE, SECOND};
use crate::types::interval::Interval;
use crate::types::settings::IntervalStyle;

impl Interval {
    /// Appends the interval in a style.
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
