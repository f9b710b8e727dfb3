//! A run's report: as a table, Markdown or a page, and compared with another run's.
//!
//! What must hold: outputs read a [`Report`](crate::record::Report) and nothing else, so the stored
//! form reproduces all of them.

pub mod compare;
pub mod groups;
mod html;
mod runs;
#[cfg(test)]
pub(crate) mod samples;
pub mod sheets;
mod templates;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod turn;

pub use html::{Page, Part, html, markdown, pictures};
pub use runs::{Stored, runs};
pub use terminal::{sheet, table};
