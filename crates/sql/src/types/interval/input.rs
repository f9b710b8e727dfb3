//! Intervals from text, and the fields that a type like `interval day to hour` names.

use super::super::datetime::{DAY, HOUR, MINUTE, SECOND, parse_fraction};
use super::super::settings::IntervalStyle;
use super::Interval;
use crate::error::{SqlError, SqlState};

/// The fields that a type like `interval day to hour` names, by bits, as PostgreSQL numbers them.
pub mod fields {
    /// All of them: no field is named.
    pub const ALL: i32 = 0x7fff;
    pub(super) const MONTH: i32 = 1 << 1;
    pub(super) const YEAR: i32 = 1 << 2;
    pub(super) const DAY: i32 = 1 << 3;
    pub(super) const HOUR: i32 = 1 << 10;
    pub(super) const MINUTE: i32 = 1 << 11;
    pub(super) const SECOND: i32 = 1 << 12;

    /// Those a type modifier names.
    pub fn of(modifier: i32) -> i32 {
        if modifier < 0 { ALL } else { modifier >> 16 & ALL }
    }
}

/// Why a text is no interval.
enum Problem {
    Syntax,
    /// A field's value.
    Field,
}

impl Interval {
    /// Reads an interval.
    /// `fields`: which ones the type names ([`fields`]); they say what a number without a unit is.
    pub fn parse(text: &str, fields: i32, style: IntervalStyle) -> Result<Interval, SqlError> {
        let lower = text.trim().to_ascii_lowercase();
        match lower.as_str() {
            "infinity" | "+infinity" => return Ok(Interval::INFINITY),
            "-infinity" => return Ok(Interval::NEG_INFINITY),
            _ => {}
        }
        let mut sum = Sum { named: fields, ..Sum::default() };
        let read = match lower.strip_prefix('p') {
            Some(fields) => sum.iso(fields),
            None => sum.words(&lower, style),
        };
        read.map_err(|problem| match problem {
            Problem::Syntax => SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type interval: \"{text}\""),
            ),
            Problem::Field => SqlError::new(
                SqlState::INTERVAL_FIELD_OVERFLOW,
                format!("interval field value out of range: \"{text}\""),
            ),
        })?;
        let months = sum.years.checked_mul(12).and_then(|years| years.checked_add(sum.months));
        Interval::checked(months, Some(sum.days), Some(sum.micros))
    }

    /// Without the fields that are smaller than the smallest named one.
    #[must_use]
    pub fn within(self, named: i32) -> Interval {
        use fields::{ALL, DAY as DAYS, HOUR as HOURS, MINUTE as MINUTES, MONTH, SECOND as SECONDS, YEAR};
        if named == ALL || named & SECONDS != 0 || self.is_infinite() {
            return self;
        }
        let (months, days, micros) = (self.months, self.days, self.micros);
        if named & MINUTES != 0 {
            Interval { months, days, micros: micros / MINUTE * MINUTE }
        } else if named & HOURS != 0 {
            Interval { months, days, micros: micros / HOUR * HOUR }
        } else if named & DAYS != 0 {
            Interval { months, days, micros: 0 }
        } else if named & MONTH != 0 {
            Interval { months, days: 0, micros: 0 }
        } else if named & YEAR != 0 {
            Interval { months: months / 12 * 12, days: 0, micros: 0 }
        } else {
            self
        }
    }
}

/// What a number without a unit is.
fn bare_unit(named: i32) -> &'static str {
    use fields::{ALL, DAY as DAYS, HOUR as HOURS, MINUTE as MINUTES, MONTH, SECOND as SECONDS, YEAR};
    if named == ALL || named & SECONDS != 0 {
        "second"
    } else if named & MINUTES != 0 {
        "minute"
    } else if named & HOURS != 0 {
        "hour"
    } else if named & DAYS != 0 {
        "day"
    } else if named & MONTH != 0 {
        "month"
    } else if named & YEAR != 0 {
        "year"
    } else {
        "second"
    }
}

/// A number as its whole part and its fraction, both with its sign.
type Number = (i64, f64);

fn number(text: &str) -> Result<Number, Problem> {
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    // ".5" is a number, "-.5" is none.
    if !all_digits || whole.is_empty() && (fraction.is_empty() || digits.len() < text.len()) {
        return Err(Problem::Syntax);
    }
    let mut value: i64 = 0;
    for byte in whole.bytes() {
        let digit = sign * i64::from(byte - b'0');
        value = value.checked_mul(10).and_then(|value| value.checked_add(digit)).ok_or(Problem::Field)?;
    }
    let fraction: f64 = format!("0.{fraction}").parse().map_err(|_| Problem::Syntax)?;
    Ok((value, fraction * sign as f64))
}

/// Fields summed up while a text is read.
#[derive(Default)]
struct Sum {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
    /// Units that were there, by bits: none may be there twice.
    seen: u32,
    /// The fields the type names.
    named: i32,
}

/// The bits of a clock's three units, in [`Sum::seen`].
const CLOCK: u32 = 0b111;
/// The bit of years and months in one word.
const YEAR_MONTH: u32 = 1 << 12;

/// Adds a product to a field, both within the field's range.
fn grow(field: &mut i32, value: i64, scale: i64) -> Result<(), Problem> {
    let product = value.checked_mul(scale).and_then(|product| i32::try_from(product).ok());
    *field = product.and_then(|product| field.checked_add(product)).ok_or(Problem::Field)?;
    Ok(())
}

impl Sum {
    /// A number with its unit; a fraction goes down to the smaller fields.
    fn add(&mut self, (value, fraction): Number, unit: &str) -> Result<(), Problem> {
        let unit = if unit.is_empty() { bare_unit(self.named) } else { unit };
        let bit = match unit {
            "h" | "hr" | "hrs" | "hour" | "hours" => {
                self.add_micros(value, fraction, HOUR)?;
                1
            }
            "m" | "min" | "mins" | "minute" | "minutes" => {
                self.add_micros(value, fraction, MINUTE)?;
                1 << 1
            }
            "s" | "sec" | "secs" | "second" | "seconds" => {
                self.add_micros(value, fraction, SECOND)?;
                1 << 2
            }
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => {
                self.add_micros(value, fraction, 1000)?;
                1 << 3
            }
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" => {
                self.add_micros(value, fraction, 1)?;
                1 << 4
            }
            "d" | "day" | "days" => {
                self.add_days(value, fraction, 1)?;
                1 << 5
            }
            "w" | "week" | "weeks" => {
                self.add_days(value, fraction, 7)?;
                1 << 8
            }
            "mon" | "mons" | "month" | "months" => {
                grow(&mut self.months, value, 1)?;
                self.add_days(0, fraction, 30)?;
                1 << 7
            }
            "y" | "yr" | "yrs" | "year" | "years" => {
                self.add_years(value, fraction, 1)?;
                1 << 6
            }
            "dec" | "decs" | "decade" | "decades" => {
                self.add_years(value, fraction, 10)?;
                1 << 9
            }
            "c" | "cent" | "century" | "centuries" => {
                self.add_years(value, fraction, 100)?;
                1 << 10
            }
            "mil" | "mils" | "millennia" | "millennium" => {
                self.add_years(value, fraction, 1000)?;
                1 << 11
            }
            _ => return Err(Problem::Syntax),
        };
        self.note(bit)
    }

    /// An error when one of these units has been there before.
    fn note(&mut self, units: u32) -> Result<(), Problem> {
        let fresh = self.seen & units == 0;
        self.seen |= units;
        if fresh { Ok(()) } else { Err(Problem::Syntax) }
    }

    fn add_years(&mut self, value: i64, fraction: f64, years: i64) -> Result<(), Problem> {
        grow(&mut self.years, value, years)?;
        grow(&mut self.months, (fraction * (years * 12) as f64).round_ties_even() as i64, 1)
    }

    fn add_days(&mut self, value: i64, fraction: f64, days: i64) -> Result<(), Problem> {
        grow(&mut self.days, value, days)?;
        let fraction = fraction * days as f64;
        grow(&mut self.days, fraction as i64, 1)?;
        self.add_micros(0, fraction.fract(), DAY)
    }

    fn add_micros(&mut self, value: i64, fraction: f64, unit: i64) -> Result<(), Problem> {
        // Half a microsecond is dropped.
        let part = fraction * unit as f64;
        let part = part.trunc() + if part.fract().abs() > 0.5 { part.signum() } else { 0.0 };
        let sum = value.checked_mul(unit).and_then(|whole| self.micros.checked_add(whole));
        self.micros = sum.and_then(|sum| sum.checked_add(part as i64)).ok_or(Problem::Field)?;
        Ok(())
    }

    /// `1 year -2 days 03:04:05 ago`, `1-2`, `@ 3 hours`.
    fn words(&mut self, text: &str, style: IntervalStyle) -> Result<(), Problem> {
        let mut rest = text.trim_start_matches('@').trim_start();
        // In SQL's own format a sign at the front is every field's, unless another field has one too.
        let signs = |(at, byte): (usize, u8)| {
            matches!(byte, b'-' | b'+') && (at == 0 || rest.as_bytes()[at - 1] == b' ')
        };
        let all_negative = style == IntervalStyle::SqlStandard
            && rest.starts_with('-')
            && rest.bytes().enumerate().filter(|byte| signs(*byte)).count() == 1;
        while !rest.is_empty() {
            if rest == "ago" && self.seen != 0 {
                self.reverse()?;
                break;
            }
            let length = rest
                .find(|c: char| !(c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | ':')))
                .unwrap_or(rest.len());
            let (field, after) = rest.split_at(length);
            if field.is_empty() {
                return Err(Problem::Syntax);
            }
            rest = after.trim_start();
            if field.contains(':') {
                self.clock(field, all_negative)?;
                continue;
            }
            if let Some(dash) = field[1..].find('-') {
                let (years, fraction) = number(&field[..dash + 1])?;
                let (months, rest) = number(&field[dash + 2..])?;
                if fraction != 0.0 || rest != 0.0 {
                    return Err(Problem::Syntax);
                }
                if !(0..12).contains(&months) {
                    return Err(Problem::Field);
                }
                let negative = all_negative || field.starts_with('-');
                grow(&mut self.years, if all_negative { -years.abs() } else { years }, 1)?;
                grow(&mut self.months, if negative { -months } else { months }, 1)?;
                self.note(YEAR_MONTH)?;
                continue;
            }
            let (mut value, mut fraction) = number(field)?;
            if all_negative && !field.starts_with('-') {
                (value, fraction) = (-value, -fraction);
            }
            let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let unit = &rest[..letters];
            if unit == "ago" {
                return Err(Problem::Syntax);
            }
            if unit.is_empty() && !rest.is_empty() {
                // "1 12:00" is a day and a time, "1 2 hours" is too.
                self.before_hours(rest)?;
                self.add((value, fraction), "day")?;
                continue;
            }
            self.add((value, fraction), unit)?;
            rest = rest[letters..].trim_start();
        }
        self.something()
    }

    /// An error when there was no field at all.
    fn something(&self) -> Result<(), Problem> {
        if self.seen != 0 { Ok(()) } else { Err(Problem::Syntax) }
    }

    fn reverse(&mut self) -> Result<(), Problem> {
        let reversed = (|| {
            Some(Sum {
                years: self.years.checked_neg()?,
                months: self.months.checked_neg()?,
                days: self.days.checked_neg()?,
                micros: self.micros.checked_neg()?,
                ..*self
            })
        })();
        *self = reversed.ok_or(Problem::Field)?;
        Ok(())
    }

    /// Whether hours or a time of day come next.
    fn before_hours(&self, rest: &str) -> Result<(), Problem> {
        let next = rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
        let unit = next.trim_start();
        let unit = &unit[..unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len())];
        let unit = if unit.is_empty() { bare_unit(self.named) } else { unit };
        let hours = next.starts_with(':') || matches!(unit, "h" | "hr" | "hrs" | "hour" | "hours");
        if hours { Ok(()) } else { Err(Problem::Syntax) }
    }

    /// `[-]hh:mm[:ss[.fff]]`
    fn clock(&mut self, text: &str, negative: bool) -> Result<(), Problem> {
        let (negative, digits) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (negative, text),
        };
        let parts: Vec<&str> = digits.split(':').collect();
        let (hours, minutes, seconds) = match parts.as_slice() {
            [minutes, seconds] if seconds.contains('.') => ("0", *minutes, *seconds),
            [minutes, seconds] if self.named == fields::MINUTE | fields::SECOND => ("0", *minutes, *seconds),
            [hours, minutes] => (*hours, *minutes, "0"),
            [hours, minutes, seconds] => (*hours, *minutes, *seconds),
            _ => return Err(Problem::Syntax),
        };
        let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
        let mut fields = [0; 3];
        for (field, text) in fields.iter_mut().zip([hours, minutes, whole]) {
            if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(Problem::Syntax);
            }
            *field = text.parse::<i64>().map_err(|_| Problem::Field)?;
        }
        let [hours, minutes, whole] = fields;
        if minutes > 59 || whole > 60 {
            return Err(Problem::Field);
        }
        let fraction = parse_fraction(fraction).ok_or(Problem::Syntax)?;
        let below = minutes * MINUTE + whole * SECOND + fraction;
        let micros = hours.checked_mul(HOUR).and_then(|hours| hours.checked_add(below));
        let micros = micros.map(|micros| if negative { -micros } else { micros });
        self.micros = micros.and_then(|micros| self.micros.checked_add(micros)).ok_or(Problem::Field)?;
        self.note(CLOCK)
    }

    /// `1Y2M3DT4H5M6S` behind the P.
    fn iso(&mut self, text: &str) -> Result<(), Problem> {
        let mut in_time = false;
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('t') {
                in_time = true;
                rest = after;
                continue;
            }
            let length = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or(Problem::Syntax)?;
            let value = number(&rest[..length])?;
            let unit = match (&rest[length..length + 1], in_time) {
                ("m", false) => "mon",
                (unit @ ("y" | "w" | "d"), false) | (unit @ ("h" | "m" | "s"), true) => unit,
                _ => return Err(Problem::Syntax),
            };
            // Here a unit may be there twice.
            self.seen = 0;
            self.add(value, unit)?;
            rest = &rest[length + 1..];
        }
        self.something()
    }
}
