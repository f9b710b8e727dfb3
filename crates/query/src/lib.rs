//! The query room: what a statement means and how to run it. Parsing, normalising, binding,
//! planning.
//!
//! The way down: [`parse`] -> [`normalize`] -> [`bind`] against the catalog, which gives a
//! [`bound`] query -> [`planner`] -> an immutable [`plan`]. [`compile`] goes all of it.
#![forbid(unsafe_code)]

pub mod bind;
mod bound;
pub mod compile;
pub mod explain;
mod fold;
pub mod normalize;
pub mod parse;
pub mod plan;
mod planner;
mod registers;
pub mod request;
