//! Sort keys that are the same for all rows.
//!
//! What must hold: a dropped key is a constant, or a column that WHERE holds equal to one. Values
//! that are equal sort alike, so the rows have the same order without it. DISTINCT and WITH TIES
//! take rows by the order, so they keep all keys.

use super::classes::column_of;
use super::top::Top;
use super::unique::equated;
use crate::bound::{Distinct, Select};
use crate::registers::Registers;
use expressions::expr::Expr;

/// Drops such keys from ORDER BY.
pub(super) fn drop_from(top: &mut Top, select: &Select) {
    if top.order.is_empty() || top.ties || !matches!(select.distinct, Distinct::No) {
        return;
    }
    let constants = select.targets.iter().filter(|(expr, _)| is_constant(expr)).map(|(_, column)| *column);
    let mut fixed: Registers = constants.collect();
    fixed.extend(select.conditions.iter().filter_map(|condition| equated(condition, |_| true)));
    top.order.retain(|key| match column_of(&key.expr) {
        Some(column) => !fixed.contains(&column),
        None => !is_constant(&key.expr),
    });
}

fn is_constant(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(..) | Expr::Param { .. })
}
