//! Intervals from text, and the fields that a type like `interval day to hour` names.
//!
//! A text is split into fields as dates are, and read from its end: a unit stands behind its
//! number. A text that is none this way may be one of ISO 8601 ([`iso`]).

mod iso;

use super::super::datetime::{
    DAY, Fields, HOUR, MINUTE, Problem, SECOND, Shape, clock, fraction, is_word, leading, leading_small,
};
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

/// Bytes that the fields of an interval may take.
const ROOM: usize = 256;

impl Interval {
    /// Reads an interval.
    /// `fields`: which ones the type names ([`fields`]); they say what a number without a unit is.
    pub fn parse(text: &str, fields: i32, style: IntervalStyle) -> Result<Interval, SqlError> {
        let read = match Reader::read(text, fields, style) {
            Err(Problem::Syntax) => iso::read(text).map(Said::Sum),
            read => read,
        };
        match read {
            Ok(Said::Infinite(value)) => Ok(value),
            Ok(Said::Sum(sum)) => {
                let months = i64::from(sum.years) * 12 + i64::from(sum.months);
                let months = i32::try_from(months).map_err(|_| super::interval_out_of_range())?;
                // The extremes of all three are the infinities, as in PostgreSQL.
                Ok(Interval { months, days: sum.days, micros: sum.micros })
            }
            Err(Problem::Syntax) => Err(SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type interval: \"{text}\""),
            )),
            Err(_) => Err(SqlError::new(
                SqlState::INTERVAL_FIELD_OVERFLOW,
                format!("interval field value out of range: \"{text}\""),
            )),
        }
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

/// The parsed interval.
enum Said {
    Infinite(Interval),
    Sum(Sum),
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

impl Unit {
    fn bit(self) -> u32 {
        1 << self as u32
    }

    fn by_name(word: &str) -> Option<Unit> {
        // Ten letters tell a word.
        Some(match word.get(..10).unwrap_or(word) {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Microsecond,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
            "m" | "mm" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
            "d" | "day" | "days" => Unit::Day,
            "w" | "week" | "weeks" => Unit::Week,
            "mon" | "mons" | "month" | "months" => Unit::Month,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
            "dec" | "decs" | "decade" | "decades" => Unit::Decade,
            "c" | "cent" | "century" | "centuries" => Unit::Century,
            "mil" | "mils" | "millennia" | "millennium" => Unit::Millennium,
            _ => return None,
        })
    }

    /// The unit of a number at the end that has none.
    fn smallest(named: i32) -> Unit {
        use fields::{ALL, DAY as DAYS, HOUR as HOURS, MINUTE as MINUTES, MONTH, SECOND as SECONDS, YEAR};
        if named == ALL || named & SECONDS != 0 {
            Unit::Second
        } else if named & MINUTES != 0 {
            Unit::Minute
        } else if named & HOURS != 0 {
            Unit::Hour
        } else if named & DAYS != 0 {
            Unit::Day
        } else if named & MONTH != 0 {
            Unit::Month
        } else if named & YEAR != 0 {
            Unit::Year
        } else {
            Unit::Second
        }
    }
}

/// Whether a word names a unit that no interval is counted in; it may stand behind what needs none
/// (`1-2 dow`).
fn is_other_unit(word: &str) -> bool {
    const OTHERS: [&str; 12] = [
        "dow",
        "doy",
        "isodow",
        "isoyear",
        "j",
        "jd",
        "julian",
        "qtr",
        "quarter",
        "timezone",
        "timezone_h",
        "timezone_m",
    ];
    OTHERS.contains(&word.get(..10).unwrap_or(word))
}

/// The units a clock says.
fn clock_bits() -> u32 {
    Unit::Hour.bit() | Unit::Minute.bit() | second_bits()
}

/// Seconds and what is smaller.
fn second_bits() -> u32 {
    Unit::Second.bit() | Unit::Millisecond.bit() | Unit::Microsecond.bit()
}

/// Fields summed up while a text is read.
#[derive(Default)]
struct Sum {
    years: i32,
    months: i32,
    days: i32,
    micros: i64,
}

/// Adds a product to a field, both within the field's range.
fn grow(field: &mut i32, value: i64, scale: i64) -> Result<(), Problem> {
    let product = value.checked_mul(scale).and_then(|product| i32::try_from(product).ok());
    *field = product.and_then(|product| field.checked_add(product)).ok_or(Problem::Value)?;
    Ok(())
}

impl Sum {
    /// A number of units; its fraction goes down to the smaller fields.
    fn add(&mut self, value: i64, fraction: f64, unit: Unit) -> Result<(), Problem> {
        match unit {
            Unit::Microsecond => self.add_micros(value, fraction, 1),
            Unit::Millisecond => self.add_micros(value, fraction, 1000),
            Unit::Second => self.add_micros(value, fraction, SECOND),
            Unit::Minute => self.add_micros(value, fraction, MINUTE),
            Unit::Hour => self.add_micros(value, fraction, HOUR),
            Unit::Day => {
                grow(&mut self.days, value, 1)?;
                self.add_micros(0, fraction, DAY)
            }
            Unit::Week => self.add_days(value, fraction, 7),
            Unit::Month => {
                grow(&mut self.months, value, 1)?;
                self.add_days(0, fraction, 30)
            }
            Unit::Year => self.add_years(value, fraction, 1),
            Unit::Decade => self.add_years(value, fraction, 10),
            Unit::Century => self.add_years(value, fraction, 100),
            Unit::Millennium => self.add_years(value, fraction, 1000),
        }
    }

    fn add_years(&mut self, value: i64, fraction: f64, years: i64) -> Result<(), Problem> {
        grow(&mut self.years, value, years)?;
        grow(&mut self.months, (fraction * years as f64 * 12.0).round_ties_even() as i64, 1)
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
        self.micros = sum.and_then(|sum| sum.checked_add(part as i64)).ok_or(Problem::Value)?;
        Ok(())
    }

    fn reversed(&self) -> Result<Sum, Problem> {
        let reversed = || {
            Some(Sum {
                years: self.years.checked_neg()?,
                months: self.months.checked_neg()?,
                days: self.days.checked_neg()?,
                micros: self.micros.checked_neg()?,
            })
        };
        reversed().ok_or(Problem::Value)
    }
}

/// The unit of the next number to the left.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    /// Nothing has been read yet: the type's smallest field.
    Smallest,
    /// This one.
    Unit(Unit),
    /// A number would make no sense.
    Nothing,
}

/// Reads `1 year -2 days 03:04:05 ago`, `1-2`, `@ 3 hours`.
struct Reader {
    sum: Sum,
    /// The units that were there: none may be there twice.
    seen: u32,
    next: Next,
    /// A unit waits for its number.
    pending: bool,
    /// The sign at the front is that of all fields.
    all_negative: bool,
    /// The fields the type names.
    named: i32,
}

impl Reader {
    fn read(text: &str, named: i32, style: IntervalStyle) -> Result<Said, Problem> {
        let fields = Fields::split(text, ROOM, is_word).ok_or(Problem::Syntax)?;
        // In SQL's own format a sign at the front is every field's, unless another field has one
        // too.
        let all_negative = style == IntervalStyle::SqlStandard
            && fields.len() > 0
            && fields.text(0).starts_with('-')
            && !(1..fields.len()).any(|at| fields.text(at).starts_with(['-', '+']));
        let mut reader = Reader {
            sum: Sum::default(),
            seen: 0,
            next: Next::Smallest,
            pending: false,
            all_negative,
            named,
        };
        let mut ago = false;
        let mut infinite = None;
        for at in (0..fields.len()).rev() {
            let text = fields.text(at);
            let units = match fields.shape(at) {
                Shape::Clock => reader.clock(text)?,
                Shape::Signed if text.contains(':') => match reader.clock(text) {
                    Ok(units) => units,
                    // Then it would be a number.
                    Err(_) => reader.number(text)?,
                },
                Shape::Signed | Shape::Number | Shape::Date => reader.number(text)?,
                Shape::Word if reader.pending => return Err(Problem::Syntax),
                Shape::Word => {
                    let last = at + 1 == fields.len();
                    match text {
                        "at" | "on" => reader.next = Next::Smallest,
                        "ago" if last => (ago, reader.next) = (true, Next::Nothing),
                        "infinity" | "+infinity" if last => {
                            (infinite, reader.next) = (Some(Interval::INFINITY), Next::Nothing);
                        }
                        "-infinity" if last => {
                            (infinite, reader.next) = (Some(Interval::NEG_INFINITY), Next::Nothing);
                        }
                        _ => {
                            reader.next = match Unit::by_name(text) {
                                Some(unit) => Next::Unit(unit),
                                None if is_other_unit(text) => Next::Nothing,
                                None => return Err(Problem::Syntax),
                            };
                            reader.pending = true;
                        }
                    }
                    0
                }
            };
            if units & reader.seen != 0 || infinite.is_some() && fields.shape(at) != Shape::Word {
                return Err(Problem::Syntax);
            }
            reader.seen |= units;
        }
        if reader.pending || reader.seen == 0 && infinite.is_none() {
            return Err(Problem::Syntax);
        }
        match infinite {
            Some(infinite) => Ok(Said::Infinite(infinite)),
            None if ago => reader.sum.reversed().map(Said::Sum),
            None => Ok(Said::Sum(reader.sum)),
        }
    }

    /// `[-]hh:mm[:ss[.fff]]`; it takes the place of what the fields behind it said below a day.
    fn clock(&mut self, text: &str) -> Result<u32, Problem> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let [hours, minutes, seconds, micros] =
            clock(unsigned, self.named == fields::MINUTE | fields::SECOND)?;
        let below = minutes * MINUTE + seconds * SECOND + micros;
        let total = hours.checked_mul(HOUR).and_then(|hours| hours.checked_add(below));
        let total = total.ok_or(Problem::Value)?;
        self.sum.micros = if text.starts_with('-') || self.all_negative { -total } else { total };
        // A number before a clock counts days.
        self.next = Next::Unit(Unit::Day);
        self.pending = false;
        Ok(clock_bits())
    }

    /// A number with the unit behind it, or years and months (`1-2`).
    fn number(&mut self, text: &str) -> Result<u32, Problem> {
        let negative = text.starts_with('-');
        if self.next == Next::Smallest {
            self.next = Next::Unit(Unit::smallest(self.named));
        }
        let (value, rest) = leading(text);
        let mut value = value?;
        let mut part = 0.0;
        if let Some(months) = rest.strip_prefix('-') {
            let (months, rest) = leading_small(months);
            let months = months.ok().filter(|months| (0..12).contains(months)).ok_or(Problem::Value)?;
            if !rest.is_empty() {
                return Err(Problem::Syntax);
            }
            let months = if negative { -months } else { months };
            value =
                value.checked_mul(12).and_then(|value| value.checked_add(months)).ok_or(Problem::Value)?;
            self.next = Next::Unit(Unit::Month);
        } else if rest.starts_with('.') {
            part = fraction(rest)?;
            if negative {
                part = -part;
            }
        } else if !rest.is_empty() {
            return Err(Problem::Syntax);
        }
        if self.all_negative {
            (value, part) = (if value > 0 { -value } else { value }, -part.abs());
        }
        let Next::Unit(unit) = self.next else { return Err(Problem::Syntax) };
        self.sum.add(value, part, unit)?;
        self.pending = false;
        if unit == Unit::Hour {
            // A number before the hours counts days.
            self.next = Next::Unit(Unit::Day);
        }
        // A fraction says what is smaller than a second too.
        Ok(if unit == Unit::Second && part != 0.0 { second_bits() } else { unit.bit() })
    }
}
