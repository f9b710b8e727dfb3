//! The windows of bound queries, and the conditions that end them early.
//!
//! row_number(), rank() and dense_rank() never fall within a partition. So where a condition such
//! as `place <= 3` is false for a row, it is false for the rest of the partition. Such a condition
//! becomes the run condition of the window: the rest is passed over, or not even read.
//!
//! What must hold:
//!
//! 1. All functions of the window are these three, since they read no later row. No other window
//!    lies above it: that one would miss rows.
//! 2. The bound of the condition reads no column of the query, so it stays the same for all rows.
//! 3. Neither DISTINCT nor a set-returning function lies between the window and the condition, and
//!    nothing volatile is computed for each row.

use super::stable;
use crate::bound::{Distinct, Select, Window};
use crate::plan::{Reg, WindowCall};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::{Comparison, WindowFunction};
use expressions::functions;
use values::types::Type;

/// Drops constants from the keys of windows. They neither partition rows nor order them.
pub(super) fn drop_constants(windows: &mut [Window]) {
    let fixed = |expr: &Expr| matches!(expr, Expr::Const(..) | Expr::Param { .. });
    for window in windows {
        window.partition.retain(|expr| !fixed(expr));
        window.order.retain(|key| !fixed(&key.expr));
    }
}

/// Makes a condition on a query's output a run condition of its last window, if it may be one. The
/// answer is whether no other node has to test it.
pub(super) fn takes_condition(select: &mut Select, condition: &Expr, output: &Registers) -> bool {
    let Some((register, comparison, bound)) = bounded(condition, output) else { return false };
    let of_call = select.targets.iter().find(|(_, target)| *target == register);
    let register = match of_call {
        None => register,
        Some((Expr::Column { register, .. }, _)) => *register,
        Some(_) => return false,
    };
    let is_stable = matches!(select.distinct, Distinct::No)
        && select.sets.is_empty()
        && stable::has_stable_rows(select)
        && select.sublinks.iter_mut().all(|link| stable::is_stable(&mut link.query));
    let Some(window) = select.windows.last_mut().filter(|_| is_stable) else { return false };
    if !window.calls.iter().all(is_rank) || !window.calls.iter().any(|call| call.output == register) {
        return false;
    }
    let operator = if comparison == Comparison::Less { "<" } else { "<=" };
    let Ok(run) = functions::operator(operator, Some(Expr::column(register, Type::INT8)), bound.clone())
    else {
        return false;
    };
    window.run.push(run);
    comparison != Comparison::Equal
}

fn is_rank(call: &WindowCall) -> bool {
    matches!(call.function, WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank)
}

/// An output column, a comparison that ends where the column grows, and the bound.
fn bounded<'e>(condition: &'e Expr, output: &Registers) -> Option<(Reg, Comparison, &'e Expr)> {
    let (comparison, left, right) = condition.as_comparison()?;
    let (comparison, column, bound) = match left {
        Expr::Column { register, .. } if output.contains(register) => (comparison, left, right),
        _ => (comparison.commuted(), right, left),
    };
    let Expr::Column { register, .. } = column else { return None };
    let ends = matches!(comparison, Comparison::Less | Comparison::LessEqual | Comparison::Equal);
    let is_fixed = output.contains(register) && registers::reads(bound).is_disjoint(output);
    (ends && is_fixed).then_some((*register, comparison, bound))
}

impl Window {
    /// The bounds of the run conditions on functions of these kinds.
    pub(super) fn bounds(&self, kinds: fn(&WindowFunction) -> bool) -> impl Iterator<Item = &Expr> {
        self.run.iter().filter_map(move |condition| {
            let (_, column, bound) = condition.as_comparison()?;
            let Expr::Column { register, .. } = column else { return None };
            self.calls.iter().any(|call| call.output == *register && kinds(&call.function)).then_some(bound)
        })
    }

    /// The most rows that meet the run conditions of a single partition, if it can be computed
    /// beforehand without an error.
    pub(super) fn most(&self) -> Option<Expr> {
        let is_plain =
            |bound: &&Expr| matches!(bound, Expr::Const(..) | Expr::Param { .. } | Expr::Column { .. });
        let mut bounds = self.bounds(|function| matches!(function, WindowFunction::RowNumber));
        bounds.find(is_plain).filter(|_| self.partition.is_empty()).cloned()
    }
}
