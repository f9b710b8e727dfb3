//! Pushdown: moves conditions into subqueries of FROM.
//!
//! What must hold: the subquery's rows that meet the condition stay the same. So no condition moves
//! below a limit, a grouping, a window, a set-returning function or DISTINCT.

use crate::bound::{Distinct, Query, QueryBody};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::Volatility;

/// Whether a subquery only selects columns of its FROM. A subquery with an order runs by itself.
/// SQL does not promise that its rows keep the order, but PostgreSQL keeps it, and an array_agg()
/// or LIMIT over it relies on that.
pub(super) fn is_plain(query: &Query) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    query.tables.is_empty()
        && query.order.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.limit_sublinks.is_empty()
        && query.locks.is_empty()
        && select.from.is_some()
        && !select.grouped
        && select.windows.is_empty()
        && select.sets.is_empty()
        && select.targets.is_empty()
        && select.sublinks.is_empty()
        && matches!(select.distinct, Distinct::No)
}

/// Moves conditions on a subquery's output into it if that does not change the result. A subquery
/// that locks rows locks only those that meet its own conditions, so conditions that read other
/// sources stay outside.
pub(super) fn push_down(mut query: Query, conditions: Vec<Expr>) -> (Query, Vec<Expr>) {
    let output: Registers = query.output.iter().map(|column| column.register).collect();
    let locks = !query.locks.is_empty();
    let QueryBody::Select(select) = &mut query.body else { return (query, conditions) };
    let closed = query.limit.is_some()
        || query.offset.is_some()
        || select.grouped
        || !select.windows.is_empty()
        || !select.sets.is_empty()
        || !matches!(select.distinct, Distinct::No);
    if closed {
        return (query, conditions);
    }
    let links: Registers = select.sublinks.iter().map(|link| link.output).collect();
    let mut outside = Vec::new();
    for condition in conditions {
        let mut movable = !locks || registers::reads(&condition).is_subset(&output);
        let mut inner = condition.clone();
        substitute(&mut inner, &mut |register| {
            let computed = select.targets.iter().find(|(_, target)| *target == register);
            match computed {
                Some((expr, _)) if expr.volatility() < Volatility::Volatile => Some(expr.clone()),
                Some(_) => {
                    movable = false;
                    None
                }
                None => None,
            }
        });
        if movable && registers::reads(&inner).is_disjoint(&links) {
            select.conditions.push(inner);
        } else {
            outside.push(condition);
        }
    }
    (query, outside)
}

fn substitute(expr: &mut Expr, replacement: &mut dyn FnMut(u32) -> Option<Expr>) {
    if let Expr::Column { register, .. } = expr {
        if let Some(new) = replacement(*register) {
            *expr = new;
        }
        return;
    }
    expr.for_each_child_mut(&mut |child| substitute(child, replacement));
}
