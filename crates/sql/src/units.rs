//! Values of settings as text: booleans, times and amounts of memory, with their units.

use std::time::Duration;

use super::invalid;
use values::error::{SqlError, SqlState};

/// What a word says, if it says yes or no.
pub(super) fn parse_bool(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// Milliseconds of "5s", "100ms", "2min", "1h", "1d" or a plain number.
pub(super) fn parse_time(value: &str) -> Option<u64> {
    let value = value.trim();
    let split = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at(split);
    let number: f64 = number.parse().ok()?;
    let factor = match unit.trim() {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1e3,
        "min" => 60e3,
        "h" => 3600e3,
        "d" => 86400e3,
        _ => return None,
    };
    let milliseconds = (number * factor).round();
    (milliseconds <= f64::from(i32::MAX)).then_some(milliseconds as u64)
}

/// A time as SHOW gives it: in the largest unit without a fraction.
pub(super) fn show_time(milliseconds: u64) -> String {
    for (unit, factor) in [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)] {
        if milliseconds > 0 && milliseconds.is_multiple_of(factor) {
            return format!("{}{unit}", milliseconds / factor);
        }
    }
    if milliseconds == 0 { "0".to_owned() } else { format!("{milliseconds}ms") }
}

/// Bytes of "64kB", "4MB" or a plain number of bytes.
pub(super) fn bytes_of(shown: &str) -> Option<f64> {
    let split = shown.find(|c: char| !c.is_ascii_digit()).unwrap_or(shown.len());
    let (number, unit) = shown.split_at(split);
    let number: f64 = number.parse().ok()?;
    let kilobytes = match unit {
        "" => return Some(number),
        "kB" => 1.0,
        "MB" => 1024.0,
        "GB" => 1024.0 * 1024.0,
        "TB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number * kilobytes * 1024.0)
}

/// Kilobytes of "64kB", "4MB", "1.5GB" or a plain number.
pub(super) fn parse_memory(name: &str, value: &str) -> Result<u64, SqlError> {
    const LEAST: f64 = 64.0;
    const MOST: f64 = i32::MAX as f64;
    let text = value.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim() {
        "B" => Some(1.0 / 1024.0),
        "" | "kB" => Some(1.0),
        "MB" => Some(1024.0),
        "GB" => Some(1024.0 * 1024.0),
        "TB" => Some(1024.0 * 1024.0 * 1024.0),
        _ => None,
    };
    let (Ok(number), Some(factor)) = (number.parse::<f64>(), factor) else {
        let error = invalid(name, value);
        // Without a number there is no unit to speak of.
        return Err(match number.is_empty() {
            true => error,
            false => error
                .with_hint("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."),
        });
    };
    let kilobytes = (number * factor).round();
    if kilobytes > MOST {
        return Err(invalid(name, value).with_hint("Value exceeds integer range."));
    }
    if !(LEAST..=MOST).contains(&kilobytes) {
        let message = format!(
            "{kilobytes} kB is outside the valid range for parameter \"{name}\" ({LEAST} kB .. {MOST} kB)"
        );
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(kilobytes as u64)
}

/// Memory as SHOW gives it: in the largest unit without a fraction.
pub(crate) fn show_memory(kilobytes: u64) -> String {
    for (unit, factor) in [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10)] {
        if kilobytes.is_multiple_of(factor) {
            return format!("{}{unit}", kilobytes / factor);
        }
    }
    format!("{kilobytes}kB")
}

pub(super) fn limit(shown: &str) -> Option<Duration> {
    parse_time(shown).filter(|milliseconds| *milliseconds > 0).map(Duration::from_millis)
}
