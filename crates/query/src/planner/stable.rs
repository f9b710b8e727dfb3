//! Bound queries and plans that give the same rows wherever they run.

use crate::bound::walk::{self, Part};
use crate::bound::{Query, Select};
use crate::plan::walk::{children, exprs};
use crate::plan::{Operator, Plan};
use expressions::expr::Expr;
use expressions::function::Volatility;

/// Whether neither a SELECT's conditions nor its columns are volatile.
pub(super) fn has_stable_rows(select: &Select) -> bool {
    let is_stable = |expr: &Expr| expr.volatility() < Volatility::Volatile;
    select.targets.iter().map(|(expr, _)| expr).chain(&select.conditions).all(is_stable)
}

/// Whether a query gives the same rows wherever it runs, and changes nothing.
pub(super) fn is_stable(query: &mut Query) -> bool {
    let mut stable = true;
    walk::query(query, &mut |part| match part {
        Part::Expr(expr) => stable &= expr.volatility() < Volatility::Volatile,
        Part::Locked(_) => stable = false,
        _ => {}
    });
    stable
}

/// Whether a plan gives the same rows for the same outer values, and running it changes nothing.
pub(super) fn is_stable_plan(plan: &Plan) -> bool {
    let mut stable = !matches!(plan.operator, Operator::LockRows { .. });
    exprs(plan, &mut |expr| stable &= expr.volatility() < Volatility::Volatile);
    children(plan, &mut |child| stable = stable && is_stable_plan(child));
    stable
}
