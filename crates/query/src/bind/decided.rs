//! Conditions that no row meets, found before the statement runs.
//!
//! At the top of a condition NULL rejects a row as false does. So a NULL among conjuncts decides:
//! the other conjuncts and their subqueries are not evaluated. PostgreSQL computes constant parts
//! ahead of time, and the statement reports their errors, so conditions with such parts stay.

use super::Binder;
use crate::bound::Sublink;
use crate::fold;
use crate::registers;
use expressions::expr::Expr;
use values::types::Value;

impl Binder<'_> {
    /// Removes conditions that can no longer affect the result from a list of conjuncts.
    pub(super) fn drop_decided(&mut self, conditions: &mut Vec<Expr>) {
        if !conditions.iter().any(has_constant) {
            return;
        }
        conditions.iter_mut().for_each(fold::expr);
        // PostgreSQL stops at a false condition; it passes a NULL at first.
        let seen = conditions.iter().position(is_false).unwrap_or(conditions.len());
        conditions.iter_mut().filter(|condition| !condition.computes_ahead()).for_each(simplify);
        if conditions.iter().any(is_false) {
            let links = &self.level().sublinks;
            let (mut kept, mut keys) = (Vec::new(), Vec::new());
            for (at, condition) in std::mem::take(conditions).into_iter().enumerate() {
                if at < seen && condition.computes_ahead() {
                    kept.push(condition);
                } else if is_key(&condition, links) {
                    keys.push(condition);
                }
            }
            kept.push(Expr::boolean(false));
            kept.extend(keys);
            *conditions = kept;
        }
    }
}

fn has_constant(condition: &Expr) -> bool {
    let mut found = false;
    condition.walk(&mut |part| found |= matches!(part, Expr::Const(Value::Null | Value::Bool(_), _)));
    found
}

fn is_false(condition: &Expr) -> bool {
    matches!(condition, Expr::Const(Value::Bool(false), _))
}

/// Whether the condition compares a column with a constant or parameter. Such a comparison cannot
/// fail, and an index may find its few rows.
fn is_key(condition: &Expr, links: &[Sublink]) -> bool {
    let Some((_, left, right)) = condition.as_comparison() else { return false };
    let plain = |side: &Expr| matches!(side, Expr::Column { .. } | Expr::Const(..) | Expr::Param { .. });
    let read = registers::reads(condition);
    plain(left) && plain(right) && !links.iter().any(|link| read.contains(&link.output))
}

/// Whether the condition is false or NULL for every row. `negated`: whether NOT of the condition
/// is.
fn is_never(condition: &Expr, negated: bool) -> bool {
    match condition {
        Expr::Const(Value::Null, _) => true,
        Expr::Const(Value::Bool(value), _) => *value == negated,
        Expr::Not(input) => is_never(input, !negated),
        Expr::Shared(shared) => is_never(&shared.body, negated),
        Expr::And(parts) if negated => parts.iter().all(|part| is_never(part, true)),
        Expr::And(parts) => parts.iter().any(|part| is_never(part, false)),
        Expr::Or(parts) if negated => parts.iter().any(|part| is_never(part, true)),
        Expr::Or(parts) => parts.iter().all(|part| is_never(part, false)),
        _ => false,
    }
}

/// Replaces a condition that no row meets by false, and drops such parts of an OR.
fn simplify(condition: &mut Expr) {
    if is_never(condition, false) {
        *condition = Expr::boolean(false);
        return;
    }
    match condition {
        Expr::And(parts) => parts.iter_mut().for_each(simplify),
        Expr::Or(parts) => {
            parts.iter_mut().for_each(simplify);
            parts.retain(|part| !is_false(part));
            if parts.len() == 1
                && let Some(only) = parts.pop()
            {
                *condition = only;
            }
        }
        _ => {}
    }
}
