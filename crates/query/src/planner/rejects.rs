//! Conditions that reject rows of NULLs. An outer join below one is an inner join, since the rows
//! that it adds do not stay.

use crate::registers::Registers;
use expressions::expr::{Expr, QuantifiedOver};

/// Whether a condition is never true if all these registers are NULL.
pub(super) fn rejects_null(condition: &Expr, registers: &Registers) -> bool {
    match condition {
        Expr::And(parts) => parts.iter().any(|part| rejects_null(part, registers)),
        Expr::Or(parts) => parts.iter().all(|part| rejects_null(part, registers)),
        Expr::NullTest { input, negated: true } => is_null(input, registers),
        Expr::BoolTest { input, expected: Some(_), negated: false } => is_null(input, registers),
        Expr::Not(input) => is_null(input, registers),
        other => is_null(other, registers),
    }
}

/// Whether an expression is NULL if all these registers are.
pub(super) fn is_null(expr: &Expr, registers: &Registers) -> bool {
    match expr {
        Expr::Column { register, .. } => registers.contains(register),
        Expr::Cast(cast) => is_null(&cast.input, registers),
        Expr::Call(call) => {
            call.function.strict && call.arguments.iter().any(|argument| is_null(argument, registers))
        }
        Expr::Quantified(quantified) => {
            let is_list = matches!(&quantified.right, QuantifiedOver::List(list) if !list.is_empty());
            is_list && quantified.function.strict && is_null(&quantified.left, registers)
        }
        Expr::Not(input) => is_null(input, registers),
        Expr::And(parts) | Expr::Or(parts) => parts.iter().all(|part| is_null(part, registers)),
        _ => false,
    }
}
