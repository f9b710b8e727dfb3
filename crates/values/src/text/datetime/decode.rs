//! The second step of reading a date or time: the decoder gives each field a meaning.
//!
//! The meaning depends on the field's shape, on the fields before it and on the session's
//! DateStyle. A mask of the parts read so far grows with each field; a part that occurs twice makes
//! the text invalid. Then the decoder settles the whole: the century, BC, AM and PM, ranges.

use super::Problem;
use super::digits::{clock, fraction, fraction_of_second, leading_small, offset};
use super::split::{Fields, Shape};
use super::words::{Special, Word, word};
use crate::types::datetime::{
    Abbreviation, Civil, DATE_MIN, DAY, HOUR, MINUTE, SECOND, Zone, date_of, days_of, month_days, to_local,
};
use crate::types::settings::{DateOrder, Settings};

const YEAR: u32 = 1;
const MONTH: u32 = 1 << 1;
const DAY_OF_MONTH: u32 = 1 << 2;
const DATE: u32 = YEAR | MONTH | DAY_OF_MONTH;
const YEAR_AND_MONTH: u32 = YEAR | MONTH;
const MONTH_AND_DAY: u32 = MONTH | DAY_OF_MONTH;
const CLOCK: u32 = 1 << 3;
const DAY_OF_YEAR: u32 = 1 << 4;
const ZONE: u32 = 1 << 5;
/// The zone's offset is that of summer time.
const SUMMER: u32 = 1 << 6;
/// The word DST occurred.
const SHIFTED: u32 = 1 << 7;
const HALF: u32 = 1 << 8;
const ERA: u32 = 1 << 9;
const WEEKDAY: u32 = 1 << 10;

/// The meaning that a word gives the number after it.
#[derive(Clone, Copy, PartialEq)]
enum Label {
    Julian,
    Clock,
    /// A unit of intervals: no number of a date has one.
    Unit,
}

/// The source of the zone.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// The session's zone: the text names no other.
    Session,
    /// An offset in seconds east of UTC.
    Offset(i64),
    /// A zone, by its name.
    Named(Zone),
    /// An abbreviation whose meaning changed in its zone.
    Called(String, Zone),
}

/// The meaning of a text.
pub(super) struct Moment {
    /// A moment by name (epoch, infinity). The other fields have no meaning then.
    pub special: Option<Special>,
    /// Astronomical year, month and day.
    pub date: (i64, i64, i64),
    /// Microseconds since midnight. A clock without colons may exceed a day.
    pub micros: i64,
    pub place: Place,
}

/// The values of the fields read so far.
struct Decoder<'s> {
    settings: &'s Settings,
    /// The caller reads a time of day: a date is accepted and ignored.
    time_only: bool,
    said: u32,
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    /// Hours, minutes, seconds, microseconds.
    clock: [i64; 4],
    label: Option<Label>,
    special: Option<Special>,
    named_month: bool,
    short_year: bool,
    /// The year is already astronomical.
    counted_year: bool,
    before_christ: bool,
    afternoon: Option<bool>,
    place: Place,
}

/// Decodes the fields of a date or timestamp, or of a time of day when `time_only`.
pub(super) fn decode(fields: &Fields, settings: &Settings, time_only: bool) -> Result<Moment, Problem> {
    let mut decoder = Decoder {
        settings,
        time_only,
        said: 0,
        year: 0,
        month: 0,
        day: 0,
        day_of_year: 0,
        clock: [0; 4],
        label: None,
        special: None,
        named_month: false,
        short_year: false,
        counted_year: false,
        before_christ: false,
        afternoon: None,
        place: Place::Session,
    };
    for at in 0..fields.len() {
        let text = fields.text(at);
        let said = match fields.shape(at) {
            Shape::Date => decoder.date(text, fields, at)?,
            Shape::Clock => decoder.time(text)?,
            Shape::Signed => {
                decoder.place = Place::Offset(offset(text)?);
                ZONE
            }
            Shape::Number => decoder.number(text, fields, at)?,
            Shape::Word => match word(text) {
                Some(word) => decoder.word(word)?,
                None => decoder.zone(text)?,
            },
        };
        if said & decoder.said != 0 {
            return Err(Problem::Syntax);
        }
        decoder.said |= said;
    }
    decoder.finish()
}

impl Decoder<'_> {
    /// The parts that a number cannot be: where a time is read, no number is part of a date.
    fn known(&self) -> u32 {
        if self.time_only { self.said | DATE } else { self.said }
    }

    /// Decodes digits with separators, or a zone by name.
    fn date(&mut self, text: &str, fields: &Fields, at: usize) -> Result<u32, Problem> {
        if self.time_only {
            let last = fields.len() - 1;
            let dated =
                at == 0 && last > 0 && (fields.shape(last) == Shape::Date || fields.shape(1) == Shape::Clock);
            return if dated { self.calendar(text) } else { self.clock_or_zone(text, false) };
        }
        match self.label {
            Some(Label::Julian) => {
                // The offset is at the end.
                let (days, rest) = leading_small(text);
                self.set_julian(days?)?;
                self.place = Place::Offset(offset(rest)?);
                self.label = None;
                Ok(DATE | CLOCK | ZONE)
            }
            Some(Label::Clock) => {
                self.label = None;
                self.clock_or_zone(text, true)
            }
            Some(Label::Unit) => Err(Problem::Syntax),
            None if self.said & MONTH_AND_DAY == MONTH_AND_DAY => self.clock_or_zone(text, false),
            None => self.calendar(text),
        }
    }

    /// Decodes a clock without colons and the offset after it, or a zone by name.
    fn clock_or_zone(&mut self, text: &str, labelled: bool) -> Result<u32, Problem> {
        if !labelled && !text.starts_with(|c: char| c.is_ascii_digit()) {
            let zone = Zone::named(text).ok_or_else(|| Problem::Zone(text.to_owned()))?;
            self.place = Place::Named(zone);
            return Ok(ZONE);
        }
        if self.said & CLOCK != 0 {
            return Err(Problem::Syntax);
        }
        let dash = text.find('-').ok_or(Problem::Syntax)?;
        self.place = Place::Offset(offset(&text[dash..])?);
        Ok(self.run_together(&text[..dash], self.known())? | ZONE)
    }

    fn time(&mut self, text: &str) -> Result<u32, Problem> {
        if self.label.take().is_some_and(|label| label != Label::Clock) {
            return Err(Problem::Syntax);
        }
        let fields = clock(text, false)?;
        if i32::try_from(fields[0]).is_err() {
            return Err(Problem::Value);
        }
        self.clock = fields;
        if !self.time_only {
            self.check_clock()?;
        }
        Ok(CLOCK)
    }

    /// Decodes digits, perhaps with a decimal point.
    fn number(&mut self, text: &str, fields: &Fields, at: usize) -> Result<u32, Problem> {
        if let Some(label) = self.label.take() {
            return self.labelled(label, text);
        }
        let point = text.find('.');
        if self.time_only {
            let last = fields.len() - 1;
            return match point {
                Some(_) if at == 0 && last > 0 && fields.shape(last) == Shape::Date => self.calendar(text),
                Some(digits) if digits > 2 => self.run_together(text, self.known()),
                Some(_) => Err(Problem::Syntax),
                None if text.len() > 4 => self.run_together(text, self.known()),
                None => self.part(text, false, self.known()),
            };
        }
        let incomplete = self.said & DATE == 0 || self.said & CLOCK == 0;
        match point {
            Some(_) if self.said & DATE == 0 => self.calendar(text),
            Some(digits) if digits > 2 => self.run_together(text, self.said),
            _ if text.len() >= 6 && incomplete => self.run_together(text, self.said),
            _ => self.part(text, self.named_month, self.said),
        }
    }

    /// Decodes a number whose meaning the word before it gives.
    fn labelled(&mut self, label: Label, text: &str) -> Result<u32, Problem> {
        let (value, rest) = leading_small(text);
        let value = value?;
        match label {
            Label::Julian => {
                self.set_julian(value)?;
                if rest.is_empty() {
                    return Ok(DATE);
                }
                let micros = (fraction(rest)? * DAY as f64) as i64;
                self.clock = [micros / HOUR, micros / MINUTE % 60, micros / SECOND % 60, micros % SECOND];
                Ok(DATE | CLOCK)
            }
            Label::Clock => match self.run_together(text, self.said | DATE)? {
                CLOCK => Ok(CLOCK),
                _ => Err(Problem::Syntax),
            },
            Label::Unit => Err(Problem::Syntax),
        }
    }

    fn set_julian(&mut self, days: i64) -> Result<(), Problem> {
        if days < 0 {
            return Err(Problem::Value);
        }
        self.set_days(days + DATE_MIN);
        Ok(())
    }

    /// Sets the date to a day counted from 2000-01-01.
    fn set_days(&mut self, days: i64) {
        (self.year, self.month, self.day) = date_of(days);
        self.counted_year = true;
    }

    /// Decodes a word that is not part of a date: a zone.
    fn zone(&mut self, text: &str) -> Result<u32, Problem> {
        let session = &self.settings.time_zone;
        let (place, said) = match Zone::meant_by(text, session) {
            Some(Abbreviation::Constant { seconds, summer }) => {
                (Place::Offset(seconds), if summer { ZONE | SUMMER } else { ZONE })
            }
            Some(Abbreviation::Varying(zone)) => (Place::Called(text.to_owned(), zone), ZONE),
            Some(Abbreviation::Zone(zone)) => (Place::Named(zone), ZONE),
            None => return Err(Problem::Syntax),
        };
        self.place = place;
        Ok(said)
    }

    fn word(&mut self, word: Word) -> Result<u32, Problem> {
        match word {
            Word::Filler => Ok(0),
            Word::Special(special) => self.special(special),
            Word::Allballs => {
                self.clock = [0; 4];
                self.place = Place::Offset(0);
                Ok(CLOCK | ZONE)
            }
            Word::Month(_) | Word::Weekday if self.time_only => Err(Problem::Syntax),
            Word::Month(month) => {
                let mut said = MONTH;
                // The number before this month was read as a month: it is the day.
                if self.said & MONTH_AND_DAY == MONTH && !self.named_month && (1..=31).contains(&self.month) {
                    self.day = self.month;
                    said = DAY_OF_MONTH;
                }
                self.named_month = true;
                self.month = month;
                Ok(said)
            }
            Word::Weekday => Ok(WEEKDAY),
            Word::Summer => {
                let seconds = if let Place::Offset(seconds) = self.place { seconds } else { 0 };
                // A named zone knows its summer time; the final check refuses DST beside it.
                if !matches!(self.place, Place::Named(_) | Place::Called(..)) {
                    self.place = Place::Offset(seconds + 3600);
                }
                Ok(SHIFTED | SUMMER)
            }
            Word::Half { afternoon } => {
                self.afternoon = Some(afternoon);
                Ok(HALF)
            }
            Word::Era { before } => {
                self.before_christ = before;
                Ok(ERA)
            }
            Word::Julian => self.expect(Label::Julian),
            Word::Clock if !self.time_only && self.said & DATE != DATE => Err(Problem::Syntax),
            Word::Clock => self.expect(Label::Clock),
            Word::Unit => self.expect(Label::Unit),
        }
    }

    fn expect(&mut self, label: Label) -> Result<u32, Problem> {
        match self.label.replace(label) {
            None => Ok(0),
            Some(_) => Err(Problem::Syntax),
        }
    }

    fn special(&mut self, special: Special) -> Result<u32, Problem> {
        let zone = &self.settings.time_zone;
        let now = self.settings.transaction_time;
        let local = to_local(zone, now);
        let today = local.div_euclid(DAY);
        if special == Special::Now {
            let micros = local.rem_euclid(DAY);
            self.clock = [micros / HOUR, micros / MINUTE % 60, micros / SECOND % 60, micros % SECOND];
            if self.time_only {
                return Ok(CLOCK);
            }
            self.place = Place::Offset(zone.offset_at(now));
        } else if self.time_only {
            return Err(Problem::Syntax);
        }
        match special {
            Special::Now => {
                let Civil { year, month, day, .. } = Civil::of(local);
                (self.year, self.month, self.day) = (year, month, day);
                return Ok(DATE | CLOCK | ZONE);
            }
            Special::Yesterday => (self.year, self.month, self.day) = date_of(today - 1),
            Special::Today => (self.year, self.month, self.day) = date_of(today),
            Special::Tomorrow => (self.year, self.month, self.day) = date_of(today + 1),
            Special::Epoch | Special::Infinity | Special::NegInfinity => {
                self.special = Some(special);
                return Ok(DATE | CLOCK | ZONE);
            }
        }
        self.special = None;
        Ok(DATE)
    }

    /// Decodes the parts of a date between separators. The month's name comes first, since it
    /// decides what the other parts are.
    fn calendar(&mut self, text: &str) -> Result<u32, Problem> {
        let mut said = 0;
        let mut named = false;
        for names in [true, false] {
            let mut rest = text;
            while !rest.is_empty() {
                let start = rest.find(|c: char| c.is_ascii_alphanumeric()).ok_or(Problem::Syntax)?;
                rest = &rest[start..];
                let alphabetic = rest.as_bytes()[0].is_ascii_alphabetic();
                let belongs = |c: char| c.is_ascii_alphanumeric() && c.is_ascii_alphabetic() == alphabetic;
                let part;
                (part, rest) = rest.split_at(rest.find(|c| !belongs(c)).unwrap_or(rest.len()));
                // One separator belongs to the part.
                rest = rest.get(1..).unwrap_or("");
                if alphabetic != names {
                    continue;
                }
                let more = if alphabetic {
                    let Some(Word::Month(month)) = word(part) else { return Err(Problem::Syntax) };
                    self.month = month;
                    named = true;
                    MONTH
                } else {
                    self.part(part, named, self.said | said)?
                };
                if (self.said | said) & more != 0 {
                    return Err(Problem::Syntax);
                }
                said |= more;
            }
        }
        if (self.said | said) & !(DAY_OF_YEAR | ZONE) == DATE { Ok(said) } else { Err(Problem::Syntax) }
    }

    /// Decodes a number that is one part of a date, or a clock where the date is complete. The
    /// parts before it decide which.
    fn part(&mut self, text: &str, named_month: bool, known: u32) -> Result<u32, Problem> {
        let (value, rest) = leading_small(text);
        let value = value?;
        if rest.len() == text.len() {
            return Err(Problem::Syntax);
        }
        if rest.starts_with('.') {
            if text.len() - rest.len() > 2 {
                return self.run_together(text, known | DATE);
            }
            self.clock[3] = fraction_of_second(rest)?;
        } else if !rest.is_empty() {
            return Err(Problem::Syntax);
        }
        if text.len() == 3 && known & DATE == YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(DAY_OF_YEAR | MONTH_AND_DAY);
        }
        let long = text.len() >= 3;
        let order = self.settings.date_order;
        let said = match known & DATE {
            0 if long || order == DateOrder::Ymd => YEAR,
            0 if order == DateOrder::Dmy => DAY_OF_MONTH,
            0 | YEAR | DAY_OF_MONTH => MONTH,
            MONTH if named_month && (long || order == DateOrder::Ymd) => YEAR,
            MONTH => DAY_OF_MONTH,
            YEAR_AND_MONTH => {
                if named_month && long && self.short_year {
                    // The first number was the day.
                    self.day = self.year;
                    self.year = value;
                    self.short_year = false;
                    return Ok(DAY_OF_MONTH);
                }
                DAY_OF_MONTH
            }
            MONTH_AND_DAY => YEAR,
            DATE => return self.run_together(text, known),
            _ => return Err(Problem::Syntax),
        };
        match said {
            YEAR => (self.year, self.short_year) = (value, !long),
            MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(said)
    }

    /// Decodes digits without separators: yymmdd or yyyymmdd where the date is incomplete, else
    /// hhmmss or hhmm.
    fn run_together(&mut self, text: &str, known: u32) -> Result<u32, Problem> {
        let (digits, point) = text.split_at(text.find('.').unwrap_or(text.len()));
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Problem::Syntax);
        }
        let number = |text: &str| leading_small(text).0;
        if !point.is_empty() {
            self.clock[3] = fraction_of_second(point)?;
        } else if known & DATE != DATE && digits.len() >= 6 {
            let (year, rest) = digits.split_at(digits.len() - 4);
            (self.year, self.month, self.day) = (number(year)?, number(&rest[..2])?, number(&rest[2..])?);
            if year.len() == 2 {
                self.short_year = true;
            }
            return Ok(DATE);
        }
        if known & CLOCK != 0 || !matches!(digits.len(), 4 | 6) {
            return Err(Problem::Syntax);
        }
        self.clock[0] = number(&digits[..2])?;
        self.clock[1] = number(&digits[2..4])?;
        self.clock[2] = number(&digits[4..])?;
        Ok(CLOCK)
    }

    /// Fails when the clock exceeds the end of a day.
    fn check_clock(&self) -> Result<(), Problem> {
        let [hours, minutes, seconds, micros] = self.clock;
        let fits = (0..=24).contains(&hours)
            && (0..60).contains(&minutes)
            && (0..=60).contains(&seconds)
            && (0..=SECOND).contains(&micros)
            && self.micros() <= DAY;
        if fits { Ok(()) } else { Err(Problem::Value) }
    }

    fn micros(&self) -> i64 {
        let [hours, minutes, seconds, micros] = self.clock;
        hours * HOUR + minutes * MINUTE + seconds * SECOND + micros
    }

    fn finish(mut self) -> Result<Moment, Problem> {
        if self.label.is_some() {
            return Err(Problem::Syntax);
        }
        if self.special.is_none() {
            self.settle_date()?;
            self.settle_half()?;
            self.settle_zone()?;
        }
        let micros = self.micros();
        Ok(Moment {
            special: self.special,
            date: (self.year, self.month, self.day),
            micros,
            place: self.place,
        })
    }

    /// Settles the century of a short year, BC, a day of the year, and the ranges.
    fn settle_date(&mut self) -> Result<(), Problem> {
        if self.said & YEAR != 0 && !self.counted_year {
            if self.year < i64::from(!self.short_year || self.before_christ) {
                return Err(Problem::Value);
            }
            self.year = match self.year {
                year if self.before_christ => 1 - year,
                year if !self.short_year => year,
                year @ 0..70 => year + 2000,
                year @ 70..100 => year + 1900,
                year => year,
            };
        }
        if self.said & DAY_OF_YEAR != 0 {
            (self.year, self.month, self.day) = date_of(days_of(self.year, 1, 1) + self.day_of_year - 1);
        }
        if self.said & MONTH != 0 && !(1..=12).contains(&self.month)
            || self.said & DAY_OF_MONTH != 0 && !(1..=31).contains(&self.day)
        {
            return Err(Problem::Order);
        }
        if self.said & DATE == DATE && self.day > month_days(self.year, self.month) {
            return Err(Problem::Value);
        }
        Ok(())
    }

    /// Settles AM and PM.
    fn settle_half(&mut self) -> Result<(), Problem> {
        let hour = &mut self.clock[0];
        match self.afternoon {
            Some(_) if *hour > 12 => return Err(Problem::Value),
            Some(true) if *hour != 12 => *hour += 12,
            Some(false) if *hour == 12 => *hour = 0,
            _ => {}
        }
        Ok(())
    }

    /// Checks that no part is missing and that the zone fits the other parts.
    fn settle_zone(&self) -> Result<(), Problem> {
        if self.time_only {
            self.check_clock()?;
        }
        let needed = if self.time_only { CLOCK } else { DATE };
        let dated = self.said & DATE == DATE;
        let sound = self.said & needed == needed
            && match &self.place {
                // DST alone names no zone.
                Place::Session | Place::Offset(_) => self.said & (SHIFTED | ZONE) != SHIFTED,
                Place::Named(zone) => self.said & SHIFTED == 0 && (dated || zone.is_constant()),
                Place::Called(..) => self.said & SHIFTED == 0,
            };
        if sound { Ok(()) } else { Err(Problem::Syntax) }
    }
}
