//! The crate of expressions: calculations from values. It holds typed expression trees and their
//! evaluation, and the functions, operators, casts and aggregates with PostgreSQL's overload
//! resolution.
//!
//! It knows no catalog and no plan. A [`function::Function`] is a signature with its code. [`expr`]
//! holds trees of calls and evaluates them over registers. [`functions`] lists all functions and
//! builds calls with the casts that they need.
#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![forbid(unsafe_code)]

pub mod context;
pub mod expr;
pub mod function;
pub mod functions;
pub mod lists;
pub mod prefix;
