//! Functions, operators, casts and aggregates: the registry, PostgreSQL's overload resolution, and
//! the functions themselves.
//!
//! The binder builds every call through [`operator`], [`function`], [`cast`] and similar functions,
//! which resolve the overload and insert the casts.
//!
//! What must hold:
//!
//! 1. No other module makes a call, so an argument always has the type that its function declares.
//!    A datum of another representation is a bug, reported as XX000.
//! 2. Names and operators are PostgreSQL's, and so are SQLSTATE and message of each error.
//! 3. A function whose work grows with its argument has safe points. One whose result may be much
//!    longer than its arguments asks for the memory first.
//! 4. The order of [`CastContext`] is its meaning: a cast is allowed in its own context and in the
//!    later ones.

use crate::expr::Expr;
use crate::function::{Aggregate, SetFunction, WindowFunction};
use values::error::SqlError;
use values::types::Type;

pub mod accumulator;
mod advisory;
mod aggregate;
mod arguments;
mod arrays;
mod build;
mod call;
mod casts;
mod catalog;
mod convert;
mod datetimes;
mod encodings;
mod format;
mod json;
mod json_object;
mod maths;
mod numbers;
mod operators;
mod patterns;
mod regexes;
mod registry;
mod resolve;
mod sets;
mod strings;
mod system;
mod text_building;

pub use accumulator::Accumulator;
pub use build::{distinct, equal_sides, function, in_list, null_if, operator, operator_any, record_field};
pub use casts::{can_cast, cast, common_type, interval_fields, unify};
pub use registry::{ARRAY_IN, name_by_oid, oid_by_name};

/// The context of a cast. Each context allows the casts of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Anywhere in an expression.
    Implicit,
    /// The assignment to a column.
    Assignment,
    /// `::` and CAST.
    Explicit,
}

/// The meaning of a name with its arguments.
#[derive(Debug)]
pub enum Bound {
    /// The call of a plain function.
    Scalar(Expr),
    /// An aggregate, also as a window function. The binder adds DISTINCT, ORDER BY, FILTER and
    /// OVER.
    Aggregate {
        /// The function.
        function: Aggregate,
        /// Its arguments, cast.
        arguments: Vec<Expr>,
    },
    /// A window function.
    Window {
        /// The function.
        function: WindowFunction,
        /// Its arguments, cast.
        arguments: Vec<Expr>,
        /// The result's type.
        type_: Type,
    },
    /// A set-returning function.
    Set {
        /// The function.
        function: SetFunction,
        /// Its arguments, cast.
        arguments: Vec<Expr>,
        /// Name and type of its columns. The name is the function's own unless the function has
        /// named columns.
        columns: Vec<(&'static str, Type)>,
    },
}

/// XX000: a function received a datum of another representation than its signature declares.
#[cold]
fn bad_argument(function: &str) -> SqlError {
    SqlError::internal(format!("function {function} was called with arguments of other types"))
}
