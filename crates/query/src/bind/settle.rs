//! Conditions that no row meets, known before the statement runs.
//!
//! At the top of a condition NULL keeps a row out as false does, so a NULL among conjuncts decides:
//! the others are not evaluated, and neither are their subqueries. PostgreSQL computes parts of
//! constants alone ahead of that, and their errors are the statement's: such conditions stay.

use super::Binder;
use crate::bound::Sublink;
use crate::fold;
use crate::registers;
use expressions::expr::Expr;
use values::types::Value;

impl Binder<'_> {
    /// Leaves out of conditions that must all hold what cannot decide any more.
    pub(super) fn settle(&mut self, conditions: &mut Vec<Expr>) {
        if !conditions.iter().any(has_constant) {
            return;
        }
        conditions.iter_mut().for_each(fold::expr);
        // Behind a false PostgreSQL does not look; a NULL it passes by at first.
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

/// Whether it compares a column with a constant or parameter: it cannot fail, and may lead to few
/// rows.
fn is_key(condition: &Expr, links: &[Sublink]) -> bool {
    let Some((_, left, right)) = condition.as_comparison() else { return false };
    let plain = |side: &Expr| matches!(side, Expr::Column { .. } | Expr::Const(..) | Expr::Param { .. });
    let read = registers::reads(condition);
    plain(left) && plain(right) && !links.iter().any(|link| read.contains(&link.output))
}

/// Whether it is false or NULL whatever the row; `negated`: whether NOT of it is.
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

/// Makes false of what no row meets, and takes it out of an OR.
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
