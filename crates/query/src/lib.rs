//! The query crate: from a statement's text to a plan.
//!
//! The stages: [`parse`] -> [`normalize`] -> [`bind`] against the catalog, which returns a
//! [`bound`] query -> [`planner`] -> an immutable [`plan`]. [`compile`] runs all of them.
//!
//! What must hold: nothing here reads or changes a stored row. A compiled statement is immutable,
//! so sessions can share it.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
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
