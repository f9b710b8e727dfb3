//! Scalar expressions: a typed, immutable tree, bound to function pointers and evaluated over
//! registers.
//!
//! What must hold:
//!
//! - [`crate::functions`] builds expressions: it resolves overloads and inserts casts. So the
//!   arguments of every call have exactly the types its function takes.
//! - Sessions share expressions, which never change.
//! - Evaluation allocates only in the context's arena.

use std::sync::Arc;

use crate::function::{Function, Volatility};
use crate::prefix::Matching;
use values::types::{self, Type, Value, oid};

mod eval;
mod quantified;
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
        /// The parameter's type; UNKNOWN until [`crate::functions::cast`] gives it one.
        type_: Type,
    },
    /// An operand of the nearest [`Shared`] around it.
    Operand {
        /// The operand's index.
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
    /// CASE. The binder turns the simple form into comparisons with one operand.
    Case(Box<Case>),
    /// COALESCE.
    Coalesce(Vec<Expr>, Type),
    /// NULLIF: the first argument, or NULL where the `=` call over both is true.
    NullIf(Box<Call>),
    /// GREATEST or LEAST.
    Extreme(Box<Extreme>),
    /// A conversion.
    Cast(Box<Cast>),
    /// `IS [NOT]` NULL. Over a record it tests all fields.
    NullTest {
        /// The tested value.
        input: Box<Expr>,
        /// IS NOT NULL.
        negated: bool,
    },
    /// `IS [NOT]` TRUE, FALSE, UNKNOWN.
    BoolTest {
        /// The tested value.
        input: Box<Expr>,
        /// The expected value; None is UNKNOWN.
        expected: Option<bool>,
        /// IS NOT.
        negated: bool,
    },
    /// `IS [NOT]` DISTINCT FROM, by an `=` call over both.
    Distinct {
        /// The `=` call.
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
        /// The fields' names; None for ROW(...), whose fields are f1, f2 and so on.
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
        /// The field's index, from 0.
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
    /// The result's type, with polymorphic types resolved.
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

/// GREATEST or LEAST, which skip NULLs.
#[derive(Clone, Debug)]
pub struct Extreme {
    /// GREATEST instead of LEAST.
    pub greatest: bool,
    /// The arguments, all of one type.
    pub arguments: Vec<Expr>,
    /// The type of the arguments and the result.
    pub type_: Type,
}

/// A conversion from one type to another.
#[derive(Clone, Debug)]
pub struct Cast {
    /// The value to convert.
    pub input: Expr,
    /// The method of the conversion.
    pub path: CastPath,
    /// The target type.
    pub type_: Type,
    /// The cast is `::` or CAST, which cut text silently.
    pub explicit: bool,
}

impl Cast {
    /// The volatility of the cast's result.
    pub fn volatility(&self) -> Volatility {
        self.path.volatility(self.input.type_().oid, self.type_.oid)
    }
}

/// The method of a conversion.
#[derive(Clone, Debug)]
pub enum CastPath {
    /// None: the representation stays, under another type.
    Relabel,
    /// A function of (value), or of (value, modifier int4, explicit bool).
    Function(&'static Function),
    /// The target's text input.
    Input,
    /// The source's text output.
    Output,
    /// The target's length or precision, applied to the value.
    Length,
    /// A conversion of each element.
    Elements(Box<CastPath>),
}

impl CastPath {
    /// The volatility of a conversion between two types.
    fn volatility(&self, from: u32, to: u32) -> Volatility {
        let base = |ty: u32| types::element_of(ty).unwrap_or(ty);
        let stable = |ty: u32| {
            matches!(base(ty), oid::TIMESTAMPTZ | oid::TIMESTAMP | oid::DATE | oid::TIME)
                || oid::REG_TYPES.contains(&base(ty))
        };
        // The text of these types depends on the session's settings.
        let written = |ty: u32| {
            stable(ty)
                || matches!(base(ty), oid::INTERVAL | oid::BYTEA | oid::FLOAT4 | oid::FLOAT8 | oid::RECORD)
        };
        match self {
            CastPath::Input if stable(to) || base(to) == oid::INTERVAL => Volatility::Stable,
            CastPath::Output if written(from) => Volatility::Stable,
            CastPath::Function(function) => function.volatility,
            CastPath::Elements(path) => path.volatility(base(from), base(to)),
            _ => Volatility::Immutable,
        }
    }
}

/// A comparison with every element of an array.
#[derive(Clone, Debug)]
pub struct Quantified {
    /// The comparison function.
    pub function: &'static Function,
    /// Its left argument.
    pub left: Expr,
    /// The values of its right argument.
    pub right: QuantifiedOver,
    /// ALL instead of ANY.
    pub all: bool,
}

/// The right side of a quantified comparison.
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

    /// A literal of unknown type.
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

    /// AND of any number of conditions; true without any.
    pub fn and(mut conditions: Vec<Expr>) -> Expr {
        match conditions.len() {
            0 => Expr::boolean(true),
            1 => conditions.remove(0),
            _ => Expr::And(conditions),
        }
    }

    /// The type of the expression's value.
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

    /// The value of a constant; None for another expression.
    pub fn as_const(&self) -> Option<&Value> {
        match self {
            Expr::Const(value, _) => Some(value),
            _ => None,
        }
    }

    /// The operator, left side and right side of a comparison by the type's own order (`=`, `<`,
    /// `<=`, `>`, `>=`); None for another expression. An index can serve such a comparison. The
    /// operator's name is `function.operator`.
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

    /// The kind, text and pattern of a comparison of a text with a pattern; None for another
    /// expression. The operator's name is that of the kind.
    pub fn as_matching(&self) -> Option<(Matching, &Expr, &Expr)> {
        match self {
            Expr::Call(call) => {
                let matching = call.function.matching?;
                let [text, pattern] = call.arguments.as_slice() else { return None };
                Some((matching, text, pattern))
            }
            _ => None,
        }
    }
}
