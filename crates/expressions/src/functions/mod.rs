//! Functions, operators, casts and aggregates: the registry, PostgreSQL's overload resolution, and
//! the functions themselves. The binder builds every call through [`operator`], [`function`],
//! [`cast`] and the like, which resolve the overload and insert the casts.

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

/// The context of a cast. Each allows what the ones before it allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Anywhere in an expression.
    Implicit,
    /// Storing into a column.
    Assignment,
    /// `::` and CAST.
    Explicit,
}

/// The outcome of resolving a name with its arguments.
#[derive(Debug)]
pub enum Bound {
    /// A plain function: the call.
    Scalar(Expr),
    /// An aggregate (or an aggregate as window function): binder adds DISTINCT, ORDER BY, FILTER,
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
        /// Name (the function's own unless it has named columns) and type of its columns.
        columns: Vec<(&'static str, Type)>,
    },
}

/// A function met a datum of another representation than its signature says.
#[cold]
fn bad_argument(function: &str) -> SqlError {
    SqlError::internal(format!("function {function} was called with arguments of other types"))
}
