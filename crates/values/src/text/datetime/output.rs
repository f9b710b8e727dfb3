//! Dates and times as text.

use std::io::Write;

use crate::types::datetime::{Civil, DAY, SECOND, date_of};
use crate::types::settings::{DateOrder, DateStyle, Settings};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Appends formatted text; writing to a vector cannot fail.
macro_rules! put {
    ($out:expr, $($arg:tt)*) => {
        let _ = write!($out, $($arg)*);
    };
}

/// Appends a date.
pub(in crate::text) fn write_date(days: i32, settings: &Settings, out: &mut Vec<u8>) {
    match days {
        i32::MIN => out.extend_from_slice(b"-infinity"),
        i32::MAX => out.extend_from_slice(b"infinity"),
        _ => {
            let (year, month, day) = date_of(i64::from(days));
            write_day(if year > 0 { year } else { 1 - year }, month, day, settings, out);
            if year <= 0 {
                out.extend_from_slice(b" BC");
            }
        }
    }
}

/// Appends year, month and day in the session's DateStyle.
fn write_day(shown: i64, month: i64, day: i64, settings: &Settings, out: &mut Vec<u8>) {
    let day_first = settings.date_order == DateOrder::Dmy;
    match settings.date_style {
        DateStyle::Iso => {
            put_padded(shown, 4, out);
            out.push(b'-');
            put_padded(month, 2, out);
            out.push(b'-');
            put_padded(day, 2, out);
        }
        DateStyle::Sql if day_first => {
            put!(out, "{day:02}/{month:02}/{shown:04}");
        }
        DateStyle::Sql => {
            put!(out, "{month:02}/{day:02}/{shown:04}");
        }
        DateStyle::German => {
            put!(out, "{day:02}.{month:02}.{shown:04}");
        }
        DateStyle::Postgres if day_first => {
            put!(out, "{day:02}-{month:02}-{shown:04}");
        }
        DateStyle::Postgres => {
            put!(out, "{month:02}-{day:02}-{shown:04}");
        }
    }
}

/// Appends a number with leading zeros. Rust's formatting would be too slow for output that every
/// row may need.
fn put_padded(value: i64, width: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut rest = value.unsigned_abs();
    let mut at = digits.len();
    while rest > 0 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[at.min(digits.len() - width)..]);
}

/// Appends `.ffffff` without trailing zeros; nothing for zero.
pub(in crate::text) fn write_fraction(micros: i64, out: &mut Vec<u8>) {
    if micros == 0 {
        return;
    }
    out.push(b'.');
    put_padded(micros, 6, out);
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// Appends a time of day.
pub(in crate::text) fn write_time(micros: i64, out: &mut Vec<u8>) {
    let seconds = micros / SECOND;
    put_padded(seconds / 3600, 2, out);
    out.push(b':');
    put_padded(seconds / 60 % 60, 2, out);
    out.push(b':');
    put_padded(seconds % 60, 2, out);
    write_fraction(micros % SECOND, out);
}

fn write_infinite(micros: i64, out: &mut Vec<u8>) -> bool {
    match micros {
        i64::MIN => out.extend_from_slice(b"-infinity"),
        i64::MAX => out.extend_from_slice(b"infinity"),
        _ => return false,
    }
    true
}

/// Appends a timestamp.
pub(in crate::text) fn write_timestamp(micros: i64, settings: &Settings, out: &mut Vec<u8>) {
    if !write_infinite(micros, out) {
        write_local(micros, None, settings, out);
    }
}

/// Appends a timestamptz, in the session's zone.
pub fn write_timestamptz(micros: i64, settings: &Settings, out: &mut Vec<u8>) {
    if write_infinite(micros, out) {
        return;
    }
    if settings.time_zone.is_utc() && settings.date_style == DateStyle::Iso {
        // UTC needs no lookup of a name or an offset.
        return write_local(micros, Some((0, "")), settings, out);
    }
    let (offset, name) = settings.time_zone.offset_and_name(micros);
    write_local(micros + offset * SECOND, Some((offset, &name)), settings, out);
}

fn write_local(local: i64, zone: Option<(i64, &str)>, settings: &Settings, out: &mut Vec<u8>) {
    let civil = Civil::of(local);
    let shown = if civil.year > 0 { civil.year } else { 1 - civil.year };
    if settings.date_style == DateStyle::Postgres {
        let weekday = WEEKDAYS[(local.div_euclid(DAY) + 6).rem_euclid(7) as usize];
        let month = MONTHS[civil.month as usize - 1];
        let day = civil.day;
        if settings.date_order == DateOrder::Dmy {
            put!(out, "{weekday} {day:02} {month} ");
        } else {
            put!(out, "{weekday} {month} {day:02} ");
        }
        write_time(civil.micros, out);
        put!(out, " {shown:04}");
    } else {
        // BC follows at the end.
        write_day(shown, civil.month, civil.day, settings, out);
        out.push(b' ');
        write_time(civil.micros, out);
    }
    if let Some((offset, name)) = zone {
        match settings.date_style {
            DateStyle::Iso => write_offset(offset, out),
            _ => {
                put!(out, " {name}");
            }
        }
    }
    if civil.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

/// Appends `+hh[:mm[:ss]]`.
fn write_offset(offset: i64, out: &mut Vec<u8>) {
    out.push(if offset < 0 { b'-' } else { b'+' });
    let magnitude = offset.abs();
    put_padded(magnitude / 3600, 2, out);
    if magnitude % 3600 != 0 {
        out.push(b':');
        put_padded(magnitude / 60 % 60, 2, out);
        if magnitude % 60 != 0 {
            out.push(b':');
            put_padded(magnitude % 60, 2, out);
        }
    }
}
