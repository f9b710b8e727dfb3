//! Nested loops that go on as hash joins.
//!
//! The number of left rows is a guess. A loop that meets far more of them runs its right side far
//! too often. So a loop over a table keeps a second way. Beyond a number of left rows it hashes
//! the table's rows, and looks the matches of the further left rows up there. The number is at
//! least ten times the guess. It is also at least that for which the runs of the right side cost
//! as much as the hash.
//!
//! What must hold: both ways give the same rows for a left row. The order of left rows stays.

use std::sync::Arc;

use super::Planner;
use super::part::{Leaf, Part, Wanted};
use super::safe::is_safe;
use crate::bound::SourceId;
use crate::plan::{HashBeyond, JoinKind, Operator};
use crate::registers::Registers;
use expressions::expr::Expr;
use values::error::SqlError;

/// The right side of a loop, to be hashed.
pub(super) struct Hashable {
    source: SourceId,
    table: Arc<catalog::Table>,
    conditions: Vec<Expr>,
    most: u64,
}

impl Planner<'_, '_> {
    /// The right side of a loop under its conditions, if the loop may go on as a hash join.
    pub(super) fn hashable(&self, leaf: &Leaf, conditions: &[Expr], most: Option<f64>) -> Option<Hashable> {
        let (most, Leaf::Table(source, table)) = (most?, leaf) else { return None };
        // The second look at a changed row knows the rows of one plan alone. The hash tests rows
        // that the loop never reads.
        let is_value = |register| !self.pending.contains_key(&register);
        let is_plain = self.binder.sources[*source].identity.is_none()
            && conditions.iter().all(|condition| is_safe(condition, &is_value));
        is_plain.then(|| Hashable {
            source: *source,
            table: Arc::clone(table),
            conditions: conditions.to_vec(),
            most: most as u64,
        })
    }

    /// Adds the second way to a loop.
    pub(super) fn go_on(
        &mut self,
        part: &mut Part,
        (kind, hashable): (JoinKind, Option<Hashable>),
        (left, right, outside): (&Registers, &Registers, &Registers),
    ) -> Result<(), SqlError> {
        let Some(Hashable { source, table, conditions, most }) = hashable else { return Ok(()) };
        let Operator::NestedLoop { .. } = &part.plan.operator else { return Ok(()) };
        let keys = self.hash_keys(&conditions, left, right);
        if keys.is_empty() {
            return Ok(());
        }
        let (own, rest): (Vec<Expr>, Vec<Expr>) =
            conditions.into_iter().partition(|condition| self.required(condition).is_disjoint(left));
        let rows = self.leaf(Leaf::Table(source, table), own, outside, Wanted::default())?;
        let rest = rest.into_iter().filter(|condition| !self.is_key(condition, left, right)).collect();
        let join = self.hash_join(kind, Part::one(), rows, keys, rest)?.plan;
        if let Operator::NestedLoop { beyond, .. } = &mut part.plan.operator {
            *beyond = Some(Box::new(HashBeyond { rows: most, join }));
        }
        Ok(())
    }
}
