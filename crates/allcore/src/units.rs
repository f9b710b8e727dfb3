//! Amounts as people write them: `2GiB`, `700MiB`, `64kB`.

use std::fmt;
use std::str::FromStr;

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

#[cfg(test)]
mod tests {
    use super::*;

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
