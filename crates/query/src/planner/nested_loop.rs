//! Nested loops.

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
