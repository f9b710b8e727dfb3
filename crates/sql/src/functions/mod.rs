//! Functions, operators, casts and aggregates: the registry, PostgreSQL's overload resolution, and the functions
//! themselves. The binder builds every call through [`operator`], [`function`], [`cast`] and their kin, which resolve the
//! overload and insert the casts.

use crate::error::SqlError;
use crate::expr::{EvalContext, Expr};
use crate::plan::{SetFunction, WindowFunction};
use crate::types::{Datum, Type};

pub mod aggregate;

pub use aggregate::{Accumulator, Aggregate};

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

/// A function, or the function of an operator.
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

/// Resolves `name(arguments)`; `name` is lower case and unqualified (pg_catalog). `variadic`: the last argument is an
/// array given with VARIADIC. 42883 with PostgreSQL's hint when there is none, 42725 when several fit equally well.
pub fn function(_name: &str, _arguments: Vec<Expr>, _variadic: bool) -> Result<Bound, SqlError> {
    todo!()
}

/// Resolves `left op right`, or `op right` when left is None.
pub fn operator(_name: &str, _left: Option<Expr>, _right: Expr) -> Result<Expr, SqlError> {
    todo!()
}

/// Resolves `left op ANY (right)` / ALL over an array.
pub fn operator_any(_name: &str, _left: Expr, _right: Expr, _all: bool) -> Result<Expr, SqlError> {
    todo!()
}

/// Resolves `left IN (list)`: one comparison over a list of one common type, else ORed comparisons.
pub fn in_list(_left: Expr, _list: Vec<Expr>, _negated: bool) -> Result<Expr, SqlError> {
    todo!()
}

/// IS [NOT] DISTINCT FROM.
pub fn distinct(_left: Expr, _right: Expr, _negated: bool) -> Result<Expr, SqlError> {
    todo!()
}

/// NULLIF(left, right).
pub fn null_if(_left: Expr, _right: Expr) -> Result<Expr, SqlError> {
    todo!()
}

/// The type of CASE's results, COALESCE's arguments, a UNION's column, VALUES, ARRAY[] ...; `context` names it in the
/// message ("CASE", "UNION"). UNKNOWN alone becomes text.
pub fn common_type(_context: &str, _types: &[Type]) -> Result<Type, SqlError> {
    todo!()
}

/// Casts all to their common type.
pub fn unify(_context: &str, _exprs: Vec<Expr>) -> Result<(Vec<Expr>, Type), SqlError> {
    todo!()
}

/// Casts to a type with its modifier, or 42846 "cannot cast type a to b" (42804 for an assignment without a cast is the
/// caller's message: it knows the column; see [`can_cast`]). An UNKNOWN literal is read by the type's input at once where
/// the session's settings don't matter; an UNKNOWN parameter takes the type, to be collected by walking the result.
pub fn cast(_expr: Expr, _to: Type, _context: CastContext) -> Result<Expr, SqlError> {
    todo!()
}

/// Whether there is a cast in this context.
pub fn can_cast(_from: Type, _to: Type, _context: CastContext) -> bool {
    todo!()
}

/// The name of the function with this OID.
pub fn name_by_oid(_oid: u32) -> Option<&'static str> {
    None
}

/// The OID of the function of this name.
pub fn oid_by_name(_name: &str) -> Option<u32> {
    None
}
