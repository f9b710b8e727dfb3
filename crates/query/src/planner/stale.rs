//! Finds out what depends on a statement's locked rows, before the second look at them is planned
//! ([`super::second_look`]).
//!
//! What must hold:
//!
//! 1. A register is stale if a stale one decides its value, or decides whether a subquery runs that
//!    fills it. A register that is missed keeps a value of the row's old version.
//! 2. The passes repeat until they find nothing new, because staleness spreads through subqueries
//!    and outer joins.
//! 3. Numbers of flags count down from the largest one, so they meet no register of the statement.
//! 4. Too much staleness costs time only: the second look computes the same value again.

use runtime::hash::HashMap;

use super::Planner;
use super::from::{join_conditions, table_of};
use super::guard;
use crate::bound::reads;
use crate::bound::{FromItem, Select, Source, SourceId, Sublink};
use crate::plan::{Guard, JoinKind, Reg};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use values::error::SqlError;

/// The dependencies found so far.
pub(super) struct Stale<'q> {
    /// The sources whose rows are locked.
    pub(super) targets: &'q [SourceId],
    /// Registers whose values depend on a locked row.
    pub(super) registers: Registers,
    /// Subqueries to run again.
    pub(super) links: Vec<Sublink>,
    /// Registers that are filled when the subqueries run.
    pub(super) around: Registers,
}

impl Stale<'_> {
    pub(super) fn touches(&self, expr: &Expr) -> bool {
        !registers::reads(expr).is_disjoint(&self.registers)
    }

    /// Chooses the subqueries to run again: those that read a stale register, and those for which a
    /// stale register decides whether they run.
    pub(super) fn choose(&mut self, sublinks: &[Sublink], exprs: &[&Expr]) -> Result<(), SqlError> {
        let outputs: Registers = sublinks.iter().map(|link| link.output).collect();
        // Flags get numbers that no register of the statement has, because the second look's plan
        // makes its own.
        let mut flag = Reg::MAX;
        let mut operands: HashMap<Reg, Registers> = HashMap::default();
        for link in sublinks {
            registers::kind_reads(&link.kind, operands.entry(link.output).or_default());
        }
        let guards = guard::of(
            exprs.iter().copied(),
            |register| outputs.contains(&register),
            |register| operands.get(&register),
            || {
                flag -= 1;
                flag
            },
        )?;
        let mut guards: HashMap<Reg, Option<Guard>> = guards.into_iter().collect();
        let mut open = Vec::with_capacity(sublinks.len());
        for link in sublinks {
            let mut read = Registers::default();
            reads::sublink_reads(link, &mut read);
            open.push((link, read, guards.remove(&link.output).flatten()));
        }
        let mut stale = self.registers.clone();
        loop {
            let before = self.links.len();
            for (link, read, guard) in &open {
                let mut touched = !read.is_disjoint(&stale);
                if let Some(Guard { flags, conditions }) = guard {
                    for (expr, flag) in flags {
                        if !registers::reads(expr).is_disjoint(&stale) {
                            stale.insert(*flag);
                        }
                    }
                    touched |= conditions.iter().any(|part| !registers::reads(part).is_disjoint(&stale));
                }
                if touched && self.registers.insert(link.output) {
                    stale.insert(link.output);
                    self.links.push((*link).clone());
                }
            }
            if self.links.len() == before {
                return Ok(());
            }
        }
    }

    /// Repeats a pass until it finds nothing new. A subquery that runs again may decide whether an
    /// outer join still finds its row.
    pub(super) fn until_stable(
        &mut self,
        mut pass: impl FnMut(&mut Self) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        loop {
            let before = self.registers.len();
            pass(self)?;
            if self.registers.len() == before {
                return Ok(());
            }
        }
    }

    /// Adds the columns of FROM that depend on a locked row: those computed by LATERAL subqueries,
    /// and those of nullable sides of outer joins.
    pub(super) fn spread(&mut self, planner: &Planner<'_, '_>, item: &FromItem) -> Result<(), SqlError> {
        match item {
            FromItem::Join { kind, left, right, condition, .. } => {
                let (first, second) = self.sides(*kind, left, right);
                self.spread(planner, first)?;
                self.spread(planner, second)?;
                let is_outer = *kind != JoinKind::Inner;
                if is_outer && (self.touches_any(condition) || self.may_vanish(planner, second)) {
                    self.registers.extend(planner.item_writes(second));
                }
                Ok(())
            }
            FromItem::Source(_, Source::Query(query)) => {
                planner.merged(query).map_or(Ok(()), |select| self.spread_select(planner, select))
            }
            FromItem::Source(..) => Ok(()),
        }
    }

    pub(super) fn spread_select(
        &mut self,
        planner: &Planner<'_, '_>,
        select: &Select,
    ) -> Result<(), SqlError> {
        select.from.iter().try_for_each(|from| self.spread(planner, from))?;
        let targets = select.targets.iter().map(|(expr, _)| expr);
        let mut exprs: Vec<&Expr> = select.conditions.iter().chain(targets).collect();
        select.from.iter().for_each(|from| join_conditions(from, &mut exprs));
        self.choose(&select.sublinks, &exprs)?;
        for (expr, register) in &select.targets {
            if self.touches(expr) {
                self.registers.insert(*register);
            }
        }
        Ok(())
    }

    fn touches_any(&self, conditions: &[Expr]) -> bool {
        conditions.iter().any(|condition| self.touches(condition))
    }

    /// Whether a condition inside an item of FROM may reject its row.
    fn may_vanish(&self, planner: &Planner<'_, '_>, item: &FromItem) -> bool {
        match item {
            FromItem::Join { kind: JoinKind::Inner, left, right, condition, .. } => {
                self.touches_any(condition)
                    || self.may_vanish(planner, left)
                    || self.may_vanish(planner, right)
            }
            FromItem::Join { kind, left, right, .. } => {
                self.may_vanish(planner, self.sides(*kind, left, right).0)
            }
            FromItem::Source(_, Source::Query(query)) => planner.merged(query).is_some_and(|select| {
                self.touches_any(&select.conditions)
                    || select.from.as_ref().is_some_and(|from| self.may_vanish(planner, from))
            }),
            FromItem::Source(..) => false,
        }
    }

    /// The conditions of inner joins that apply to all rows of FROM.
    pub(super) fn inner_conditions<'f>(&self, item: &'f FromItem, into: &mut Vec<&'f Expr>) {
        let FromItem::Join { kind, left, right, condition, .. } = item else { return };
        let (first, second) = self.sides(*kind, left, right);
        self.inner_conditions(first, into);
        if *kind == JoinKind::Inner {
            into.extend(condition);
            self.inner_conditions(second, into);
        }
    }

    /// The sides of a join. The second side of an outer join loses its row if the condition no
    /// longer holds. FULL JOIN keeps the locked row.
    pub(super) fn sides<'f>(
        &self,
        kind: JoinKind,
        left: &'f FromItem,
        right: &'f FromItem,
    ) -> (&'f FromItem, &'f FromItem) {
        let locks = |item| self.targets.iter().any(|target| table_of(item, *target).is_some());
        match kind {
            JoinKind::Right => (right, left),
            JoinKind::Full if locks(right) && !locks(left) => (right, left),
            _ => (left, right),
        }
    }
}
