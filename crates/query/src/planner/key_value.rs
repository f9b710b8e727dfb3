//! Values as keys: a compared value becomes one of the column's own type.
//!
//! What must hold: a key finds the rows for which the comparison is true, no more and no fewer. So
//! the order of the index is that of the comparison, for the types on both sides. A moment of
//! another type may find more ([`super::moments`]).

use super::moments;
use crate::plan::KeyBound;
use expressions::expr::{Case, Cast, CastPath, Expr};
use expressions::function::Comparison;
use expressions::functions::{self, CastContext};
use values::error::SqlError;
use values::types::{Type, Value, oid};

/// Whether a value of this type can bound a column's key.
pub(super) fn is_comparable(value: Type, column: Type) -> bool {
    value.oid == column.oid
        || integer_width(value.oid).is_some() && integer_width(column.oid).is_some()
        || is_text(value.oid) && is_text(column.oid)
}

/// Whether a cast converts any value.
pub(super) fn never_fails(cast: &Cast) -> bool {
    let (from, to) = (cast.input.type_(), cast.type_);
    let widens = is_wider_integer(from, to)
        || integer_width(from.oid).is_some() && matches!(to.oid, oid::NUMERIC | oid::FLOAT4 | oid::FLOAT8);
    matches!(cast.path, CastPath::Relabel) || widens && to == Type::new(to.oid)
}

/// Whether each integer of one type is one of the other, so that a cast to it cannot fail.
pub(super) fn is_wider_integer(value: Type, to: Type) -> bool {
    match (integer_width(value.oid), integer_width(to.oid)) {
        (Some((low, high)), Some((to_low, to_high))) => to_low <= low && to_high >= high,
        _ => false,
    }
}

/// A value as a key of exactly the column's type; see [`is_comparable`].
pub(super) fn exact(value: &Expr, column: Type) -> Result<Expr, SqlError> {
    convert(value, column, Comparison::Equal)
}

/// A value as an end of a range. A rounded end is included under any comparison.
pub(super) fn end(value: &Expr, column: Type, comparison: Comparison) -> Result<KeyBound, SqlError> {
    let strict = matches!(comparison, Comparison::Less | Comparison::Greater);
    let inclusive = !strict || is_wider(value.type_(), column) || moments::differ(value.type_(), column);
    Ok(KeyBound::Value { value: convert(value, column, comparison)?, inclusive })
}

fn convert(value: &Expr, column: Type, comparison: Comparison) -> Result<Expr, SqlError> {
    key_value(value, column, comparison).ok_or_else(|| SqlError::internal("a value that is no key"))
}

fn integer_width(type_: u32) -> Option<(i64, i64)> {
    match type_ {
        oid::INT2 => Some((i64::from(i16::MIN), i64::from(i16::MAX))),
        oid::INT4 => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        oid::INT8 => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}

fn is_text(type_: u32) -> bool {
    matches!(type_, oid::TEXT | oid::VARCHAR)
}

/// Whether a type has integers outside the column type's range.
fn is_wider(value_type: Type, column: Type) -> bool {
    match (integer_width(column.oid), integer_width(value_type.oid)) {
        (Some((low, high)), Some((value_low, value_high))) => value_low < low || value_high > high,
        _ => false,
    }
}

/// Converts a wider integer to an inclusive end of a range of the column's type. It is the nearest
/// value of the type that satisfies the comparison; NULL if no value satisfies it.
fn nearest(value: &Expr, comparison: Comparison, (low, high): (i64, i64), column: Type) -> Option<Expr> {
    let number = |number: i64| Expr::constant(Value::Int8(number), Type::INT8);
    let narrow = |value: Expr| functions::cast(value, column, CastContext::Explicit).ok();
    let is = |operator: &str, end: i64| functions::operator(operator, Some(value.clone()), number(end)).ok();
    let moved = |operator: &str| functions::operator(operator, Some(value.clone()), number(1)).ok();
    // When all values satisfy it, the end of the range then, when none does, and the bound
    // otherwise.
    let (all, end, none, otherwise) = match comparison {
        Comparison::Less => (is(">", high)?, high, is("<=", low)?, moved("-")?),
        Comparison::LessEqual => (is(">=", high)?, high, is("<", low)?, value.clone()),
        Comparison::Greater => (is("<", low)?, low, is(">=", high)?, moved("+")?),
        Comparison::GreaterEqual => (is("<=", low)?, low, is(">", high)?, value.clone()),
        Comparison::Equal | Comparison::NotEqual => return None,
    };
    Some(Expr::Case(Box::new(Case {
        branches: vec![(all, narrow(number(end))?), (none, Expr::null(column))],
        otherwise: narrow(otherwise)?,
        type_: column,
    })))
}

/// A value as a key of exactly the column's type. None if the comparison is not the column's own.
///
/// A wider integer outside the column's range becomes NULL, since it equals no value of the column.
/// For the end of a range see [`nearest`].
fn key_value(value: &Expr, column: Type, comparison: Comparison) -> Option<Expr> {
    let value_type = value.type_();
    if value_type.oid == column.oid {
        return Some(value.clone());
    }
    let wanted = Type::new(column.oid);
    if let (Some((low, high)), Some((value_low, value_high))) =
        (integer_width(column.oid), integer_width(value_type.oid))
    {
        if value_low >= low && value_high <= high {
            return functions::cast(value.clone(), wanted, CastContext::Implicit).ok();
        }
        if comparison != Comparison::Equal {
            return nearest(value, comparison, (low, high), wanted);
        }
        let bound = |number: i64| Expr::constant(Value::Int8(number), Type::INT8);
        let narrow = functions::cast(value.clone(), wanted, CastContext::Explicit).ok()?;
        let above = functions::operator(">=", Some(value.clone()), bound(low)).ok()?;
        let below = functions::operator("<=", Some(value.clone()), bound(high)).ok()?;
        return Some(Expr::Case(Box::new(Case {
            branches: vec![(Expr::And(vec![above, below]), narrow)],
            otherwise: Expr::null(wanted),
            type_: wanted,
        })));
    }
    if moments::differ(value_type, column) {
        return moments::key(value, column, comparison);
    }
    if is_text(column.oid) && is_text(value_type.oid) {
        return functions::cast(value.clone(), wanted, CastContext::Assignment).ok();
    }
    None
}
