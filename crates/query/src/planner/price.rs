//! Prices: which source of an inner join comes next, and the cost of each.
//!
//! A candidate's cost is computed again only if other conditions apply to it.
//!
//! What must hold:
//!
//! 1. A candidate is priced only once the registers that it needs are filled.
//! 2. A source that may give rows without end comes first, because the first side is read only as
//!    far as rows are asked for.
//! 3. A search over many candidates has safe points of work, so it ends at its budget.

use super::Planner;
use super::cost;
use super::part::{Candidate, Conditions, Known, Leaf, Part, Wanted};
use crate::bound::{FromItem, Source};
use crate::plan::Reg;
use crate::registers::Registers;
use expressions::expr::Expr;
use values::error::SqlError;

/// Work of checking a condition for a candidate, in ns: some ten nanoseconds.
const LOOKING: usize = 32;

impl Planner<'_, '_> {
    /// The leaf to join next: the cheapest one whose needs are met. A recursion comes first, since
    /// the first side is read only as far as rows are asked for.
    pub(super) fn cheapest(
        &mut self,
        candidates: &mut [Candidate],
        conditions: &Conditions,
        current: Option<&Part>,
        available: &Registers,
    ) -> Result<Option<usize>, SqlError> {
        let left_rows = current.map_or(1.0, |part| part.rows);
        let is_first = candidates.iter().all(|candidate| candidate.leaf.is_some());
        let mut best: Option<(f64, usize)> = None;
        for (index, candidate) in candidates.iter_mut().enumerate() {
            values::work::tick(LOOKING * (1 + conditions.list.len()))?;
            let Some(leaf) = &candidate.leaf else { continue };
            if !candidate.needs.is_subset(available) {
                continue;
            }
            let (mut own, mut joining) = (Vec::new(), Vec::new());
            for (index, required) in conditions.required.iter().enumerate() {
                let is_there =
                    |register: &Reg| available.contains(register) || candidate.writes.contains(register);
                if !conditions.used[index] && required.iter().all(is_there) {
                    let touches = required.iter().any(|register| available.contains(register));
                    if touches { &mut joining } else { &mut own }.push(index);
                }
            }
            let known = match candidate.known.take() {
                Some(known) if known.own == own && known.joining == joining => known,
                _ => {
                    let of = |list: &[usize]| -> Vec<Expr> {
                        list.iter().map(|&index| conditions.list[index].clone()).collect()
                    };
                    let (own_list, joining_list) = (of(&own), of(&joining));
                    let run = self.run_cost(leaf, &own_list, &joining_list, available);
                    let hashed = !self.hash_keys(&joining_list, available, &candidate.writes).is_empty();
                    let hashed = hashed.then(|| self.hash_cost(leaf, &own_list, available));
                    Known { own, joining, run, hashed }
                }
            };
            let mut price = left_rows * known.run;
            if current.is_some() {
                if let Some(hashed) = known.hashed {
                    price = price.min(hashed + left_rows * cost::HASH_PROBE);
                } else if known.joining.is_empty() {
                    // A cross product makes all later joins more expensive, so it comes last.
                    price *= 100.0;
                }
            }
            if is_first && matches!(leaf, Leaf::Planned(part) if self.may_be_endless(&part.plan)) {
                price = 0.0;
            }
            candidate.known = Some(known);
            if best.is_none_or(|(least, _)| price < least) {
                best = Some((price, index));
            }
        }
        Ok(best.map(|(_, index)| index))
    }

    /// The cost of running a leaf for one of the rows so far.
    pub(super) fn run_cost(&self, leaf: &Leaf, own: &[Expr], joining: &[Expr], available: &Registers) -> f64 {
        match leaf {
            Leaf::Table(source, table) => {
                let conditions: Vec<Expr> = own.iter().chain(joining).cloned().collect();
                let access = self.search(*source, table, &conditions, available, Wanted::default()).best();
                access.cost + access.rows * cost::ROW
            }
            other => self.estimate(other, own).1,
        }
    }

    /// The cost of building a hash table of a leaf's rows.
    pub(super) fn hash_cost(&self, leaf: &Leaf, own: &[Expr], available: &Registers) -> f64 {
        let (rows, price) = match leaf {
            Leaf::Table(source, table) => {
                let access = self.search(*source, table, own, available, Wanted::default()).best();
                (access.rows, access.cost)
            }
            other => self.estimate(other, own),
        };
        price + rows * cost::HASH_BUILD
    }

    /// Estimated rows and cost of a leaf that is not a table.
    fn estimate(&self, leaf: &Leaf, own: &[Expr]) -> (f64, f64) {
        let kept: f64 = own.iter().map(cost::selectivity).product();
        match leaf {
            Leaf::Planned(part) => ((part.rows * kept).max(1.0), part.cost),
            Leaf::Table(_, table) => {
                let rows = cost::table_rows(self.context(), table);
                ((rows * kept).max(1.0), rows)
            }
            Leaf::Outer(join) => {
                let rows = self.item_rows(&join.1).max(self.item_rows(&join.2));
                ((rows * kept).max(1.0), rows * 2.0)
            }
            Leaf::Query(_) => (100.0 * kept.max(0.01), 1000.0),
        }
    }

    fn item_rows(&self, item: &FromItem) -> f64 {
        match item {
            FromItem::Source(_, Source::Table(table)) => cost::table_rows(self.context(), table),
            FromItem::Source(..) => 100.0,
            FromItem::Join { left, right, .. } => self.item_rows(left).max(self.item_rows(right)),
        }
    }
}
