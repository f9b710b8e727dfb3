//! Amounts with units: `2GiB`, `700MiB`, `64kB`; `10s`, `500ms`, `1min`.
//!
//! What must hold:
//!
//! 1. A unit is a power of 1024, also without the `i`, as in PostgreSQL's settings.
//! 2. An amount fits a float exactly: it has at most 2^53 bytes.
//! 3. A time is at least 1 ms and at most 24 h. Timers made from it neither fire at once nor
//!    overflow.
//! 4. A written value can be read back. An amount that is no whole number of its unit loses digits
//!    on the way.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kib" | "k" | "kb" => 1 << 10,
            "mib" | "m" | "mb" => 1 << 20,
            "gib" | "g" | "gb" => 1 << 30,
            "tib" | "t" | "tb" => 1 << 40,
            _ => return Err(format!("'{text}' has no known unit: use B, KiB, MiB, GiB or TiB, as in 2GiB")),
        };
        let number: f64 =
            number.parse().map_err(|_| format!("'{text}' is no amount: write it as in 2GiB"))?;
        let bytes = number * factor as f64;
        if bytes > (1u64 << 53) as f64 {
            return Err(format!("'{text}' is more than any machine has"));
        }
        Ok(Self(bytes as u64))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.iter().find(|(shift, _)| self.0 >= 1 << shift) {
            Some((shift, unit)) if self.0.trailing_zeros() >= *shift => {
                write!(f, "{}{unit}", self.0 >> shift)
            }
            Some((shift, unit)) => write!(f, "{:.1}{unit}", self.0 as f64 / (1u64 << shift) as f64),
            None => write!(f, "{}B", self.0),
        }
    }
}

/// A duration, more than zero and at most a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// One minute.
    pub const MINUTE: Self = Self(Duration::from_secs(60));
}

impl FromStr for Span {
    type Err = String;

    /// A number without a unit means seconds.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let milliseconds = match unit.trim() {
            "ms" => 1.0,
            "" | "s" => 1e3,
            "min" => 60e3,
            "h" => 3600e3,
            _ => return Err(format!("'{text}' has no known unit: use ms, s, min or h, as in 10s")),
        };
        let number: f64 = number.parse().map_err(|_| format!("'{text}' is no time: write it as in 10s"))?;
        let milliseconds = number * milliseconds;
        if !(1.0..=86_400e3).contains(&milliseconds) {
            return Err(format!("'{text}' is not between 1ms and 24h"));
        }
        Ok(Self(Duration::from_millis(milliseconds as u64)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_secs(), self.0.subsec_millis()) {
            (seconds, 0) if seconds.is_multiple_of(60) => write!(f, "{}min", seconds / 60),
            (seconds, 0) => write!(f, "{seconds}s"),
            _ => write!(f, "{}ms", self.0.as_millis()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_with_units() {
        for (text, milliseconds, shown) in [
            ("10s", 10_000, "10s"),
            ("60", 60_000, "1min"),
            ("1.5 s", 1500, "1500ms"),
            ("2min", 120_000, "2min"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!((span.0.as_millis(), span.to_string().as_str()), (milliseconds, shown), "{text}");
        }
        for text in ["", "s", "0", "-1s", "2 days", "25h", "1e9"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_read_and_written_with_units() {
        for (text, bytes) in
            [("2GiB", 2 << 30), ("700 MiB", 700 << 20), ("64kB", 64 << 10), ("1.5G", 3 << 29), ("12", 12)]
        {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "GiB", "2 parsecs", "-1GiB", "1e99", "99999999999TiB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        assert_eq!(Bytes(2 << 30).to_string(), "2GiB");
        assert_eq!(Bytes(3 << 29).to_string(), "1.5GiB");
    }
}
