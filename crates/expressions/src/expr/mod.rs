//! Scalar expressions: a typed, immutable tree, bound to function pointers, evaluated over
//! registers.
//!
//! Invariants:
//!
//! 1. [`crate::functions`] builds every expression: it resolves overloads and inserts casts. So
//!    every call's arguments have exactly the types that its function takes.
//! 2. Sessions share an expression, and it never changes.
//! 3. Evaluation allocates only in the context's arena.

use std::sync::Arc;

use crate::function::{Function, Volatility};
use values::types::{self, Type, Value, oid};

mod eval;
mod shared;
mod show;
mod walk;

pub use eval::{convert, output};
pub use shared::{Shared, Sharing};
pub use show::Show;

/// An expression.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A constant.
    Const(Value, Type),
    /// A register.
    Column {
        /// Its number.
        register: u32,
        /// Its type.
        type_: Type,
    },
    /// A parameter.
    Param {
        /// From 0: `$1` is 0.
        index: u32,
        /// Its type; UNKNOWN until [`crate::functions::cast`] gives it one.
        type_: Type,
    },
    /// An operand of the nearest [`Shared`] around it.
    Operand {
        /// Its place among the operands.
        index: u32,
        /// Its type.
        type_: Type,
    },
    /// Operands that several parts of an expression read.
    Shared(Box<Shared>),
    /// A function or operator call.
    Call(Box<Call>),
    /// AND of two or more, three-valued.
    And(Vec<Expr>),
    /// OR of two or more, three-valued.
    Or(Vec<Expr>),
    /// NOT.
    Not(Box<Expr>),
    /// CASE; the simple form is bound to comparisons with one operand.
    Case(Box<Case>),
    /// COALESCE.
    Coalesce(Vec<Expr>, Type),
    /// NULLIF: the first argument unless the `=` call over both is true.
    NullIf(Box<Call>),
    /// GREATEST or LEAST.
    Extreme(Box<Extreme>),
    /// A conversion.
    Cast(Box<Cast>),
    /// `IS [NOT]` NULL; over a record it asks all its fields.
    NullTest {
        /// The tested expression.
        input: Box<Expr>,
        /// IS NOT NULL.
        negated: bool,
    },
    /// `IS [NOT]` TRUE, FALSE, UNKNOWN.
    BoolTest {
        /// The tested expression.
        input: Box<Expr>,
        /// The value it should have; None is UNKNOWN.
        expected: Option<bool>,
        /// IS NOT.
        negated: bool,
    },
    /// `IS [NOT]` DISTINCT FROM, by an `=` call over both.
    Distinct {
        /// The equality.
        equal: Box<Call>,
        /// IS NOT DISTINCT FROM.
        negated: bool,
    },
    /// `left op ANY (array)`, `left op ALL (array)`, and IN lists of one type.
    Quantified(Box<Quantified>),
    /// ARRAY[...].
    Array {
        /// The elements, all of the element type (or arrays, for a multidimensional one).
        elements: Vec<Expr>,
        /// The array's type.
        type_: Type,
    },
    /// ROW(...), or the row of a name in FROM.
    Row {
        /// The fields.
        fields: Vec<Expr>,
        /// Their names; those of ROW(...) are f1, f2 and so on.
        names: Option<Arc<[String]>>,
    },
    /// `array[index]`; NULL outside its bounds.
    Subscript {
        /// The array.
        array: Box<Expr>,
        /// One int4 for each dimension.
        indexes: Vec<Expr>,
        /// The element's type.
        type_: Type,
    },
    /// A field of a row value.
    Field {
        /// The record.
        record: Box<Expr>,
        /// From 0.
        index: u32,
        /// The field's type.
        type_: Type,
    },
}

/// A call of a function or operator.
#[derive(Clone, Debug)]
pub struct Call {
    /// The function.
    pub function: &'static Function,
    /// Its arguments, of exactly the function's types.
    pub arguments: Vec<Expr>,
    /// The result's type (polymorphic functions resolved).
    pub type_: Type,
}

/// CASE WHEN ... THEN ... ELSE ... END.
#[derive(Clone, Debug)]
pub struct Case {
    /// Conditions and results, in order.
    pub branches: Vec<(Expr, Expr)>,
    /// ELSE; NULL when there is none.
    pub otherwise: Expr,
    /// The result's type.
    pub type_: Type,
}

/// GREATEST and LEAST: NULLs are skipped.
#[derive(Clone, Debug)]
pub struct Extreme {
    /// GREATEST.
    pub greatest: bool,
    /// The arguments, all of one type.
    pub arguments: Vec<Expr>,
    /// That type.
    pub type_: Type,
}

/// A conversion from one type to another.
#[derive(Clone, Debug)]
pub struct Cast {
    /// The converted expression.
    pub input: Expr,
    /// How.
    pub path: CastPath,
    /// To what.
    pub type_: Type,
    /// By `::` or CAST, where too long text is cut silently.
    pub explicit: bool,
}

impl Cast {
    /// How much the cast's result may change.
    pub fn volatility(&self) -> Volatility {
        let stable = |ty: u32| {
            let base = types::element_of(ty).unwrap_or(ty);
            matches!(base, oid::TIMESTAMPTZ | oid::TIMESTAMP | oid::DATE | oid::TIME)
                || oid::REG_TYPES.contains(&base)
        };
        // These are written as the session has set it.
        let written = |ty: u32| {
            let base = types::element_of(ty).unwrap_or(ty);
            stable(ty) || matches!(base, oid::INTERVAL | oid::BYTEA | oid::FLOAT4 | oid::FLOAT8 | oid::RECORD)
        };
        match &self.path {
            CastPath::Input
                if stable(self.type_.oid)
                    || types::element_of(self.type_.oid).unwrap_or(self.type_.oid) == oid::INTERVAL =>
            {
                Volatility::Stable
            }
            CastPath::Output if written(self.input.type_().oid) => Volatility::Stable,
            CastPath::Function(function) => function.volatility,
            CastPath::Elements(_) if stable(self.type_.oid) || stable(self.input.type_().oid) => {
                Volatility::Stable
            }
            _ => Volatility::Immutable,
        }
    }
}

/// How a conversion is done.
#[derive(Clone, Debug)]
pub enum CastPath {
    /// The same representation under another type.
    Relabel,
    /// By a function of (value), or (value, modifier int4, explicit bool).
    Function(&'static Function),
    /// By the target's text input.
    Input,
    /// By the source's text output.
    Output,
    /// By applying the type's length or precision alone.
    Length,
    /// Element by element.
    Elements(Box<CastPath>),
}

/// A comparison with every element of an array.
#[derive(Clone, Debug)]
pub struct Quantified {
    /// The comparison function.
    pub function: &'static Function,
    /// Its left argument.
    pub left: Expr,
    /// The source of its right argument.
    pub right: QuantifiedOver,
    /// ALL instead of ANY.
    pub all: bool,
}

/// The values over which a quantified comparison goes.
#[derive(Clone, Debug)]
pub enum QuantifiedOver {
    /// The elements of an array value.
    Array(Expr),
    /// The expressions of an IN list.
    List(Vec<Expr>),
}

/// The value that decides an AND (false) or an OR (true) at once.
#[derive(Clone, Copy)]
struct BoolOperand {
    decisive: bool,
}

impl Expr {
    /// A constant of a type.
    pub fn constant(value: Value, type_: Type) -> Expr {
        Expr::Const(value, type_)
    }

    /// A NULL of a type.
    pub fn null(type_: Type) -> Expr {
        Expr::Const(Value::Null, type_)
    }

    /// A literal whose type is still open.
    pub fn unknown(text: &str) -> Expr {
        Expr::Const(Value::Text(text.into()), Type::UNKNOWN)
    }

    /// A register.
    pub fn column(register: u32, type_: Type) -> Expr {
        Expr::Column { register, type_ }
    }

    /// A boolean constant.
    pub fn boolean(value: bool) -> Expr {
        Expr::Const(Value::Bool(value), Type::BOOL)
    }

    /// AND of any number of conditions; none is true.
    pub fn and(mut conditions: Vec<Expr>) -> Expr {
        match conditions.len() {
            0 => Expr::boolean(true),
            1 => conditions.remove(0),
            _ => Expr::And(conditions),
        }
    }

    /// The type of its value.
    pub fn type_(&self) -> Type {
        match self {
            Expr::Const(_, type_)
            | Expr::Column { type_, .. }
            | Expr::Param { type_, .. }
            | Expr::Operand { type_, .. }
            | Expr::Coalesce(_, type_)
            | Expr::Array { type_, .. }
            | Expr::Subscript { type_, .. }
            | Expr::Field { type_, .. } => *type_,
            Expr::Shared(shared) => shared.body.type_(),
            Expr::Call(call) => call.type_,
            Expr::Case(case) => case.type_,
            Expr::NullIf(call) => call.arguments[0].type_(),
            Expr::Extreme(extreme) => extreme.type_,
            Expr::Cast(cast) => cast.type_,
            Expr::Row { .. } => Type::RECORD,
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::NullTest { .. }
            | Expr::BoolTest { .. }
            | Expr::Distinct { .. }
            | Expr::Quantified(_) => Type::BOOL,
        }
    }

    /// The constant, if the expression is one.
    pub fn as_const(&self) -> Option<&Value> {
        match self {
            Expr::Const(value, _) => Some(value),
            _ => None,
        }
    }

    /// Operator, left side and right side, if the expression is a comparison by the type's own
    /// order (`=`, `<`, `<=`, `>`, `>=`). An index can serve such a comparison. The operator's name
    /// is `function.operator`.
    pub fn as_comparison(&self) -> Option<(crate::function::Comparison, &Expr, &Expr)> {
        match self {
            Expr::Call(call) => {
                let comparison = call.function.comparison?;
                let [left, right] = call.arguments.as_slice() else { return None };
                Some((comparison, left, right))
            }
            _ => None,
        }
    }
}
