//! Binding: parse trees to typed relational and scalar expressions.

mod query;

pub use query::*;
