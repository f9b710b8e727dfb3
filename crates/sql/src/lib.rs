//! The sql room: everything between a statement's text and the transactional trees below.
//!
//! The way down: [`parse`] -> [`normalize`] -> [`bind`] against the [`catalog`] -> [`planner`] -> an immutable
//! [`plan`] -> [`exec`] pulls rows through registers of [`types::Datum`]. [`session`] and [`database`] tie it together
//! for the server, [`embedded`] for Rust callers. [`types`], [`key`], [`row`], [`expr`] and [`functions`] are the scalar
//! world: pure code that knows neither storage nor sessions.
#![forbid(unsafe_code)]

pub mod bind;
pub mod database;
pub mod embedded;
pub mod exec;
pub mod normalize;
pub mod parse;
pub mod plan;
pub mod planner;
pub mod session;
mod spill;

pub use values::{Datum, SqlError, SqlState, Type};
