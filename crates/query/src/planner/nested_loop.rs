//! Nested loops.

use super::part::Part;
use super::single::at_most_one;
use crate::plan::{Estimate, JoinKind, Operator, Plan};
use expressions::expr::Expr;

/// A nested loop. A later step fills in the registers to set to NULL.
pub(super) fn nested_loop(kind: JoinKind, left: Plan, right: Plan, condition: Option<Expr>) -> Plan {
    if kind == JoinKind::Inner && condition.is_none() {
        if matches!(left.operator, Operator::OneRow) {
            return right;
        }
        if matches!(right.operator, Operator::OneRow) {
            return left;
        }
    }
    let (outer, inner) = (left.estimate, right.estimate);
    let estimate = Estimate {
        start: outer.start + inner.start,
        cost: outer.cost + outer.rows * inner.cost,
        rows: (outer.rows * inner.rows).max(1.0),
    };
    let (left, right) = (Box::new(left), Box::new(right));
    let right_registers = Vec::new();
    let operator = Operator::NestedLoop { kind, left, right, condition, right_registers, beyond: None };
    Plan::new(operator, estimate)
}

/// A nested loop of two parts.
pub(super) fn looped_parts(kind: JoinKind, left: Part, right: Part) -> Part {
    let ordered = left.ordered || (at_most_one(&left.plan) && right.ordered);
    Part { plan: nested_loop(kind, left.plan, right.plan, None), sorted: 0, ordered }
}
