//! The text form of intervals: [`Interval::parse`] and [`Interval::write`].
//!
//! [`Interval::parse`]: crate::types::Interval::parse
//! [`Interval::write`]: crate::types::Interval::write

mod input;
mod iso;
mod output;
mod sum;
#[cfg(test)]
mod tests;
