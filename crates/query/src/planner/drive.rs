//! Conditions EXISTS that may drive the rows around them. With `EXISTS (SELECT FROM few WHERE few.k
//! = big.id)`, the distinct keys of few are read first, and big's rows are looked up by them.
//!
//! Such a condition is a semi join, and a join with the distinct rows of the subquery, too. Both
//! are planned, and the one of less cost stays. The second is tried only where the subquery is
//! expected to have fewer rows than those around it.
//!
//! What must hold:
//!
//! 1. The subquery reads the rows around it only in equalities with its own rows, as they are
//!    hashed. Then a row around it has one match at most among the distinct rows.
//! 2. Rows with different keys equal no common value. So both sides of an equality have one type,
//!    or types whose values compare as keys.
//! 3. No subquery of an expression is still to be planned. Planning places each once.

use super::Planner;
use super::cost;
use super::key_value::is_comparable;
use super::part::{Leaf, Part, Semi, Side, Wanted};
use crate::bound::FromItem;
use crate::bound::reads::item_reads;
use crate::plan::{JoinKind, Operator};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::Comparison;
use values::error::SqlError;

/// The most conditions of one FROM for which both plans are made.
const MOST: usize = 4;
/// The most further plans of one statement. Each plans the conditions within anew, so without a
/// bound their number would double with each level.
const MOST_IN_ALL: usize = 16;

/// The conditions of an EXISTS that may drive: those on its own rows, and its equalities.
struct Driving {
    inside: Vec<Expr>,
    equalities: Vec<Expr>,
    /// The inner side of each equality.
    keys: Vec<Expr>,
}

impl Planner<'_, '_> {
    /// Plans FROM with conditions that must all hold, some of them as joins. `outside`: registers
    /// filled before all of it.
    pub(super) fn join_tree(
        &mut self,
        item: FromItem,
        (conditions, mut semis): (Vec<Expr>, Vec<Semi>),
        outside: &Registers,
        wanted: Wanted<'_>,
    ) -> Result<Part, SqlError> {
        let may_drive = self.may_drive(&item, &conditions, &semis, outside);
        if may_drive.is_empty() {
            return self.joined_items(item, (conditions, semis, Vec::new()), outside, wanted);
        }
        let mut best = self.joined_items(
            item.clone(),
            (conditions.clone(), semis.clone(), Vec::new()),
            outside,
            wanted,
        )?;
        let (mut driving, mut taken) = (Vec::new(), 0);
        for at in may_drive {
            if self.drives == MOST_IN_ALL {
                break;
            }
            self.drives += 1;
            let mut others = semis.clone();
            driving.push(others.remove(at - taken));
            let (mut sides, mut all) = (Vec::new(), conditions.clone());
            for semi in &driving {
                let (side, equalities) = self.distinct_side(semi, &item, outside)?;
                sides.push(side);
                all.extend(equalities);
            }
            let part = self.joined_items(item.clone(), (all, others.clone(), sides), outside, wanted)?;
            if self.price(&part, wanted) < self.price(&best, wanted) {
                (best, semis, taken) = (part, others, taken + 1);
            } else {
                driving.pop();
            }
        }
        Ok(best)
    }

    /// The places of conditions that may drive the rows of an item of FROM at less cost.
    fn may_drive(
        &self,
        item: &FromItem,
        conditions: &[Expr],
        semis: &[Semi],
        outside: &Registers,
    ) -> Vec<usize> {
        if semis.is_empty() || !self.pending.is_empty() || self.drives == MOST_IN_ALL {
            return Vec::new();
        }
        let around = self.item_writes(item);
        let mut rows = None;
        let mut drives = |semi: &Semi| {
            let Some(of) = self.driven(semi, &around) else { return false };
            let rows = *rows.get_or_insert_with(|| self.estimate_item(item, conditions, outside).rows);
            self.estimate_item(&semi.from, &of.inside, outside).rows < rows
        };
        (0..semis.len()).filter(|&at| drives(&semis[at])).take(MOST).collect()
    }

    /// The conditions of an EXISTS, if it may drive the rows that fill some registers.
    fn driven(&self, semi: &Semi, around: &Registers) -> Option<Driving> {
        let mut read = Registers::default();
        item_reads(&semi.from, &mut read);
        semi.inner.iter().for_each(|inner| inner.reads(&mut read));
        if semi.kind != JoinKind::Semi || !read.is_disjoint(around) {
            return None;
        }
        let own = self.item_writes(&semi.from);
        let mut driving = Driving { inside: Vec::new(), equalities: Vec::new(), keys: Vec::new() };
        for condition in &semi.conditions {
            if registers::reads(condition).is_disjoint(around) {
                driving.inside.push(condition.clone());
                continue;
            }
            let (Comparison::Equal, left, right) = condition.as_comparison()? else { return None };
            let (reads_left, reads_right) = (registers::reads(left), registers::reads(right));
            let key = match (reads_left.is_disjoint(around), reads_right.is_disjoint(around)) {
                (true, false) if reads_right.is_disjoint(&own) => left,
                (false, true) if reads_left.is_disjoint(&own) => right,
                _ => return None,
            };
            if !is_comparable(left.type_(), right.type_()) || registers::reads(key).is_disjoint(&own) {
                return None;
            }
            driving.keys.push(key.clone());
            driving.equalities.push(condition.clone());
        }
        (!driving.keys.is_empty()).then_some(driving)
    }

    /// The distinct rows of an EXISTS that drives, and the equalities that join them.
    fn distinct_side(
        &mut self,
        semi: &Semi,
        item: &FromItem,
        outside: &Registers,
    ) -> Result<(Side, Vec<Expr>), SqlError> {
        let Some(Driving { inside, equalities, keys }) = self.driven(semi, &self.item_writes(item)) else {
            return Err(SqlError::internal("a condition that cannot drive"));
        };
        let distinct = self.values(&semi.from, keys.iter());
        let part =
            self.join_tree(semi.from.clone(), (inside, semi.inner.clone()), outside, Wanted::default())?;
        let rows = distinct.map_or(part.rows(), |distinct| distinct.min(part.rows())).max(1.0);
        let cost = part.cost() + part.rows() * cost::HASH_BUILD;
        let estimate = crate::plan::Estimate { rows, cost, ..part.plan.estimate };
        let part = Part::unordered(part.plan);
        let part = part.below(|input| Operator::Distinct { input, keys, keep: Vec::new() }, estimate);
        let leaf = Leaf::Planned(Box::new(part));
        let writes = self.leaf_writes(&leaf);
        Ok((Side { leaf, writes, needs: Registers::default(), join: None }, equalities))
    }

    /// The work for the rows that a query wants from a part, in the order that it wants.
    fn price(&self, part: &Part, wanted: Wanted<'_>) -> f64 {
        let estimate = part.plan.estimate;
        if wanted.order.is_empty() || part.ordered {
            return estimate.start + (estimate.cost - estimate.start) * wanted.share.of(estimate.rows);
        }
        let methods = self.context().methods;
        estimate.cost + wanted.otherwise.work(estimate.rows, wanted.share, methods)
    }
}
