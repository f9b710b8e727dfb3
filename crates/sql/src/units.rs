//! Booleans, times and amounts of memory as text, with their units.

use std::time::Duration;

/// The boolean that a word stands for; None for other words.
pub(crate) fn parse_bool(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// Milliseconds of "5s", "100ms", "2min", "1h", "1d" or a plain number.
pub(crate) fn parse_time(value: &str) -> Option<u64> {
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
pub(crate) fn show_time(milliseconds: u64) -> String {
    for (unit, factor) in [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)] {
        if milliseconds > 0 && milliseconds.is_multiple_of(factor) {
            return format!("{}{unit}", milliseconds / factor);
        }
    }
    if milliseconds == 0 { "0".to_owned() } else { format!("{milliseconds}ms") }
}

/// Bytes of "64kB", "4MB" or a plain number of bytes.
pub(crate) fn bytes_of(shown: &str) -> Option<f64> {
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

/// Memory as SHOW gives it: in the largest unit without a fraction.
pub(crate) fn show_memory(kilobytes: u64) -> String {
    for (unit, factor) in [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10)] {
        if kilobytes.is_multiple_of(factor) {
            return format!("{}{unit}", kilobytes / factor);
        }
    }
    format!("{kilobytes}kB")
}

pub(crate) fn limit(shown: &str) -> Option<Duration> {
    parse_time(shown).filter(|milliseconds| *milliseconds > 0).map(Duration::from_millis)
}
