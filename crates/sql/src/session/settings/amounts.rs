//! Amounts of memory that settings take.

use super::invalid;
use values::error::{SqlError, SqlState};

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
        // Without a number, PostgreSQL's error names no unit.
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
