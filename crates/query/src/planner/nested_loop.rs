//! Nested loops.

use super::part::Part;
use super::single::at_most_one;
use crate::plan::{JoinKind, Plan};
use expressions::expr::Expr;

/// A nested loop. A later step fills in the registers to set to NULL.
pub(super) fn nested_loop(kind: JoinKind, left: Plan, right: Plan, condition: Option<Expr>) -> Plan {
    if kind == JoinKind::Inner && condition.is_none() {
        match (left, right) {
            (Plan::OneRow, right) => return right,
            (left, Plan::OneRow) => return left,
            (left, right) => {
                return Plan::NestedLoop {
                    kind,
                    left: Box::new(left),
                    right: Box::new(right),
                    condition: None,
                    right_registers: Vec::new(),
                };
            }
        }
    }
    Plan::NestedLoop {
        kind,
        left: Box::new(left),
        right: Box::new(right),
        condition,
        right_registers: Vec::new(),
    }
}

/// A nested loop of two parts.
pub(super) fn looped_parts(kind: JoinKind, left: Part, right: Part) -> Part {
    let rows = (left.rows * right.rows).max(1.0);
    let cost = left.cost + left.rows * right.cost;
    let ordered = left.ordered || (at_most_one(&left.plan) && right.ordered);
    let plan = nested_loop(kind, left.plan, right.plan, None);
    Part { plan, rows, cost, sorted: 0, ordered }
}
