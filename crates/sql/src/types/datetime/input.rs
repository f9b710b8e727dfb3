//! Dates and times from text, in the forms PostgreSQL reads.
//!
//! The text is split into fields (numbers with their separators, words); each field is recognised by its shape. A first
//! pass over ISO text takes the straight way.

use jiff::tz::TimeZone;

use super::{
    Civil, DAY, EPOCH_MICROS, HOUR, MINUTE, SECOND, days_of, in_range, month_days, to_instant, to_local,
    zone_by_name,
};
use crate::error::{SqlError, SqlState};
use crate::types::settings::{DateOrder, Settings};

/// No type has a later year.
const LAST_YEAR: i64 = 5_874_897;

/// Why a text is no date.
enum Problem {
    Syntax,
    /// A field's value: month 13.
    Field,
    /// The same with a month out of range, where another DateStyle may help.
    FieldOrder,
    /// A zone's displacement.
    Displacement,
    Zone(String),
    Range,
}

/// What the fields of a text said.
#[derive(Default)]
struct Parts {
    date: Option<(i64, i64, i64)>,
    time: Option<i64>,
    zone: Option<TimeZone>,
    /// The zone was given as an offset.
    offset: bool,
    special: Option<Special>,
    bc: bool,
    /// AM (false), PM (true).
    afternoon: Option<bool>,
    month: Option<i64>,
    numbers: Vec<(i64, usize)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Special {
    Now,
    Today,
    Tomorrow,
    Yesterday,
    Epoch,
    Infinity,
    NegInfinity,
}

fn error(problem: Problem, type_name: &str, text: &str) -> SqlError {
    match problem {
        Problem::Syntax => SqlError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type {type_name}: \"{text}\""),
        ),
        Problem::Field | Problem::FieldOrder => {
            let error = SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            );
            if matches!(problem, Problem::FieldOrder) {
                error.with_hint("Perhaps you need a different \"DateStyle\" setting.")
            } else {
                error
            }
        }
        Problem::Displacement => SqlError::new(
            SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
            format!("time zone displacement out of range: \"{text}\""),
        ),
        Problem::Zone(name) => {
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized"))
        }
        Problem::Range => {
            let what = if type_name == "date" { "date" } else { "timestamp" };
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("{what} out of range: \"{text}\""))
        }
    }
}

/// Reads a date.
pub fn parse_date(text: &str, settings: &Settings) -> Result<i32, SqlError> {
    let read = || -> Result<i32, Problem> {
        let parts = Parts::read(text, settings.date_order)?;
        let days = match parts.special {
            Some(Special::Infinity) => return Ok(i32::MAX),
            Some(Special::NegInfinity) => return Ok(i32::MIN),
            Some(special) => special_local(special, settings).div_euclid(DAY),
            None => {
                let (year, month, day) = parts.date.ok_or(Problem::Syntax)?;
                days_of(year, month, day)
            }
        };
        super::checked_date(days).map_err(|_| Problem::Range)
    };
    read().map_err(|problem| error(problem, "date", text))
}

/// Reads a time of day; a zone is accepted and ignored, a date as well.
pub fn parse_time(text: &str, settings: &Settings) -> Result<i64, SqlError> {
    let read = || -> Result<i64, Problem> {
        let parts = Parts::read(text, settings.date_order)?;
        if let Some(special) = parts.special {
            return match special {
                Special::Now => Ok(special_local(special, settings).rem_euclid(DAY)),
                _ => Err(Problem::Syntax),
            };
        }
        parts.time.ok_or(Problem::Syntax)
    };
    read().map_err(|problem| error(problem, "time", text))
}

/// Reads a timestamp; a zone in the text is ignored.
pub fn parse_timestamp(text: &str, settings: &Settings) -> Result<i64, SqlError> {
    let read = || -> Result<i64, Problem> {
        let parts = Parts::read(text, settings.date_order)?;
        parts.local(settings)
    };
    read().map_err(|problem| error(problem, "timestamp", text))
}

/// Reads a timestamptz.
pub fn parse_timestamptz(text: &str, settings: &Settings) -> Result<i64, SqlError> {
    let read = || -> Result<i64, Problem> {
        let parts = Parts::read(text, settings.date_order)?;
        let local = parts.local(settings)?;
        if parts.special == Some(Special::Epoch) {
            return Ok(local);
        }
        let zone = parts.zone.as_ref().unwrap_or(&settings.time_zone);
        to_instant(zone, local).map_err(|_| Problem::Range)
    };
    read().map_err(|problem| error(problem, "timestamp with time zone", text))
}

fn special_local(special: Special, settings: &Settings) -> i64 {
    let now = to_local(&settings.time_zone, settings.transaction_time);
    let midnight = now.div_euclid(DAY) * DAY;
    match special {
        Special::Now => now,
        Special::Today => midnight,
        Special::Tomorrow => midnight + DAY,
        Special::Yesterday => midnight - DAY,
        Special::Epoch => -EPOCH_MICROS,
        Special::Infinity => i64::MAX,
        Special::NegInfinity => i64::MIN,
    }
}

impl Parts {
    fn local(&self, settings: &Settings) -> Result<i64, Problem> {
        if let Some(special) = self.special {
            let base = special_local(special, settings);
            return match (special, self.time) {
                (Special::Today | Special::Tomorrow | Special::Yesterday, Some(time)) => Ok(base + time),
                _ => Ok(base),
            };
        }
        let (year, month, day) = self.date.ok_or(Problem::Syntax)?;
        let civil = Civil { year, month, day, micros: self.time.unwrap_or(0) };
        days_of(civil.year, civil.month, civil.day)
            .checked_mul(DAY)
            .and_then(|days| days.checked_add(civil.micros))
            .filter(|micros| in_range(*micros))
            .ok_or(Problem::Range)
    }

    fn read(text: &str, order: DateOrder) -> Result<Parts, Problem> {
        let mut parts = Parts::default();
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(Problem::Syntax);
        }
        while !rest.is_empty() {
            let first = rest.as_bytes()[0];
            let length = if first.is_ascii_digit() {
                let length = number_length(rest);
                parts.number_field(&rest[..length], order)?;
                length
            } else if first == b'+' || first == b'-' {
                parts.signed_field(rest)?
            } else if first.is_ascii_alphabetic() {
                parts.word(rest, order)?
            } else if matches!(first, b' ' | b',' | b'\t' | b'\n') {
                1
            } else {
                return Err(Problem::Syntax);
            };
            rest = &rest[length..];
        }
        parts.finish(order)?;
        Ok(parts)
    }

    /// A field that begins with a digit: a date, a time or a bare number.
    fn number_field(&mut self, field: &str, order: DateOrder) -> Result<(), Problem> {
        if let Some(position) = field.find('T').or_else(|| field.find('t')) {
            self.number_field(&field[..position], order)?;
            return self.number_field(&field[position + 1..], order);
        }
        if field.contains(':') {
            if self.time.is_some() {
                return Err(Problem::Syntax);
            }
            self.time = Some(parse_clock(field)?);
            return Ok(());
        }
        let separator = field.find(['-', '/', '.']).map(|at| field.as_bytes()[at]);
        match separator {
            Some(separator) => self.date_field(field, char::from(separator), order),
            None if self.date.is_some() && self.time.is_none() && matches!(field.len(), 4 | 6) => {
                let number: i64 = field.parse().map_err(|_| Problem::Syntax)?;
                let (hour, minute, second) = if field.len() == 4 {
                    (number / 100, number % 100, 0)
                } else {
                    (number / 10_000, number / 100 % 100, number % 100)
                };
                self.time = Some(clock(hour, minute, second, 0)?);
                Ok(())
            }
            None if field.len() == 8 && self.month.is_none() && self.date.is_none() => {
                let number: i64 = field.parse().map_err(|_| Problem::Syntax)?;
                self.set_date(number / 10_000, number / 100 % 100, number % 100)
            }
            None => {
                let number = field.parse().map_err(|_| Problem::Syntax)?;
                self.numbers.push((number, field.len()));
                Ok(())
            }
        }
    }

    fn date_field(&mut self, field: &str, separator: char, order: DateOrder) -> Result<(), Problem> {
        let fields: Vec<&str> = field.split(separator).collect();
        if fields.len() == 2
            && fields.iter().all(|field| field.bytes().all(|b| b.is_ascii_digit()))
            && separator == '.'
        {
            // yyyy.ddd
            let year: i64 = fields[0].parse().map_err(|_| Problem::Syntax)?;
            let day: i64 = fields[1].parse().map_err(|_| Problem::Syntax)?;
            if fields[0].len() < 4 || !(1..=366).contains(&day) {
                return Err(Problem::Syntax);
            }
            let (year, month, day) = super::date_of(days_of(year, 1, 1) + day - 1);
            return self.set_date(year, month, day);
        }
        let [a, b, c] = fields.as_slice() else { return Err(Problem::Syntax) };
        if let Some(month) = month_by_name(b) {
            let (first, last) = (digits(a)?, digits(c)?);
            return if a.len() > 2 {
                self.set_date(first, month, last)
            } else {
                self.set_date(full_year(last, c.len()), month, first)
            };
        }
        let (x, y, z) = (digits(a)?, digits(b)?, digits(c)?);
        if a.len() > 2 {
            return self.set_date(x, y, z);
        }
        match order {
            DateOrder::Ymd => self.set_date(full_year(x, a.len()), y, z),
            DateOrder::Dmy => self.set_date(full_year(z, c.len()), y, x),
            DateOrder::Mdy => self.set_date(full_year(z, c.len()), x, y),
        }
        .map_err(|problem| if matches!(problem, Problem::Field) { Problem::FieldOrder } else { problem })
    }

    fn set_date(&mut self, year: i64, month: i64, day: i64) -> Result<(), Problem> {
        if self.date.is_some() {
            return Err(Problem::Syntax);
        }
        if !(1..=12).contains(&month) {
            return Err(Problem::FieldOrder);
        }
        if !(1..=31).contains(&day) {
            return Err(Problem::FieldOrder);
        }
        self.date = Some((year, month, day));
        Ok(())
    }

    /// A field that begins with a sign: `-infinity` or a zone's offset.
    fn signed_field(&mut self, rest: &str) -> Result<usize, Problem> {
        let lower = rest.to_ascii_lowercase();
        if lower == "-infinity" || lower == "+infinity" {
            self.special =
                Some(if lower.starts_with('-') { Special::NegInfinity } else { Special::Infinity });
            return Ok(rest.len());
        }
        let length =
            1 + rest[1..].find(|c: char| !(c.is_ascii_digit() || c == ':')).unwrap_or(rest.len() - 1);
        if self.time.is_none() && self.date.is_none() {
            return Err(Problem::Syntax);
        }
        let offset = parse_offset(&rest[..length]).ok_or(Problem::Syntax)?;
        if offset.abs() >= 16 * 3600 {
            return Err(Problem::Displacement);
        }
        if self.offset {
            return Err(Problem::Syntax);
        }
        self.offset = true;
        // "GMT+3" counts from the zone already named.
        self.zone = super::fixed(offset);
        Ok(length)
    }

    fn word(&mut self, rest: &str, order: DateOrder) -> Result<usize, Problem> {
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let lower = rest[..letters].to_ascii_lowercase();
        let special = match lower.as_str() {
            "now" => Some(Special::Now),
            "today" => Some(Special::Today),
            "tomorrow" => Some(Special::Tomorrow),
            "yesterday" => Some(Special::Yesterday),
            "epoch" => Some(Special::Epoch),
            "infinity" => Some(Special::Infinity),
            // Midnight UTC, so no other zone may follow.
            "allballs" => {
                if self.time.is_some() || self.offset || self.zone.is_some() {
                    return Err(Problem::Syntax);
                }
                (self.time, self.offset, self.zone) = (Some(0), true, super::fixed(0));
                return Ok(letters);
            }
            _ => None,
        };
        if special.is_some() {
            if self.special.is_some() {
                return Err(Problem::Syntax);
            }
            self.special = special;
            return Ok(letters);
        }
        match lower.as_str() {
            "bc" => self.bc = true,
            "ad" | "at" | "on" => {}
            "am" => self.afternoon = Some(false),
            "pm" => self.afternoon = Some(true),
            "t" if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => {}
            _ if is_weekday(&lower) => {}
            _ => {
                if let Some(month) = month_by_name(&lower) {
                    if self.month.is_some() {
                        return Err(Problem::Syntax);
                    }
                    // Jan-08-1999
                    if rest[letters..].starts_with('-') && self.numbers.is_empty() && self.date.is_none() {
                        let length = rest.find(' ').unwrap_or(rest.len());
                        let fields: Vec<&str> = rest[letters + 1..length].split('-').collect();
                        if let [day, year] = fields.as_slice() {
                            self.set_date(full_year(digits(year)?, year.len()), month, digits(day)?)?;
                            return Ok(length);
                        }
                    }
                    self.month = Some(month);
                    return Ok(letters);
                }
                let _ = order;
                return self.zone_word(rest);
            }
        }
        Ok(letters)
    }

    fn zone_word(&mut self, rest: &str) -> Result<usize, Problem> {
        if self.date.is_none() && self.time.is_none() && self.special.is_none() && self.numbers.is_empty() {
            return Err(Problem::Syntax);
        }
        if self.offset {
            return Err(Problem::Syntax);
        }
        let length = rest.find([' ', ',']).unwrap_or(rest.len());
        let name = &rest[..length];
        let Some(zone) = zone_by_name(name) else {
            return Err(if name.contains('/') {
                Problem::Zone(name.to_ascii_lowercase())
            } else {
                Problem::Syntax
            });
        };
        self.zone = Some(zone);
        Ok(length)
    }

    /// Puts month names and bare numbers together, and checks the whole.
    fn finish(&mut self, order: DateOrder) -> Result<(), Problem> {
        if let Some(month) = self.month {
            let (year, day) = match self.numbers.as_slice() {
                [(first, width), (second, _)] if *width > 2 || *first > 31 => (*first, *second),
                [(first, _), (second, width)] => (full_year(*second, *width), *first),
                _ => return Err(Problem::Syntax),
            };
            self.set_date(year, month, day)?;
        } else if let [(a, width), (b, _), (c, last)] = *self.numbers.as_slice() {
            match order {
                _ if width > 2 => self.set_date(a, b, c)?,
                DateOrder::Ymd => self.set_date(full_year(a, width), b, c)?,
                DateOrder::Dmy => self.set_date(full_year(c, last), b, a)?,
                DateOrder::Mdy => self.set_date(full_year(c, last), a, b)?,
            }
        } else if !self.numbers.is_empty() {
            return Err(Problem::Syntax);
        }
        // Words like 'now' say it all; 'today' and its kin leave the time open.
        let timed = matches!(self.special, Some(Special::Today | Special::Tomorrow | Special::Yesterday));
        if self.special.is_some() && (self.date.is_some() || self.bc || self.time.is_some() && !timed) {
            return Err(Problem::Syntax);
        }
        if let Some((year, month, day)) = &mut self.date {
            if *year > LAST_YEAR {
                return Err(Problem::Range);
            }
            if self.bc {
                if *year <= 0 {
                    return Err(Problem::Field);
                }
                *year = 1 - *year;
            } else if *year == 0 {
                return Err(Problem::Field);
            }
            if *day > month_days(*year, *month) {
                return Err(Problem::Field);
            }
        }
        if let (Some(afternoon), Some(time)) = (self.afternoon, &mut self.time) {
            let hour = *time / HOUR;
            if hour > 12 || hour == 0 && *time >= HOUR {
                return Err(Problem::Field);
            }
            if afternoon && hour < 12 {
                *time += 12 * HOUR;
            } else if !afternoon && hour == 12 {
                *time -= 12 * HOUR;
            }
        }
        Ok(())
    }
}

/// How far a field that begins with a digit goes: digits, separators, a month's name between dashes, a `T`.
fn number_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 0;
    let mut clock = false;
    while at < bytes.len() {
        match bytes[at] {
            b'0'..=b'9' | b'.' => {}
            b':' => clock = true,
            b'-' if clock => break,
            b'/' => {}
            // Two dashes at most belong to a date; "2024-01-02-05" has a zone behind it.
            b'-' if rest[..at].matches('-').count() < 2 => {}
            b'T' | b't' if at >= 6 && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {}
            letter
                if letter.is_ascii_alphabetic()
                    && at > 0
                    && (bytes[at - 1] == b'-' || in_month(rest, at)) => {}
            _ => break,
        }
        at += 1;
    }
    at
}

/// Whether the letter at this place belongs to a month's name that follows a dash.
fn in_month(rest: &str, at: usize) -> bool {
    let start = rest[..at].rfind(|c: char| !c.is_ascii_alphabetic()).map_or(0, |position| position + 1);
    start < at && start > 0 && rest.as_bytes()[start - 1] == b'-'
}

fn digits(field: &str) -> Result<i64, Problem> {
    if field.is_empty() || !field.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Problem::Syntax);
    }
    field.parse().map_err(|_| Problem::Field)
}

/// Two-digit years are 1970 to 2069.
fn full_year(year: i64, width: usize) -> i64 {
    match year {
        _ if width > 2 => year,
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    }
}

/// hh:mm[:ss[.ffffff]]
fn parse_clock(field: &str) -> Result<i64, Problem> {
    let (whole, fraction) = field.split_once('.').unwrap_or((field, ""));
    let fields: Vec<i64> = whole.split(':').map(digits).collect::<Result<_, _>>()?;
    let micros = parse_fraction(fraction).ok_or(Problem::Syntax)?;
    match fields.as_slice() {
        [hour, minute] if fraction.is_empty() => clock(*hour, *minute, 0, 0),
        // mm:ss.fff
        [minute, second] => clock(0, *minute, *second, micros),
        [hour, minute, second] => clock(*hour, *minute, *second, micros),
        _ => Err(Problem::Syntax),
    }
}

fn clock(hour: i64, minute: i64, second: i64, micros: i64) -> Result<i64, Problem> {
    if hour > 24 || minute > 59 || second > 60 {
        return Err(Problem::Field);
    }
    let total = hour * HOUR + minute * MINUTE + second * SECOND + micros;
    if total > DAY { Err(Problem::Field) } else { Ok(total) }
}

/// Microseconds of the digits after a decimal point, rounded to six of them.
pub(in crate::types) fn parse_fraction(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    if digits.len() > 6 {
        // As a float, halves to even.
        return Some((format!("0.{digits}").parse::<f64>().ok()? * 1e6).round_ties_even() as i64);
    }
    let mut micros = 0;
    for position in 0..6 {
        micros = micros * 10 + digits.as_bytes().get(position).map_or(0, |digit| i64::from(digit - b'0'));
    }
    Some(micros)
}

/// Seconds of `[+-]hh[[:]mm[:ss]]`.
pub(super) fn parse_offset(text: &str) -> Option<i64> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let fields: Vec<&str> = rest.split(':').collect();
    if fields.iter().any(|field| field.is_empty() || !field.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let number = |at: usize| fields.get(at).map_or(Some(0), |field| field.parse::<i64>().ok());
    let (hours, minutes, seconds) = match (fields.len(), fields[0].len()) {
        (1, 3..=4) => (number(0)? / 100, number(0)? % 100, 0),
        (1, 5..=6) => (number(0)? / 10_000, number(0)? / 100 % 100, number(0)? % 100),
        (1..=3, 1..=2) => (number(0)?, number(1)?, number(2)?),
        _ => return None,
    };
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let total = hours * 3600 + minutes * 60 + seconds;
    Some(if negative { -total } else { total })
}

fn month_by_name(word: &str) -> Option<i64> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let lower = word.to_ascii_lowercase();
    let index =
        NAMES.iter().position(|name| *name == lower || (lower.len() == 3 && name.starts_with(&lower)));
    index.or((lower == "sept").then_some(8)).map(|index| index as i64 + 1)
}

fn is_weekday(lower: &str) -> bool {
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]
        .iter()
        .any(|name| *name == lower || (lower.len() >= 3 && name.starts_with(lower)))
}
