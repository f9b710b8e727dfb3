//! Intervals from text.
//!
//! A text is split into fields as dates are, and read from its end, because a unit follows its
//! number. When that fails, the text may be an interval of ISO 8601 ([`iso`]).

use super::super::datetime::Problem;
use super::super::datetime::digits::{clock, fraction, leading, leading_small};
use super::super::datetime::split::{Fields, Shape};
use super::super::datetime::words::is_word;
use super::iso;
use super::sum::{Sum, Unit};
use crate::error::{SqlError, SqlState};
use crate::types::datetime::{HOUR, MINUTE, SECOND};
use crate::types::interval::{Interval, fields, interval_out_of_range};
use crate::types::settings::IntervalStyle;

/// Bytes that the fields of an interval may take.
const ROOM: usize = 256;

impl Interval {
    /// Reads an interval. `fields` are those that the type names ([`fields`]): they give a number
    /// without a unit its meaning.
    pub fn parse(text: &str, fields: i32, style: IntervalStyle) -> Result<Interval, SqlError> {
        let read = match Reader::read(text, fields, style) {
            Err(Problem::Syntax) => iso::read(text).map(Said::Sum),
            read => read,
        };
        match read {
            Ok(Said::Infinite(value)) => Ok(value),
            Ok(Said::Sum(sum)) => {
                let months = i64::from(sum.years) * 12 + i64::from(sum.months);
                let months = i32::try_from(months).map_err(|_| interval_out_of_range())?;
                // An interval with all three fields at their extremes is an infinity, as in
                // PostgreSQL.
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
}

/// The interval that a text stands for.
enum Said {
    Infinite(Interval),
    Sum(Sum),
}

/// Whether a word is a unit of dates only. An interval may contain it after a part that needs no
/// unit (`1-2 dow`).
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

/// The units of a clock.
fn clock_bits() -> u32 {
    Unit::Hour.bit() | Unit::Minute.bit() | second_bits()
}

/// Seconds and the smaller units.
fn second_bits() -> u32 {
    Unit::Second.bit() | Unit::Millisecond.bit() | Unit::Microsecond.bit()
}

/// The unit of the next number to the left.
#[derive(Clone, Copy, PartialEq)]
enum Next {
    /// The type's smallest field: nothing has been read yet.
    Smallest,
    /// This unit.
    Unit(Unit),
    /// None: no number may follow to the left.
    Nothing,
}

/// Reads `1 year -2 days 03:04:05 ago`, `1-2`, `@ 3 hours`.
struct Reader {
    sum: Sum,
    /// The units read so far: none may occur twice.
    seen: u32,
    next: Next,
    /// A unit waits for its number.
    pending: bool,
    /// The sign at the front applies to all fields.
    all_negative: bool,
    /// The fields the type names.
    named: i32,
}

impl Reader {
    fn read(text: &str, named: i32, style: IntervalStyle) -> Result<Said, Problem> {
        let fields = Fields::split(text, ROOM, is_word).ok_or(Problem::Syntax)?;
        // In SQL's format a sign at the front applies to every field, unless another field has a
        // sign.
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
                    // The field is then a number.
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

    /// Reads `[-]hh:mm[:ss[.fff]]`. It replaces the parts below a day that the fields after it
    /// gave.
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

    /// Reads a number with the unit after it, or years and months (`1-2`).
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
        // A fraction of a second also gives the smaller units.
        Ok(if unit == Unit::Second && part != 0.0 { second_bits() } else { unit.bit() })
    }
}
