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

use super::Planner;
use super::part::Semi;
use super::pushdown::{Inlined, is_flat};
use crate::bound::reads::{item_reads, query_reads};
use crate::bound::{FromItem, Query, QueryBody, Select, Sublink};
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
        select.sublinks.retain(|link| {
            let semi = taken.get(&link.output).and_then(|negated| self.semi(link, *negated, &around));
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
    fn semi(&self, link: &Sublink, negated: bool, around: &Registers) -> Option<Semi> {
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
        // The result of a subquery that reads no row around it is the same for all rows.
        let mut read = Registers::default();
        query_reads(&link.query, &mut read);
        if read.is_disjoint(around) {
            return None;
        }
        let mut select = (**select).clone();
        let inner = self.take_semis(&mut select);
        let from = select.from?;
        let mut read = Registers::default();
        item_reads(&from, &mut read);
        inner.iter().for_each(|inner| inner.reads(&mut read));
        select.conditions.iter().for_each(|condition| registers::of_expr(condition, &mut read));
        let is_stable = |condition: &Expr| condition.volatility() < Volatility::Volatile;
        let is_join = !read.is_disjoint(around)
            && select.sublinks.is_empty()
            && select.conditions.iter().chain(&comparison).all(is_stable);
        let conditions = select.conditions.into_iter().chain(comparison).collect();
        let kind = if negated { JoinKind::Anti } else { JoinKind::Semi };
        is_join.then_some(Semi { from, conditions, inner, kind })
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
