//! Values: types and their registry, values with their text and binary forms, rows, keys, and the
//! errors that clients see.
//!
//! This crate knows no expression, no catalog and no session. Input and output get what they need
//! of a session through [`environment::Environment`]. Long work over one value yields at the safe
//! points of [`work`].
#![forbid(unsafe_code)]

pub mod environment;
pub mod error;
pub mod identifier;
mod interrupted;
pub mod key;
pub mod memory;
pub mod row;
pub mod types;
pub mod work;

pub use error::{SqlError, SqlState};
pub use types::{Datum, Type};
