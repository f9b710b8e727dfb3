//! The description of a function: its signature, its code and its volatility.
//!
//! Expressions hold functions; the lists in [`crate::functions`] define them. Aggregates, window
//! functions and set-returning functions are described here as well; the executor runs the latter
//! two itself.
//!
//! What must hold:
//!
//! 1. The code of an immutable function reads nothing of its context but the arena. The compiler
//!    folds its calls without a session, and sessions share the plan.
//! 2. A stable function gives one result within a statement. A function with an effect is volatile.
//! 3. `fast` computes exactly what `code` does, errors included. The evaluator uses either.
//! 4. `comparison` names the order of `values::types::compare`. The planner makes ranges of an
//!    index from it, without a look at `code`.
//! 5. `matching` names the pattern of the second argument. The planner makes ranges of an index
//!    from its prefix. The code is that of the kind's operator.
//! 6. A strict function sees no NULL, and each argument has the representation of its declared
//!    type.

use std::cmp::Ordering;

use values::error::SqlError;
use values::types::{Datum, Type};

use crate::context::EvalContext;
use crate::prefix::Matching;

/// A function's code. The arguments have the declared types; those of a strict function are not
/// NULL.
pub type Code = for<'a> fn(&mut EvalContext<'a, '_>, &[Datum<'a>]) -> Result<Datum<'a>, SqlError>;

/// How much a function's result may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Volatility {
    /// Never: the result depends on the arguments alone.
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
    /// Whether the comparison holds for two values in this order.
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

    /// The comparison with exchanged sides.
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

/// An operation of two arguments that the evaluator does in place, without a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fast {
    /// A comparison by [`values::types::compare()`].
    Compare(Comparison),
    /// Integer addition.
    Add,
    /// Integer subtraction.
    Subtract,
}

/// A function, or the function of an operator.
#[derive(Clone, Copy)]
pub struct Function {
    /// The name in `pg_proc` ("int4pl"), or the common name of functions called by name.
    pub name: &'static str,
    /// The operator that the function implements ("+"), or "".
    pub operator: &'static str,
    /// Argument types (OIDs); the last repeats when `variadic`.
    pub arguments: &'static [u32],
    /// Result type (OID).
    pub result: u32,
    /// The result is NULL for a NULL argument, without a call.
    pub strict: bool,
    /// The function takes any number of the last argument.
    pub variadic: bool,
    /// How much the result may change.
    pub volatility: Volatility,
    /// The comparison that the function is; None for another function.
    pub comparison: Option<Comparison>,
    /// The kind of pattern that the function compares a text with; None for another function.
    pub matching: Option<Matching>,
    /// The operation that the evaluator does in place.
    pub fast: Option<Fast>,
    /// The code.
    pub code: Code,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// An aggregate function, bound to its argument types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggregate {
    /// The function.
    pub kind: AggregateKind,
    /// The type of the first argument; VOID for count(*).
    pub argument: Type,
    /// The result's type.
    pub result: Type,
}

/// The aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    /// count(*)
    CountRows,
    /// count(x)
    Count,
    /// sum
    Sum,
    /// avg
    Avg,
    /// min
    Min,
    /// max
    Max,
    /// bool_and, every
    BoolAnd,
    /// bool_or
    BoolOr,
    /// string_agg
    StringAgg,
    /// array_agg
    ArrayAgg,
    /// stddev, stddev_samp
    StddevSamp,
    /// stddev_pop
    StddevPop,
    /// variance, var_samp
    VarSamp,
    /// var_pop
    VarPop,
    /// bit_and
    BitAnd,
    /// bit_or
    BitOr,
    /// bit_xor
    BitXor,
}

impl AggregateKind {
    /// The function's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            AggregateKind::CountRows | AggregateKind::Count => "count",
            AggregateKind::Sum => "sum",
            AggregateKind::Avg => "avg",
            AggregateKind::Min => "min",
            AggregateKind::Max => "max",
            AggregateKind::BoolAnd => "bool_and",
            AggregateKind::BoolOr => "bool_or",
            AggregateKind::StringAgg => "string_agg",
            AggregateKind::ArrayAgg => "array_agg",
            AggregateKind::StddevSamp => "stddev_samp",
            AggregateKind::StddevPop => "stddev_pop",
            AggregateKind::VarSamp => "var_samp",
            AggregateKind::VarPop => "var_pop",
            AggregateKind::BitAnd => "bit_and",
            AggregateKind::BitOr => "bit_or",
            AggregateKind::BitXor => "bit_xor",
        }
    }
}

impl Aggregate {
    /// Whether the aggregate skips rows whose first argument is NULL. The accumulator does so
    /// itself.
    pub fn strict(&self) -> bool {
        !matches!(self.kind, AggregateKind::CountRows | AggregateKind::ArrayAgg)
    }
}

/// The functions of a Window node. It implements the default frame only: RANGE UNBOUNDED PRECEDING
/// to CURRENT ROW with ORDER BY, the whole partition without.
#[derive(Debug, Clone)]
pub enum WindowFunction {
    /// row_number()
    RowNumber,
    /// rank()
    Rank,
    /// dense_rank()
    DenseRank,
    /// percent_rank()
    PercentRank,
    /// cume_dist()
    CumeDist,
    /// ntile(buckets)
    Ntile,
    /// nth_value(value, number)
    NthValue,
    /// lag(value [, offset [, default]])
    Lag,
    /// lead(value [, offset [, default]])
    Lead,
    /// first_value(value)
    FirstValue,
    /// last_value(value)
    LastValue,
    /// An aggregate used as a window function.
    Aggregate(Aggregate),
}

impl WindowFunction {
    /// The function's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            WindowFunction::RowNumber => "row_number",
            WindowFunction::Rank => "rank",
            WindowFunction::DenseRank => "dense_rank",
            WindowFunction::PercentRank => "percent_rank",
            WindowFunction::CumeDist => "cume_dist",
            WindowFunction::Ntile => "ntile",
            WindowFunction::NthValue => "nth_value",
            WindowFunction::Lag => "lag",
            WindowFunction::Lead => "lead",
            WindowFunction::FirstValue => "first_value",
            WindowFunction::LastValue => "last_value",
            WindowFunction::Aggregate(aggregate) => aggregate.kind.name(),
        }
    }
}

/// Set-returning functions that the executor runs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetFunction {
    /// generate_series over int4.
    SeriesInt4,
    /// generate_series over int8.
    SeriesInt8,
    /// generate_series over numeric.
    SeriesNumeric,
    /// generate_series over timestamps with an interval step.
    SeriesTimestamp,
    /// generate_series over timestamptz.
    SeriesTimestamptz,
    /// unnest(anyarray), one or more arrays side by side.
    Unnest,
    /// The elements of an array, for regexp_split_to_table and string_to_table.
    ArrayElements,
    /// A plain function in FROM: its value is the only row.
    Once,
}

/// A strict, immutable function called by name.
pub(crate) const fn func(name: &'static str, arguments: &'static [u32], result: u32, code: Code) -> Function {
    Function {
        name,
        operator: "",
        arguments,
        result,
        strict: true,
        variadic: false,
        volatility: Volatility::Immutable,
        comparison: None,
        matching: None,
        fast: None,
        code,
    }
}

impl Function {
    /// The function of an operator.
    pub(crate) const fn op(mut self, operator: &'static str) -> Function {
        self.operator = operator;
        self
    }

    /// The function of a comparison of a text with a pattern.
    pub(crate) const fn matching(mut self, matching: Matching) -> Function {
        self.matching = Some(matching);
        self
    }

    /// A function that is called with NULLs.
    pub(crate) const fn lax(mut self) -> Function {
        self.strict = false;
        self
    }

    /// A function whose last argument repeats.
    pub(crate) const fn any_number(mut self) -> Function {
        self.variadic = true;
        self
    }

    /// A function whose result holds for a statement.
    pub(crate) const fn stable(mut self) -> Function {
        self.volatility = Volatility::Stable;
        self
    }

    /// A function whose result holds for a call.
    pub(crate) const fn volatile(mut self) -> Function {
        self.volatility = Volatility::Volatile;
        self
    }
}
