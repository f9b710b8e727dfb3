//! The sql room: databases and sessions over the floors below, and the embedded API.
//!
//! [`database`] opens a folder and keeps what all sessions share; [`session`] runs the statements
//! of one client, whose plans the query room compiles and the executor runs; [`embedded`] is the
//! door for Rust callers.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![forbid(unsafe_code)]

pub mod activity;
mod clock;
pub mod database;
pub mod embedded;
pub mod session;
mod shared;
mod units;

pub use values::{Datum, SqlError, SqlState, Type};
