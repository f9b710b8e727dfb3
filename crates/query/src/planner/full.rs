//! FULL JOIN.
//!
//! Only a hash join can do it, since a nested loop does not know which right rows had no match.

use super::Planner;
use super::part::{Part, Wanted};
use crate::bound::FromItem;
use crate::plan::{JoinKind, Operator, Reg};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::Volatility;
use values::error::{SqlError, SqlState};
use values::types::Type;

impl Planner<'_, '_> {
    /// Plans FULL JOIN by hashing. A subquery of the condition is computed for the rows of the side
    /// that it reads, or of the left side if it reads neither. A subquery that reads both sides is
    /// computed for each pair that meets the other conditions.
    pub(super) fn full_join(
        &mut self,
        (left, mut left_writes): (FromItem, Registers),
        (right, mut right_writes): (FromItem, Registers),
        on: Vec<Expr>,
        available: &Registers,
    ) -> Result<Part, SqlError> {
        let mut left = self.join_tree(left, (Vec::new(), Vec::new()), available, Wanted::default())?;
        let mut right = self.join_tree(right, (Vec::new(), Vec::new()), available, Wanted::default())?;
        let mut read = Registers::default();
        on.iter().for_each(|condition| registers::of_expr(condition, &mut read));
        let links: Vec<Reg> = self.pending.keys().copied().filter(|output| read.contains(output)).collect();
        for link in links {
            let needs = self.required(&Expr::column(link, Type::UNKNOWN));
            let is_within = |side: &Registers| {
                needs.iter().all(|register| side.contains(register) || available.contains(register))
            };
            if is_within(&left_writes) {
                left = self.attach(left, link);
                left_writes.insert(link);
            } else if is_within(&right_writes) {
                right = self.attach(right, link);
                right_writes.insert(link);
            }
        }
        let (late, on): (Vec<Expr>, Vec<Expr>) =
            on.into_iter().partition(|condition| self.reads_pending(condition));
        let keys = self.hash_keys(&on, &left_writes, &right_writes);
        let is_constant = |condition: &Expr| {
            condition.volatility() == Volatility::Immutable && registers::reads(condition).is_empty()
        };
        if keys.is_empty() && !(late.is_empty() && on.iter().all(is_constant)) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "FULL JOIN is only supported with merge-joinable or hash-joinable join conditions",
            ));
        }
        let rest = on.into_iter().filter(|expr| !self.is_key(expr, &left_writes, &right_writes)).collect();
        let mut part = self.hash_join(JoinKind::Full, left, right, keys, rest)?;
        if !late.is_empty()
            && let Operator::EquiJoin { test, .. } = &mut part.plan.operator
        {
            let one = Part::one();
            *test = Some(Box::new(self.filtered(one, late)?.plan));
        }
        Ok(part)
    }
}
