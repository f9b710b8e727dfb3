//! Nested loops.

use super::part::Part;
use super::single::at_most_one;
use super::stable::is_stable_plan;
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
    let operator =
        Operator::NestedLoop { kind, left, right, condition, right_registers, memo: None, beyond: None };
    Plan::new(operator, estimate)
}

/// A nested loop of two parts. `keeps`: whether it keeps the right rows by the values on which they
/// depend. [`super::keep`] finds the registers.
pub(super) fn looped_parts(kind: JoinKind, left: Part, right: Part, keeps: bool) -> Part {
    let ordered = left.ordered || (at_most_one(&left.plan) && right.ordered);
    let is_one_row = |part: &Part| matches!(part.plan.operator, Operator::OneRow);
    let keeps = keeps && !is_one_row(&left) && !is_one_row(&right) && is_stable_plan(&right.plan);
    let sorted = left.sorted;
    let mut plan = nested_loop(kind, left.plan, right.plan, None);
    if let Operator::NestedLoop { memo, .. } = &mut plan.operator {
        *memo = keeps.then(Vec::new);
    }
    Part { plan, sorted, ordered }
}
