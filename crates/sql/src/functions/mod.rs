//! Functions, operators, casts and aggregates: the registry, PostgreSQL's overload resolution, and the functions
//! themselves. The binder builds every call through [`operator`], [`function`], [`cast`] and their kin, which resolve the
//! overload and insert the casts.

use std::cmp::Ordering;

use crate::expr::{EvalContext, Expr};
use crate::plan::{SetFunction, WindowFunction};
use values::error::SqlError;
use values::types::{Datum, Type};

mod advisory;
pub mod aggregate;
mod arguments;
mod arrays;
mod build;
mod casts;
mod catalog;
mod convert;
mod datetimes;
mod encodings;
mod format;
mod json;
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

pub use aggregate::{Accumulator, Aggregate, AggregateKind};
pub use build::{distinct, equal_sides, function, in_list, null_if, operator, operator_any, record_field};
pub use casts::{can_cast, cast, cast_volatility, common_type, interval_fields, unify};
pub(crate) use operators::{compare_records, dissimilar, incomparable, unequal_widths};
pub use registry::{ARRAY_IN, name_by_oid, oid_by_name};

/// A function's code. Arguments are of the declared types; of a strict function none is NULL.
pub type Code = for<'a> fn(&mut EvalContext<'a, '_>, &[Datum<'a>]) -> Result<Datum<'a>, SqlError>;

/// How much a function's result may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// Never: depends on the arguments alone.
    Immutable,
    /// Not within a statement.
    Stable,
    /// At every call.
    Volatile,
}

/// The comparisons an ordered index understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

impl Comparison {
    /// Whether it holds for sides in this order.
    #[inline]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterEqual => order.is_ge(),
        }
    }

    /// The comparison with its sides exchanged.
    pub fn commuted(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessEqual => Comparison::GreaterEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterEqual => Comparison::LessEqual,
            same => same,
        }
    }
}

/// What the evaluator does itself for two arguments, without a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fast {
    /// A comparison by [`values::types::compare`].
    Compare(Comparison),
    /// Integer addition.
    Add,
    /// Integer subtraction.
    Subtract,
}

/// A function, or the function of an operator.
#[derive(Clone, Copy)]
pub struct Function {
    /// Its name in `pg_proc` ("int4pl"; the common name for functions called by name).
    pub name: &'static str,
    /// The operator it implements ("+"), or "".
    pub operator: &'static str,
    /// Argument types (OIDs); the last repeats when `variadic`.
    pub arguments: &'static [u32],
    /// Result type (OID).
    pub result: u32,
    /// NULL for a NULL argument, without a call.
    pub strict: bool,
    /// Takes any number of the last argument.
    pub variadic: bool,
    /// How much its result may change.
    pub volatility: Volatility,
    /// The comparison it is, if it is one.
    pub comparison: Option<Comparison>,
    /// What the evaluator does itself.
    pub fast: Option<Fast>,
    /// The code.
    pub code: Code,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// In which context a cast stands: each allows what the ones before it allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Anywhere in an expression.
    Implicit,
    /// Storing into a column.
    Assignment,
    /// `::` and CAST.
    Explicit,
}

/// What a name and arguments turned out to be.
#[derive(Debug)]
pub enum Bound {
    /// A plain function: the call.
    Scalar(Expr),
    /// An aggregate (or an aggregate as window function): binder adds DISTINCT, ORDER BY, FILTER, OVER.
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

/// A strict, immutable function called by name.
const fn func(name: &'static str, arguments: &'static [u32], result: u32, code: Code) -> Function {
    Function {
        name,
        operator: "",
        arguments,
        result,
        strict: true,
        variadic: false,
        volatility: Volatility::Immutable,
        comparison: None,
        fast: None,
        code,
    }
}

impl Function {
    /// It is the function of an operator.
    const fn op(mut self, operator: &'static str) -> Function {
        self.operator = operator;
        self
    }

    /// It is called with NULLs.
    const fn lax(mut self) -> Function {
        self.strict = false;
        self
    }

    /// Its last argument repeats.
    const fn any_number(mut self) -> Function {
        self.variadic = true;
        self
    }

    /// Its result holds for a statement.
    const fn stable(mut self) -> Function {
        self.volatility = Volatility::Stable;
        self
    }

    /// Its result holds for a call.
    const fn volatile(mut self) -> Function {
        self.volatility = Volatility::Volatile;
        self
    }
}

/// A function met a datum of another representation than its signature says.
#[cold]
fn bad_argument(function: &str) -> SqlError {
    SqlError::internal(format!("function {function} was called with arguments of other types"))
}
