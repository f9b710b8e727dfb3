//! The crate of databases and sessions over the layers below, and the embedded API.
//!
//! [`database`] opens a folder and keeps the state that all sessions share. [`session`] runs the
//! statements of one client: the crate `query` compiles them, and `execution` runs their plans.
//! [`embedded`] is the interface for Rust callers.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![forbid(unsafe_code)]

pub mod activity;
mod clock;
pub mod database;
pub mod embedded;
mod log_text;
pub mod session;
mod shared;
mod units;

pub use values::{Datum, SqlError, SqlState, Type};

/// The stop points of this crate and of the crates below it, one list a crate: see
/// [`runtime::stop`].
#[must_use]
pub fn stop_points() -> [&'static [&'static str]; 4] {
    let [storage, txn] = txn::STOP_POINTS;
    [runtime::stop::OWN_POINTS, storage, txn, OWN_STOP_POINTS]
}

const OWN_STOP_POINTS: &[&str] = &[
    "sql.tree.freed",
    "sql.tree.freed_part",
    "sql.tree.listed",
    "sql.tree.made",
    "sql.tree.maintenance",
    "sql.vacuum.locked",
    "sql.vacuum.stepped",
];
