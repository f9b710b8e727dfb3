//! The crate of values: types and their registry, values with their text and binary forms, rows,
//! keys, and the errors that clients see.
//!
//! It knows no expression, no catalog and no session. Input and output reach the session through
//! [`environment::Environment`]. Long work over one value yields at the safe points of [`work`].
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![forbid(unsafe_code)]

pub mod binary;
pub mod encoding;
pub mod environment;
pub mod error;
pub mod identifier;
mod interrupted;
pub mod key;
pub mod key_table;
pub mod memory;
pub mod row;
pub mod text;
pub mod types;
pub mod work;

pub use error::{SqlError, SqlState};
pub use types::{Datum, Type};
