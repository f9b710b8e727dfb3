//! Expressions that cannot fail, whatever the values of their columns.
//!
//! A plan may compute these for rows that the statement does not ask for. What must hold: what is
//! not known to be safe counts as an expression that may fail.

use super::key_value::never_fails;
use crate::plan::Reg;
use expressions::expr::{Call, Expr, QuantifiedOver};
use expressions::function::Function;
use expressions::prefix::Matching;
use values::types::{self, Value, oid};

/// Whether an expression cannot fail, whatever the row.
///
/// `is_value`: whether a register has the value of a column. Another one may be the result of a
/// subquery.
pub(super) fn is_safe(expr: &Expr, is_value: &dyn Fn(Reg) -> bool) -> bool {
    let own = match expr {
        Expr::Const(..) | Expr::Param { .. } => true,
        Expr::Column { register, .. } => is_value(*register),
        Expr::And(_) | Expr::Or(_) | Expr::Not(_) | Expr::NullTest { .. } | Expr::BoolTest { .. } => true,
        Expr::Distinct { equal, .. } => is_comparison(equal.function, &equal.arguments),
        Expr::Call(call) => {
            is_comparison(call.function, &call.arguments) || is_match(expr) || computes_numeric(call)
        }
        Expr::Quantified(quantified) => match &quantified.right {
            QuantifiedOver::List(list) => is_comparison(quantified.function, list),
            QuantifiedOver::Array(_) => false,
        },
        Expr::Cast(cast) => never_fails(cast),
        _ => false,
    };
    let mut safe = own;
    expr.for_each_child(&mut |child| safe = safe && is_safe(child, is_value));
    safe
}

/// Whether a function compares values that can all be compared. Records and arrays may have fields
/// of other types.
fn is_comparison(function: &Function, compared: &[Expr]) -> bool {
    let is_single = |value: &Expr| {
        let type_ = value.type_().oid;
        types::element_of(type_).is_none() && type_ != oid::RECORD
    };
    function.comparison.is_some() && compared.iter().all(is_single)
}

/// Whether a text is matched with a pattern that no text makes fail.
fn is_match(expr: &Expr) -> bool {
    match expr.as_matching() {
        Some((Matching::Start, ..)) => true,
        Some((Matching::Like, _, Expr::Const(Value::Text(pattern), _))) => !pattern.ends_with('\\'),
        _ => false,
    }
}

/// Whether a call computes a numeric that has room for any result: only one of more than 131,072
/// digits has none.
fn computes_numeric(call: &Call) -> bool {
    call.type_.oid == oid::NUMERIC && matches!(call.function.operator, "+" | "-" | "*")
}
