//! Equalities that join two sides, as pairs of values of one type.
//!
//! What must hold: a pair is equal exactly if the condition is true.

use super::Planner;
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::Comparison;

impl Planner<'_, '_> {
    /// The pairs of keys among conditions, each side over one side of a join. A condition on the
    /// result of a subquery that is computed above the join is not a key.
    pub(super) fn hash_keys(
        &self,
        conditions: &[Expr],
        left: &Registers,
        right: &Registers,
    ) -> Vec<(Expr, Expr)> {
        let computed = conditions.iter().filter(|condition| !self.reads_pending(condition));
        computed.filter_map(|condition| key_pair(condition, left, right)).collect()
    }

    /// Whether a condition is among the keys.
    pub(super) fn is_key(&self, condition: &Expr, left: &Registers, right: &Registers) -> bool {
        !self.reads_pending(condition) && key_pair(condition, left, right).is_some()
    }
}

/// Whether two operands can be hashed as values of one type.
pub(super) fn has_one_type(left: &Expr, right: &Expr) -> bool {
    left.type_().oid == right.type_().oid
        || expressions::functions::unify("JOIN", vec![left.clone(), right.clone()]).is_ok()
}

/// The operands of an equality that reads both sides, each over one of them, with one type.
pub(super) fn key_pair(condition: &Expr, left: &Registers, right: &Registers) -> Option<(Expr, Expr)> {
    let (Comparison::Equal, a, b) = condition.as_comparison()? else { return None };
    let on = |expr: &Expr, own: &Registers, other: &Registers| {
        let reads = registers::reads(expr);
        !reads.is_disjoint(own) && reads.is_disjoint(other)
    };
    let (a, b) = if on(a, left, right) && on(b, right, left) {
        (a.clone(), b.clone())
    } else if on(b, left, right) && on(a, right, left) {
        (b.clone(), a.clone())
    } else {
        return None;
    };
    if a.type_().oid == b.type_().oid {
        return Some((a, b));
    }
    // Hashing needs one type, the wider of the two.
    let (pair, _) = expressions::functions::unify("JOIN", vec![a, b]).ok()?;
    <[Expr; 2]>::try_from(pair).ok().map(|[a, b]| (a, b))
}
