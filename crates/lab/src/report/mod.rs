//! A run's report: as a table, Markdown or a page, and held against another run's.
//!
//! What must hold: outputs read a [`Report`](crate::record::Report) and nothing else; whatever they show can be had again
//! from the stored form.

pub mod compare;
pub mod groups;
mod html;
mod markdown;
mod runs;
#[cfg(test)]
pub(crate) mod samples;
pub mod sheets;
mod templates;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod turn;

pub use html::{html, pictures};
pub use markdown::markdown;
pub use runs::{Stored, runs};
pub use terminal::table;
