//! Conditions EXISTS, NOT EXISTS and ANY that become semi and anti joins. They must hold by
//! themselves, and their subquery reads the rows around it.
//!
//! What must hold:
//!
//! 1. The subquery's rows are those of its FROM that meet its conditions. So it has no grouping, no
//!    aggregate, no set-returning function, no LIMIT and no row locks.
//! 2. Nothing else reads the condition's result. The binder gives each subquery of the text a
//!    register of its own, so no aggregate, window or sort key reads it, too.
//! 3. A NULL of ANY counts as false, because the condition has to be true.
//! 4. ANY whose operand is a constant is EXISTS with one more condition, and runs once. A NULL as
//!    operand has no comparison left, and the subquery may still fail.
//! 5. ANY over a subquery that reads no row around it is a join with its distinct rows
//!    ([`super::pending`]), which may drive the rows around it. It becomes a semi join only if that
//!    costs less: its rows are then looked up for each row around.

use std::sync::Arc;

use super::Planner;
use super::leaf::{Estimate, sources};
use super::part::{Leaf, Semi};
use super::pushdown::{Inlined, filtered, is_flat};
use super::stable::is_stable;
use crate::bound::reads::{item_reads, query_reads};
use crate::bound::{FromItem, Query, QueryBody, Select, Source, Sublink};
use crate::plan::{JoinKind, Reg, SubqueryKind};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::Volatility;
use runtime::hash::HashMap;

impl Semi {
    /// Adds the registers that it reads, its own included.
    pub(super) fn reads(&self, into: &mut Registers) {
        item_reads(&self.from, into);
        self.conditions.iter().for_each(|condition| registers::of_expr(condition, into));
        self.inner.iter().for_each(|inner| inner.reads(into));
    }
}

impl Planner<'_, '_> {
    /// Takes the conditions of a SELECT that become joins.
    pub(super) fn take_semis(&self, select: &mut Select) -> Vec<Semi> {
        let Some(from) = select.from.take() else { return Vec::new() };
        let semis = self.semis_of(&from, select);
        select.from = Some(from);
        semis
    }

    /// The same for a SELECT whose FROM was taken.
    pub(super) fn semis_of(&self, from: &FromItem, select: &mut Select) -> Vec<Semi> {
        let mut semis = Vec::new();
        if select.sublinks.is_empty() {
            return semis;
        }
        let may_be = |link: &Sublink| {
            matches!(link.kind, SubqueryKind::Exists | SubqueryKind::Quantified { all: false, .. })
                && has_rows_of_from(&link.query)
        };
        let links: HashMap<Reg, usize> =
            select.sublinks.iter().filter(|link| may_be(link)).map(|link| (link.output, 0)).collect();
        if links.is_empty() {
            return semis;
        }
        let readers = readers(select, links);
        let around = self.item_writes(from);
        let mut taken: HashMap<Reg, bool> = HashMap::default();
        for condition in &select.conditions {
            if let Some((register, negated)) = result_of(condition)
                && readers.get(&register) == Some(&1)
            {
                taken.insert(register, negated);
            }
        }
        let Select { sublinks, conditions, .. } = &mut *select;
        for link in sublinks.iter_mut().filter(|link| taken.get(&link.output) == Some(&false)) {
            test_constant(link, &around);
        }
        let outer = Around { from, conditions, writes: &around };
        sublinks.retain(|link| {
            let semi = taken.get(&link.output).and_then(|negated| self.semi(link, *negated, outer));
            match semi {
                Some(semi) => semis.push(semi),
                None => drop(taken.remove(&link.output)),
            }
            !taken.contains_key(&link.output)
        });
        select.conditions.retain(|condition| {
            !result_of(condition).is_some_and(|(register, _)| taken.contains_key(&register))
        });
        semis
    }

    /// A subquery's condition as a join, if it can become one.
    fn semi(&self, link: &Sublink, negated: bool, outer: Around<'_>) -> Option<Semi> {
        let around = outer.writes;
        let is_rows = has_rows_of_from(&link.query);
        let QueryBody::Select(select) = &link.query.body else { return None };
        let comparison = match &link.kind {
            SubqueryKind::Exists if is_rows => None,
            SubqueryKind::Quantified { all: false, comparison, .. }
                if is_rows && !negated && is_flat(&link.query) =>
            {
                Some(Inlined::of(&select.targets).condition(comparison)?)
            }
            _ => return None,
        };
        // EXISTS over a subquery that reads no row around it is the same for all rows.
        let mut read = Registers::default();
        query_reads(&link.query, &mut read);
        let is_looked_up =
            || comparison.as_ref().is_some_and(|equal| self.is_looked_up(select, equal, outer) == Some(true));
        if read.is_disjoint(around) && !is_looked_up() {
            return None;
        }
        let mut select = (**select).clone();
        let inner = self.take_semis(&mut select);
        let from = select.from?;
        let mut read = Registers::default();
        item_reads(&from, &mut read);
        inner.iter().for_each(|inner| inner.reads(&mut read));
        select.conditions.iter().chain(&comparison).for_each(|expr| registers::of_expr(expr, &mut read));
        let is_stable = |condition: &Expr| condition.volatility() < Volatility::Volatile;
        let is_join = !read.is_disjoint(around)
            && select.sublinks.is_empty()
            && select.conditions.iter().chain(&comparison).all(is_stable);
        let conditions = select.conditions.into_iter().chain(comparison).collect();
        let kind = if negated { JoinKind::Anti } else { JoinKind::Semi };
        is_join.then_some(Semi { from, conditions, inner, kind })
    }

    /// Whether a table's rows cost less to look up for each row around than to read whole. `None`
    /// if that is not known.
    fn is_looked_up(&self, select: &Select, equal: &Expr, outer: Around<'_>) -> Option<bool> {
        let FromItem::Source(source, Source::Table(table)) = select.from.as_ref()? else { return None };
        let own = self.source_writes(*source);
        let read: Registers = registers::reads(equal).difference(&own).copied().collect();
        let around = if read.is_empty() { None } else { outer.table(self, &read) }?;
        let leaf = Leaf::Table(*source, Arc::clone(table));
        let whole = self.estimate(&leaf, &select.conditions, &Registers::default());
        let conditions: Vec<Expr> = select.conditions.iter().chain([equal]).cloned().collect();
        let one = self.estimate(&leaf, &conditions, &read);
        Some(around.cost + around.rows * one.cost < whole.cost)
    }
}

/// The rows around a subquery.
#[derive(Clone, Copy)]
struct Around<'s> {
    from: &'s FromItem,
    conditions: &'s [Expr],
    /// The registers that FROM fills.
    writes: &'s Registers,
}

impl Around<'_> {
    /// The estimate of the table that fills these registers, under its own conditions.
    fn table(self, planner: &Planner<'_, '_>, read: &Registers) -> Option<Estimate> {
        let mut found = None;
        sources(self.from, &mut |source, of| {
            if let Source::Table(table) = of
                && read.is_subset(&planner.source_writes(source))
            {
                found = Some((source, table));
            }
        });
        let (source, table) = found?;
        let writes = planner.source_writes(source);
        let is_own = |condition: &&Expr| registers::reads(condition).is_subset(&writes);
        let own: Vec<Expr> = self.conditions.iter().filter(is_own).cloned().collect();
        let leaf = Leaf::Table(source, Arc::clone(table));
        Some(planner.estimate(&leaf, &own, &Registers::default()))
    }
}

/// The register that a condition tests, and whether it tests that it is false.
fn result_of(condition: &Expr) -> Option<(Reg, bool)> {
    match condition {
        Expr::Column { register, .. } => Some((*register, false)),
        Expr::Not(input) => match &**input {
            Expr::Column { register, .. } => Some((*register, true)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the rows of a subquery are those of its FROM that meet its conditions.
pub(super) fn has_rows_of_from(query: &Query) -> bool {
    let QueryBody::Select(select) = &query.body else { return false };
    query.tables.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.limit_sublinks.is_empty()
        && query.locks.is_empty()
        && select.from.is_some()
        && !select.grouped
        && select.windows.is_empty()
        && select.sets.is_empty()
}

/// Makes EXISTS of ANY with an operand that is a constant. `7 IN (SELECT a FROM t)` asks for a row
/// with `a = 7`. A condition that must hold counts a NULL of ANY as false, as it does with EXISTS.
fn test_constant(link: &mut Sublink, around: &Registers) {
    let SubqueryKind::Quantified { all: false, comparison, .. } = &link.kind else { return };
    let own: Registers = link.query.output.iter().map(|column| column.register).collect();
    let mut read = Registers::default();
    query_reads(&link.query, &mut read);
    let compared = registers::reads(comparison);
    let is_constant = !compared.is_empty()
        && compared.is_subset(&own)
        && comparison.volatility() < Volatility::Volatile
        && read.is_disjoint(around)
        && is_stable(&mut link.query);
    if is_constant {
        let comparison = comparison.clone();
        let query = std::mem::replace(&mut link.query, Query::none());
        link.query = filtered(query, vec![comparison]);
        link.kind = SubqueryKind::Exists;
    }
}

/// How many conditions, columns and other subqueries read each result.
fn readers(select: &Select, mut counts: HashMap<Reg, usize>) -> HashMap<Reg, usize> {
    let mut count = |read: &Registers| {
        for register in read {
            if let Some(count) = counts.get_mut(register) {
                *count += 1;
            }
        }
    };
    let pairs = select.targets.iter().chain(&select.groups).map(|(expr, _)| expr);
    pairs.chain(&select.conditions).chain(&select.having).for_each(|expr| count(&registers::reads(expr)));
    for link in &select.sublinks {
        let mut read = Registers::default();
        query_reads(&link.query, &mut read);
        registers::kind_reads(&link.kind, &mut read);
        count(&read);
    }
    counts
}
