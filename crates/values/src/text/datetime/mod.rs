//! The text form of dates, times and timestamps.
//!
//! Reading takes three steps: `split` cuts a text into fields, `decode` gives the fields a meaning,
//! and `input` makes the type's own value of them. Intervals share the first step and the numbers
//! of `digits`.

mod decode;
pub(super) mod digits;
mod input;
mod output;
pub(super) mod split;
#[cfg(test)]
mod tests;
pub(super) mod words;

pub(super) use input::{parse_date, parse_time, parse_timestamp, parse_timestamptz};
pub use output::write_timestamptz;
pub(super) use output::{write_date, write_fraction, write_time, write_timestamp};

/// The reason why a text is no date, time or interval.
#[derive(Debug)]
pub(super) enum Problem {
    /// The form of the text.
    Syntax,
    /// The value of a field, as in 30 February.
    Value,
    /// A month or day is out of range; another DateStyle may read it.
    Order,
    /// The displacement of a zone.
    Displacement,
    /// An unknown zone.
    Zone(String),
    /// The value is outside the type's range.
    Range,
}

/// The seconds east of UTC of `+hh[:mm[:ss]]`. None when the text is no offset; `Some(None)` when
/// the offset is out of range.
pub fn offset(text: &str) -> Option<Option<i64>> {
    match digits::offset(text) {
        Ok(seconds) => Some(Some(seconds)),
        Err(Problem::Displacement) => Some(None),
        Err(_) => None,
    }
}
