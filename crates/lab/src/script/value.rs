//! Values of expressions and variables: their conversions and their text, which are pgbench's.

use std::fmt::Write;

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Bool(bool),
    /// A 64-bit whole number.
    Int(i64),
    /// A double.
    Double(f64),
}

impl Value {
    /// Its boolean; only booleans have one.
    pub(super) fn bool(self) -> Result<bool, String> {
        match self {
            Self::Bool(value) => Ok(value),
            other => Err(format!("cannot coerce {other:?} to boolean")),
        }
    }

    /// Its whole number; doubles round to the nearest, halves to even.
    pub(super) fn int(self) -> Result<i64, String> {
        match self {
            Self::Int(value) => Ok(value),
            Self::Double(value) => {
                let rounded = value.round_ties_even();
                // 2^63 is the first that doesn't fit; a NaN fails both comparisons.
                if rounded >= i64::MIN as f64 && rounded < -(i64::MIN as f64) {
                    Ok(rounded as i64)
                } else {
                    Err(format!("double to int overflow for {rounded}"))
                }
            }
            other => Err(format!("cannot coerce {other:?} to int")),
        }
    }

    /// As a double.
    pub(super) fn double(self) -> Result<f64, String> {
        match self {
            Self::Double(value) => Ok(value),
            Self::Int(value) => Ok(value as f64),
            other => Err(format!("cannot coerce {other:?} to double")),
        }
    }

    /// Whether a condition holds: numbers other than zero do, NULL does not.
    pub(super) fn truth(self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => value,
            Self::Int(value) => value != 0,
            Self::Double(value) => value != 0.0,
        }
    }

    /// The value that a text stands for (a variable of the command line, or set by `\gset`); `None`
    /// if it stands for none.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        if is(&["null"]) {
            Some(Self::Null)
        } else if is(&["true", "t", "yes", "y", "on"]) {
            Some(Self::Bool(true))
        } else if is(&["false", "f", "no", "n", "off"]) {
            Some(Self::Bool(false))
        } else if let Ok(value) = text.parse() {
            Some(Self::Int(value))
        } else {
            text.parse().ok().filter(|value: &f64| value.is_finite()).map(Self::Double)
        }
    }

    /// Writes the value as a command contains it.
    pub(super) fn write(self, to: &mut String) {
        let start = to.len();
        // Writing to a String can't fail.
        let _ = match self {
            Self::Null => write!(to, "NULL"),
            Self::Bool(value) => write!(to, "{value}"),
            Self::Int(value) => write!(to, "{value}"),
            Self::Double(value) => write!(to, "{value:.14e}"),
        };
        if let Self::Double(value) = self {
            // These are the 15 digits that pgbench sends: 0.1 + 0.2 is 0.3.
            let rounded: f64 = to[start..].parse().unwrap_or(value);
            to.truncate(start);
            let _ = write!(to, "{rounded}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_with_15_digits() {
        for (value, expected) in [
            (-2.5, "-2.5"),
            (70.000_000_000_000_01, "70"),
            (0.1 + 0.2, "0.3"),
            (-0.00001234, "-0.00001234"),
            (2.0 / 3.0, "0.666666666666667"),
            (999_999_999_999_999.9, "1000000000000000"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "NaN"),
        ] {
            let mut text = String::from("x");
            Value::Double(value).write(&mut text);
            assert_eq!(text, format!("x{expected}"));
        }
    }

    #[test]
    fn texts_stand_for_values() {
        for (text, expected) in [
            ("12", Some(Value::Int(12))),
            ("-7", Some(Value::Int(-7))),
            ("+7", Some(Value::Int(7))),
            ("1.5", Some(Value::Double(1.5))),
            ("1e3", Some(Value::Double(1000.0))),
            ("t", Some(Value::Bool(true))),
            ("YES", Some(Value::Bool(true))),
            ("off", Some(Value::Bool(false))),
            ("Null", Some(Value::Null)),
            ("", None),
            ("abc", None),
            ("1e999", None),
        ] {
            assert_eq!(Value::of_text(text), expected, "{text}");
        }
    }
}
