//! Set-returning functions of the target list: the place where each runs.
//!
//! PostgreSQL runs functions that GROUP BY reads below the grouping, and those that a window reads
//! below the windows. The others run after the sort if neither a sort key nor DISTINCT reads them.
//! The functions at each of these places run side by side.

use super::Planner;
use super::cost::SOME_ROWS;
use super::nested_loop::nested_loop;
use super::part::Part;
use super::top::{Top, copy_key};
use crate::bound::Distinct;
use crate::plan::{Estimate, JoinKind, Operator, Plan, Reg, SetCall, SortKey};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::SetFunction;
use values::error::SqlError;

/// Set-returning functions that run side by side.
pub(super) struct Sets {
    pub(super) calls: Vec<SetCall>,
    /// The register of the row's number.
    pub(super) ordinality: Option<Reg>,
}

impl Sets {
    /// Whether they run after the sort. They do if neither a sort key nor DISTINCT reads them.
    pub(super) fn are_late(&self, targets: &[(Expr, Reg)], distinct: &Distinct, order: &[SortKey]) -> bool {
        if self.calls.is_empty() || order.is_empty() {
            return false;
        }
        let mut made: Registers = self.calls.iter().flat_map(|call| &call.output).copied().collect();
        for (expr, register) in targets {
            if !registers::reads(expr).is_disjoint(&made) {
                made.insert(*register);
            }
        }
        let keys = match distinct {
            Distinct::No => &[][..],
            Distinct::All(keys) | Distinct::On(keys) => keys,
        };
        let mut keys = keys.iter().chain(order.iter().map(|key| &key.expr));
        keys.all(|key| registers::reads(key).is_disjoint(&made))
    }
}

impl Planner<'_, '_> {
    /// Runs set-returning functions side by side for each row.
    pub(super) fn with_sets(&mut self, mut part: Part, sets: Sets) -> Result<Part, SqlError> {
        if sets.calls.is_empty() {
            return Ok(part);
        }
        part = self.attached(part, sets.calls.iter().flat_map(|call| &call.arguments))?;
        let several = sets.calls.iter().any(|call| call.function != SetFunction::Once);
        let rows = if several { SOME_ROWS } else { 1.0 };
        let right = Operator::Function { calls: sets.calls, ordinality: sets.ordinality };
        let right = Plan::new(right, Estimate { start: 0.0, cost: 0.0, rows });
        part.plan = nested_loop(JoinKind::Inner, part.plan, right, None);
        Ok(part)
    }

    /// Sorts, then runs set-returning functions and computes the columns that read them, then
    /// limits.
    pub(super) fn with_late_sets(
        &mut self,
        mut part: Part,
        (sets, targets): (Sets, Vec<(Expr, Reg)>),
        distinct: Distinct,
        top: Top,
    ) -> Result<Part, SqlError> {
        let Top { limit, offset, ties, .. } = top;
        let mut read = Registers::default();
        sets.calls.iter().for_each(|call| read.extend(&call.output));
        let reads_sets = |(expr, _): &(Expr, Reg)| !registers::reads(expr).is_disjoint(&read);
        let (after, before): (Vec<_>, Vec<_>) = targets.into_iter().partition(reads_sets);
        part = self.projected(part, before)?;
        let sorting = Top { limit: None, offset: None, ..top };
        part = self.distinct(part, (distinct, None), &sorting);
        let keys = if ties { sorting.order.iter().map(copy_key).collect() } else { Vec::new() };
        part = self.topped(part, sorting, None)?;
        part = self.with_sets(part, sets)?;
        part = self.projected(part, after)?;
        part.ordered = true;
        self.topped(part, Top { order: keys, limit, offset, ties, locks: Vec::new() }, None)
    }
}
