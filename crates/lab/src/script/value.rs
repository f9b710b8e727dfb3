//! Values of expressions and variables: their conversions and their text, which are pgbench's.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value {
    Bool(bool),
    Int(i64),
    /// A double, which has no arithmetic: a parameter of a function or a statement.
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

    pub(super) fn int(self) -> Result<i64, String> {
        match self {
            Self::Int(value) => Ok(value),
            other => Err(format!("cannot coerce {other:?} to int")),
        }
    }

    pub(super) fn double(self) -> Result<f64, String> {
        match self {
            Self::Double(value) => Ok(value),
            Self::Int(value) => Ok(value as f64),
            Self::Bool(_) => Err(format!("cannot coerce {self:?} to double")),
        }
    }

    /// Whether a condition holds: numbers other than zero do.
    pub(super) fn truth(self) -> bool {
        match self {
            Self::Bool(value) => value,
            Self::Int(value) => value != 0,
            Self::Double(value) => value != 0.0,
        }
    }

    /// The value that a text stands for (a variable of the command line, or set by `\gset`); `None`
    /// if it stands for none.
    pub(super) fn of_text(text: &str) -> Option<Self> {
        let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        if is(&["true", "t", "yes", "y", "on"]) {
            Some(Self::Bool(true))
        } else if is(&["false", "f", "no", "n", "off"]) {
            Some(Self::Bool(false))
        } else if let Ok(value) = text.parse() {
            Some(Self::Int(value))
        } else {
            text.parse().ok().filter(|value: &f64| value.is_finite()).map(Self::Double)
        }
    }
}

impl fmt::Display for Value {
    /// The value as a command contains it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Double(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("Null", None),
            ("", None),
            ("abc", None),
            ("1e999", None),
        ] {
            assert_eq!(Value::of_text(text), expected, "{text}");
        }
    }
}
