//! Values of expressions and variables: their conversions and their text, which are pgbench's.

use std::fmt::Write;

/// A value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
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
    /// Its type's name in errors.
    fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// Its boolean; only booleans have one.
    pub(super) fn bool(self) -> Result<bool, String> {
        match self {
            Self::Bool(value) => Ok(value),
            other => Err(format!("cannot coerce {} to boolean", other.type_name())),
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
                    Err(format!("double to int overflow for {rounded:.6}"))
                }
            }
            other => Err(format!("cannot coerce {} to int", other.type_name())),
        }
    }

    /// As a double.
    pub(super) fn double(self) -> Result<f64, String> {
        match self {
            Self::Double(value) => Ok(value),
            Self::Int(value) => Ok(value as f64),
            other => Err(format!("cannot coerce {} to double", other.type_name())),
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
        // true, yes, false and no may be abbreviated; on, off and of may not.
        let begins = |word: &str| {
            !text.is_empty()
                && word
                    .as_bytes()
                    .get(..text.len())
                    .is_some_and(|part| part.eq_ignore_ascii_case(text.as_bytes()))
        };
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        if text.is_empty() {
            return None;
        }
        if is("null") {
            return Some(Self::Null);
        }
        if begins("true") || begins("yes") || is("on") {
            return Some(Self::Bool(true));
        }
        if begins("false") || begins("no") || is("off") || is("of") {
            return Some(Self::Bool(false));
        }
        let number = text.trim_start();
        let digits = number.strip_prefix(['-', '+']).unwrap_or(number);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return number.parse().ok().map(Self::Int);
        }
        let value: f64 = number.parse().ok()?;
        let named = number.contains(['n', 'N']);
        (value.is_finite() || named).then_some(Self::Double(value))
    }

    /// Writes the value as a command contains it.
    pub(super) fn write(self, to: &mut String) {
        match self {
            Self::Null => to.push_str("NULL"),
            Self::Bool(value) => to.push_str(if value { "true" } else { "false" }),
            Self::Int(value) => to.push_str(itoa::Buffer::new().format(value)),
            Self::Double(value) => write_double(value, to),
        }
    }
}

/// C's `%.15g`, with PostgreSQL's words for NaN and infinities.
fn write_double(value: f64, to: &mut String) {
    if value.is_nan() {
        return to.push_str("NaN");
    }
    if value.is_infinite() {
        return to.push_str(if value < 0.0 { "-Infinity" } else { "Infinity" });
    }
    // First append the digits and the exponent of the value rounded to 15 digits, as
    // `-d.dddddde-n`; then rearrange them in place.
    let start = to.len();
    // Writing to a String can't fail.
    let _ = write!(to, "{value:.14e}");
    let Some(mark) = to[start..].find('e').map(|at| start + at) else { return };
    let exponent: i32 = to[mark + 1..].parse().unwrap_or(0);
    to.truncate(mark);
    let digits = start + usize::from(value.is_sign_negative());
    if (-4..15).contains(&exponent) {
        // The point moves by the exponent.
        to.remove(digits + 1);
        if exponent >= 0 {
            to.insert(digits + 1 + exponent as usize, '.');
        } else {
            (exponent..-1).for_each(|_| to.insert(digits, '0'));
            to.insert_str(digits, "0.");
        }
        drop_zeros(to, digits);
    } else {
        drop_zeros(to, digits);
        let _ = write!(to, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    }
}

/// Removes trailing zeros of a fraction, and a point without digits after it.
fn drop_zeros(text: &mut String, from: usize) {
    if text[from..].contains('.') {
        let kept = text.trim_end_matches('0').trim_end_matches('.').len();
        text.truncate(kept.max(from + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64) -> String {
        let mut text = String::from("x");
        Value::Double(value).write(&mut text);
        text.split_off(1)
    }

    #[test]
    fn doubles_are_written_as_c_writes_them() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.1 + 0.2, "0.3"),
            (100000.0, "100000"),
            (123456789012345.0, "123456789012345"),
            (1e15, "1e+15"),
            (0.0001, "0.0001"),
            (-0.00001234, "-1.234e-05"),
            (1.5e300, "1.5e+300"),
            (2.0 / 3.0, "0.666666666666667"),
            (999_999_999_999_999.9, "1e+15"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ];
        for (value, expected) in cases {
            assert_eq!(text(value), expected);
        }
    }

    #[test]
    fn texts_stand_for_values() {
        let cases = [
            ("12", Some(Value::Int(12))),
            (" -7", Some(Value::Int(-7))),
            ("+7", Some(Value::Int(7))),
            ("9223372036854775808", None),
            ("1.5", Some(Value::Double(1.5))),
            ("1e3", Some(Value::Double(1000.0))),
            ("t", Some(Value::Bool(true))),
            ("YES", Some(Value::Bool(true))),
            ("on", Some(Value::Bool(true))),
            ("n", Some(Value::Bool(false))),
            ("of", Some(Value::Bool(false))),
            ("o", None),
            ("Null", Some(Value::Null)),
            ("", None),
            ("abc", None),
            ("1e999", None),
            ("12 ", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Value::of_text(text), expected, "{text}");
        }
    }
}
