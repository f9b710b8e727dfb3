//! Time zones: by name, by POSIX's rules, by abbreviation.
//!
//! What must hold:
//!
//! 1. A zone has an offset at every instant and every local time. In a gap the offset before it
//!    holds, in a repeated hour the later one.
//! 2. A local time that exists once goes to an instant and back unchanged.
//! 3. An abbreviation means what the session's zone used it for, else what is common. So its
//!    meaning depends on the session.
//! 4. The abbreviations of a zone are computed at the first question. Copies of the zone share
//!    them.
//! 5. An offset from UTC is below 168 hours, so it can be added to any timestamp in range.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, TimeZone};
use sync::OnceLock;

use super::{Civil, DAY, EPOCH_MICROS, SECOND, abbreviations, days_of, month_days};

/// A time zone and the name it goes by.
#[derive(Clone, Debug)]
pub struct Zone {
    rules: Rules,
    name: Arc<str>,
    /// The abbreviations that the zone's rules use, sorted; computed at the first question.
    known: Arc<OnceLock<Vec<(String, Known)>>>,
}

#[derive(Clone, Debug)]
enum Rules {
    /// A constant offset in seconds east of UTC, and its abbreviation.
    Constant(i64, Arc<str>),
    Varying(TimeZone),
}

#[derive(Clone, Copy, Debug)]
enum Known {
    /// A constant offset in seconds east of UTC, and whether it is summer time.
    Constant(i64, bool),
    /// The zone used the abbreviation with several offsets.
    Varying,
}

/// The meaning of an abbreviation or a name.
#[derive(Clone, Debug)]
pub enum Abbreviation {
    /// A constant offset from UTC.
    Constant {
        /// Seconds east of UTC.
        seconds: i64,
        /// Whether the offset is summer time.
        summer: bool,
    },
    /// The offset that the abbreviation has in this zone at the instant.
    Varying(Zone),
    /// The text is no abbreviation but a zone's name.
    Zone(Zone),
}

/// Microseconds up to the year 2040. No rule begins or ends to use an abbreviation after this
/// instant.
const SETTLED: i64 = 40 * 366 * DAY;

/// The bound of a zone's distance from UTC: POSIX's notation has at most 167 hours and 59 minutes.
const TOO_FAR: i64 = 168 * 3600;

impl Zone {
    /// UTC.
    pub fn utc() -> Zone {
        Zone::always(0, "UTC", "UTC")
    }

    fn of(rules: Rules, name: &str) -> Zone {
        Zone { rules, name: name.into(), known: Arc::default() }
    }

    fn always(seconds: i64, name: &str, called: &str) -> Zone {
        Zone::of(Rules::Constant(seconds, called.into()), name)
    }

    /// A zone of the time zone database, or one in POSIX's notation (`UTC-2`, `<+03>-3`,
    /// `EST5EDT`).
    pub fn named(name: &str) -> Option<Zone> {
        if name.eq_ignore_ascii_case("utc") {
            return Some(Zone::utc());
        }
        if name.eq_ignore_ascii_case("etc/unknown") {
            return None;
        }
        if let Ok(rules) = TimeZone::get(name) {
            let proper = rules.iana_name().unwrap_or(name).to_owned();
            return Some(Zone::of(Rules::Varying(rules), &proper));
        }
        posix(&name.to_ascii_uppercase())
    }

    /// The zone with a constant offset in seconds east of UTC; None at a week or more.
    pub fn constant(seconds: i64) -> Option<Zone> {
        if seconds.abs() >= TOO_FAR {
            return None;
        }
        let clock = |sign| {
            let (hours, rest) = (seconds.abs() / 3600, seconds.abs() % 3600);
            let tail = match (rest / 60, rest % 60) {
                (0, 0) => String::new(),
                (minutes, 0) => format!(":{minutes:02}"),
                (minutes, seconds) => format!(":{minutes:02}:{seconds:02}"),
            };
            format!("{sign}{hours:02}{tail}")
        };
        // POSIX counts west of UTC.
        let (east, west) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
        let called = clock(east);
        Some(Zone::always(seconds, &format!("<{called}>{}", clock(west)), &called))
    }

    /// The meaning of a name in `AT TIME ZONE`: an abbreviation, else a zone's name.
    pub fn meant_by(name: &str, session: &Zone) -> Option<Abbreviation> {
        Zone::abbreviation(&name.to_ascii_lowercase(), session)
            .or_else(|| Zone::named(name).map(Abbreviation::Zone))
    }

    /// The meaning of an abbreviation in lower case: that of the session's zone, else the common
    /// one.
    pub(crate) fn abbreviation(lower: &str, session: &Zone) -> Option<Abbreviation> {
        let upper = lower.to_ascii_uppercase();
        match session.known(&upper) {
            Some(Known::Constant(seconds, summer)) => {
                return Some(Abbreviation::Constant { seconds, summer });
            }
            Some(Known::Varying) => return Some(Abbreviation::Varying(session.clone())),
            None => {}
        }
        if let Some((seconds, summer)) = abbreviations::constant(&upper) {
            return Some(Abbreviation::Constant { seconds, summer });
        }
        let zone = abbreviations::varying(&upper)?;
        Zone::named(zone).map(Abbreviation::Varying)
    }

    /// The zone's name as SHOW gives it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the zone has UTC's time always.
    pub(crate) fn is_utc(&self) -> bool {
        matches!(self.rules, Rules::Constant(0, _))
    }

    /// Seconds east of UTC at an instant.
    pub(crate) fn offset_at(&self, micros: i64) -> i64 {
        match &self.rules {
            Rules::Constant(seconds, _) => *seconds,
            Rules::Varying(rules) => i64::from(rules.to_offset(instant(micros)).seconds()),
        }
    }

    /// Seconds east of UTC at an instant, and the abbreviation.
    pub(crate) fn offset_and_name(&self, micros: i64) -> (i64, String) {
        match &self.rules {
            Rules::Constant(seconds, called) => (*seconds, called.to_string()),
            Rules::Varying(rules) => {
                let info = rules.to_offset_info(instant(micros));
                (i64::from(info.offset().seconds()), info.abbreviation().to_owned())
            }
        }
    }

    /// Seconds east of UTC at a local time. In a gap the offset before it holds; in a repeated hour
    /// the later offset does.
    pub fn offset_of_local(&self, local: i64) -> i64 {
        let rules = match &self.rules {
            Rules::Constant(seconds, _) => return *seconds,
            Rules::Varying(rules) => rules,
        };
        let civil = Civil::of(local);
        let later = (civil.year - 9998).max(0);
        let clamped = (civil.year - (later + CYCLE - 1) / CYCLE * CYCLE).max(-9998);
        let seconds = civil.micros / SECOND;
        let date = jiff::civil::DateTime::constant(
            clamped as i16,
            civil.month as i8,
            civil.day.min(month_days(clamped, civil.month)) as i8,
            (seconds / 3600) as i8,
            (seconds / 60 % 60) as i8,
            (seconds % 60) as i8,
            0,
        );
        let offset = match rules.to_ambiguous_zoned(date).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        };
        i64::from(offset.seconds())
    }

    fn known(&self, upper: &str) -> Option<Known> {
        let known = self.known.get_or_init(|| self.abbreviations());
        known.binary_search_by(|(name, _)| name.as_str().cmp(upper)).ok().map(|at| known[at].1)
    }

    fn abbreviations(&self) -> Vec<(String, Known)> {
        let mut known: Vec<(String, Known)> = Vec::new();
        self.each_period(|name, seconds, summer| {
            match known.binary_search_by(|(other, _)| other.as_str().cmp(name)) {
                Err(at) => known.insert(at, (name.to_owned(), Known::Constant(seconds, summer))),
                Ok(at) => match known[at].1 {
                    Known::Constant(other, _) if other != seconds => known[at].1 = Known::Varying,
                    _ => {}
                },
            }
        });
        known
    }

    /// Calls `tell` for each period of the zone with its abbreviation, its seconds east of UTC, and
    /// whether it is summer time. The last period comes first.
    fn each_period(&self, mut tell: impl FnMut(&str, i64, bool)) {
        let rules = match &self.rules {
            Rules::Constant(seconds, called) => return tell(called, *seconds, false),
            Rules::Varying(rules) => rules,
        };
        for period in rules.preceding(instant(SETTLED)) {
            tell(period.abbreviation(), i64::from(period.offset().seconds()), period.dst().is_dst());
        }
        let first = rules.to_offset_info(Timestamp::MIN);
        tell(first.abbreviation(), i64::from(first.offset().seconds()), first.dst().is_dst());
    }

    /// Whether its offset never changes.
    pub(crate) fn is_constant(&self) -> bool {
        let first = self.offset_at(i64::MIN);
        let mut constant = true;
        self.each_period(|_, seconds, _| constant &= seconds == first);
        constant
    }

    /// Seconds east of UTC that an abbreviation had in this zone at an instant: its last use until
    /// then, else its first use after it. The zone's offset where the zone never used it.
    pub fn offset_called(&self, name: &str, micros: i64) -> i64 {
        let rules = match &self.rules {
            Rules::Constant(seconds, _) => return *seconds,
            Rules::Varying(rules) => rules,
        };
        let at = instant(micros);
        let now = rules.to_offset_info(at);
        let same = |other: &str| other.eq_ignore_ascii_case(name);
        if same(now.abbreviation()) {
            return i64::from(now.offset().seconds());
        }
        let first = rules.to_offset_info(Timestamp::MIN);
        let before = rules.preceding(at).find(|period| same(period.abbreviation()));
        let before = before.map(|period| period.offset());
        let before = before.or_else(|| same(first.abbreviation()).then(|| first.offset()));
        let offset = before.or_else(|| {
            let mut later = rules.following(at).take_while(|period| period.timestamp() < instant(SETTLED));
            later.find(|period| same(period.abbreviation())).map(|period| period.offset())
        });
        i64::from(offset.unwrap_or(now.offset()).seconds())
    }

    /// As [`Zone::offset_called`], at a local time.
    pub fn offset_called_locally(&self, name: &str, local: i64) -> i64 {
        self.offset_called(name, local.saturating_sub(self.offset_of_local(local) * SECOND))
    }
}

/// The calendar repeats after this many years, weekdays included.
const CYCLE: i64 = 400;

fn instant(micros: i64) -> Timestamp {
    let last = Timestamp::MAX.as_microsecond() - EPOCH_MICROS;
    let mut micros = micros;
    if micros > last {
        // A zone's rules have no end: the same moment of an earlier cycle has the same offset.
        let cycle = days_of(2000 + CYCLE, 1, 1) * DAY;
        micros -= ((micros - last) / cycle + 1) * cycle;
    }
    Timestamp::from_microsecond(micros.saturating_add(EPOCH_MICROS)).unwrap_or(Timestamp::MIN)
}

/// The begin and end of summer time where the notation gives none: those of the United States.
const USUAL_SUMMER: &str = ",M3.2.0,M11.1.0";

/// The zone of a text in POSIX's notation, in upper case.
fn posix(text: &str) -> Option<Zone> {
    let (standard, rest) = designation(text)?;
    let (west, rest) = posix_offset(rest)?;
    if rest.is_empty() {
        return Some(Zone::always(-west, text, standard));
    }
    let (summer, rest) = designation(rest).filter(|(name, _)| !name.is_empty())?;
    let (summer_west, rest) =
        if rest.is_empty() || rest.starts_with(',') { (west - 3600, rest) } else { posix_offset(rest)? };
    let rule = if rest.is_empty() { USUAL_SUMMER } else { rest };
    let clock = |seconds: i64| {
        let sign = if seconds < 0 { "-" } else { "" };
        let seconds = seconds.abs();
        format!("{sign}{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    };
    let full = format!("<{}>{}<{}>{}{rule}", plain(standard), clock(west), plain(summer), clock(summer_west));
    TimeZone::posix(&full).ok().map(|rules| Zone::of(Rules::Varying(rules), text))
}

/// A zone's name as the library's reader of rules requires: letters, digits and signs, 3 to 30 of
/// them.
fn plain(name: &str) -> String {
    let mut name = name.replace(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-'), "-");
    name.truncate(30);
    while name.len() < 3 {
        name.push('-');
    }
    name
}

/// The name at the front of the notation, perhaps in angle brackets, and the rest.
fn designation(text: &str) -> Option<(&str, &str)> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>');
    }
    let end = text.find(|c: char| c.is_ascii_digit() || matches!(c, ',' | '-' | '+')).unwrap_or(text.len());
    Some(text.split_at(end))
}

/// The seconds of `[+-]hh[:mm[:ss]]` at the front of the notation, and the rest.
fn posix_offset(text: &str) -> Option<(i64, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = |text: &str, most: i64| {
        let length = text.bytes().take_while(u8::is_ascii_digit).count();
        let value: i64 = text.get(..length)?.parse().ok()?;
        (value <= most).then_some((value, length))
    };
    let (hours, length) = number(unsigned, 167)?;
    let (mut seconds, mut rest) = (hours * 3600, &unsigned[length..]);
    for (unit, most) in [(60, 59), (1, 60)] {
        let Some(behind) = rest.strip_prefix(':') else { break };
        let (value, length) = number(behind, most)?;
        (seconds, rest) = (seconds + value * unit, &behind[length..]);
    }
    Some((if text.starts_with('-') { -seconds } else { seconds }, rest))
}
