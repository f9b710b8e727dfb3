//! Conditions IS NULL that only the rows without a match of a left join meet. The join below one
//! is an anti join.
//!
//! What must hold:
//!
//! 1. No matching row has a NULL in the tested column. Either the column is NOT NULL and no other
//!    outer join makes it NULL, or a NULL in it keeps ON from being true.
//! 2. The anti join leaves NULLs in the columns of the nullable side, as the left join does.
//! 3. ON is not volatile, and no subquery of it is still to be planned, as for EXISTS
//!    ([`super::semi`]).

use super::Planner;
use super::rejects::rejects_null;
use crate::bound::{FromItem, Source};
use crate::plan::{JoinKind, Reg};
use expressions::expr::Expr;
use expressions::function::Volatility;
use values::types::oid;

impl Planner<'_, '_> {
    /// The kind of a left join below some conditions: Left or Anti. Takes out the conditions that
    /// an anti join implies.
    pub(super) fn left_or_anti(
        &self,
        nullable: &FromItem,
        on: &[Expr],
        conditions: &mut Vec<Expr>,
    ) -> JoinKind {
        let is_join = |condition: &Expr| {
            condition.volatility() < Volatility::Volatile && !self.reads_pending(condition)
        };
        if !on.iter().all(is_join) {
            return JoinKind::Left;
        }
        let before = conditions.len();
        conditions.retain(|condition| {
            let Some(register) = tested(condition) else { return true };
            !self.is_filled(nullable, register) && !self.is_matched(nullable, on, register)
        });
        if conditions.len() < before { JoinKind::Anti } else { JoinKind::Left }
    }

    /// Whether a register of the nullable side has a value in each row for which ON is true.
    fn is_matched(&self, nullable: &FromItem, on: &[Expr], register: Reg) -> bool {
        let alone = [register].into_iter().collect();
        self.item_writes(nullable).contains(&register)
            && on.iter().any(|condition| rejects_null(condition, &alone))
    }

    /// Whether a register is a NOT NULL column of an item of FROM, and no outer join inside makes
    /// it NULL.
    fn is_filled(&self, item: &FromItem, register: Reg) -> bool {
        match item {
            FromItem::Source(source, Source::Table(table)) if !table.is_virtual() => {
                let columns = self.binder.sources[*source].columns.iter().zip(&table.columns);
                columns.into_iter().any(|(of, column)| *of == Some(register) && column.not_null)
            }
            FromItem::Source(..) => false,
            FromItem::Join { kind, left, right, .. } => match kind {
                JoinKind::Inner => self.is_filled(left, register) || self.is_filled(right, register),
                JoinKind::Left => self.is_filled(left, register),
                JoinKind::Right => self.is_filled(right, register),
                JoinKind::Full | JoinKind::Semi | JoinKind::Anti => false,
            },
        }
    }
}

/// The register that a condition tests for NULL. The test of a record looks at its columns, so it
/// is none.
fn tested(condition: &Expr) -> Option<Reg> {
    let Expr::NullTest { input, negated: false } = condition else { return None };
    match &**input {
        Expr::Column { register, .. } if input.type_().oid != oid::RECORD => Some(*register),
        _ => None,
    }
}
