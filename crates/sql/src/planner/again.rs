//! The plan that looks at a row again when a wait ended with a newer version of it (PostgreSQL's EvalPlanQual).
//!
//! The registers then hold the newest versions of the locked rows, and the other tables' rows as they were joined. The
//! statement's conditions, computed columns and subqueries are evaluated again over them. No new row is sought in the
//! place of one that was joined. What must hold:
//!
//! 1. Only what depends on a locked row (what reads a *stale* register) is evaluated again. Everything else would give
//!    what it gave: subqueries run under the statement's snapshot. Its registers stay. The registers of an outer join's
//!    nullable side are stale where a locked row decides whether that side still has its row.
//! 2. What the plan reads is kept by the nodes below the one that runs it: `registers::fill` counts it as that node's.
//! 3. A subquery of FROM that PostgreSQL merges into the query around it is evaluated again as well; the row of any
//!    other one, of a function or of a WITH query stays as it was.

use std::collections::HashMap;
use std::sync::Arc;

use super::guard;
use super::join::{Part, nested_loop};
use super::query::Planner;
use super::reads;
use super::registers::{self, Registers};
use crate::bind::{Distinct, FromItem, Query, QueryBody, Select, Source, SourceId, Sublink};
use crate::catalog::Table;
use crate::error::SqlError;
use crate::expr::Expr;
use crate::functions::{self, Volatility};
use crate::plan::{Again, Assignment, Guard, JoinKind, Match, Plan, Reg, SubqueryKind};
use crate::types::Type;

/// The input of a node that changes or locks rows, and the expressions that the node computes from it.
pub(super) struct Parts<'q> {
    /// The sources whose rows it locks.
    pub(super) targets: &'q [SourceId],
    pub(super) from: &'q FromItem,
    /// WHERE.
    pub(super) conditions: &'q [Expr],
    /// SET.
    pub(super) assigned: &'q [Assignment],
    /// Columns computed below the node.
    pub(super) computed: &'q [(Expr, Reg)],
    /// The subqueries of all these.
    pub(super) sublinks: &'q [Sublink],
}

/// Facts that are found out before any of it is planned.
struct Stale<'q> {
    /// The sources whose rows are locked.
    targets: &'q [SourceId],
    /// Registers whose values depend on a locked row.
    registers: Registers,
    /// Subqueries to run again.
    links: Vec<Sublink>,
    /// Registers that are filled when they run.
    around: Registers,
}

impl Stale<'_> {
    fn touches(&self, expr: &Expr) -> bool {
        !registers::reads(expr).is_disjoint(&self.registers)
    }

    /// Chooses the subqueries to run again: those that read a stale register, or for which one decides whether they
    /// are wanted at all.
    fn choose(&mut self, sublinks: &[Sublink], exprs: &[&Expr]) -> Result<(), SqlError> {
        let outputs: Registers = sublinks.iter().map(|link| link.output).collect();
        // Flags get numbers that no register of the statement has: this plan makes its own.
        let mut flag = Reg::MAX;
        let mut operands: HashMap<Reg, Registers> = HashMap::new();
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
            let mut read = Registers::new();
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

    /// Repeats a pass until it notes nothing new: a subquery that runs again may decide whether an outer join still finds
    /// its row.
    fn settle(&mut self, mut pass: impl FnMut(&mut Self) -> Result<(), SqlError>) -> Result<(), SqlError> {
        loop {
            let before = self.registers.len();
            pass(self)?;
            if self.registers.len() == before {
                return Ok(());
            }
        }
    }

    /// Notes the columns of FROM that depend on a locked row: those that LATERAL subqueries compute, and those of the
    /// nullable sides of outer joins.
    fn spread(&mut self, planner: &Planner<'_, '_>, item: &FromItem) -> Result<(), SqlError> {
        match item {
            FromItem::Join { kind, left, right, condition } => {
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

    fn spread_select(&mut self, planner: &Planner<'_, '_>, select: &Select) -> Result<(), SqlError> {
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

    /// Whether a condition within an item of FROM may leave no row of it.
    fn may_vanish(&self, planner: &Planner<'_, '_>, item: &FromItem) -> bool {
        match item {
            FromItem::Join { kind: JoinKind::Inner, left, right, condition } => {
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

    /// The conditions of inner joins that all rows of FROM meet.
    fn inner_conditions<'f>(&self, item: &'f FromItem, into: &mut Vec<&'f Expr>) {
        let FromItem::Join { kind, left, right, condition } = item else { return };
        let (first, second) = self.sides(*kind, left, right);
        self.inner_conditions(first, into);
        if *kind == JoinKind::Inner {
            into.extend(condition);
            self.inner_conditions(second, into);
        }
    }

    /// The sides of a join. The second one of an outer join loses its row when the condition no longer holds; FULL JOIN
    /// keeps the locked one.
    fn sides<'f>(
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

/// A condition that is EXISTS, NOT EXISTS or ANY and that PostgreSQL makes a join of.
struct Candidate<'q> {
    link: &'q Sublink,
    comparison: Option<&'q Expr>,
    negated: bool,
}

/// Subqueries whose rows were joined.
struct Joined {
    matches: Vec<Match>,
    /// Those whose results are not computed by running them.
    without: Vec<Reg>,
}

/// The SELECT of an EXISTS that PostgreSQL makes a join of.
fn joinable(query: &Query) -> Option<&Select> {
    let QueryBody::Select(select) = &query.body else { return None };
    let whole = query.tables.is_empty()
        && query.offset.is_none()
        && query.locks.is_empty()
        && select.from.is_some()
        && select.having.is_empty()
        && select.aggregates.is_empty()
        && select.windows.is_empty()
        && select.sets.is_empty();
    whole.then_some(&**select)
}

/// The conditions of all joins of FROM.
fn join_conditions<'q>(item: &'q FromItem, into: &mut Vec<&'q Expr>) {
    if let FromItem::Join { left, right, condition, .. } = item {
        into.extend(condition);
        join_conditions(left, into);
        join_conditions(right, into);
    }
}

/// The conditions of the outer joins of FROM and of the joins below them.
fn outer_conditions<'q>(item: &'q FromItem, into: &mut Vec<&'q Expr>) {
    match item {
        FromItem::Join { kind: JoinKind::Inner, left, right, .. } => {
            outer_conditions(left, into);
            outer_conditions(right, into);
        }
        FromItem::Join { .. } => join_conditions(item, into),
        FromItem::Source(..) => {}
    }
}

impl Planner<'_, '_> {
    /// The plan that is evaluated again over the newest versions of the locked rows. None: nothing is. `outside`:
    /// registers of the queries around this one.
    pub(super) fn again(
        &mut self,
        parts: &Parts<'_>,
        outside: &Registers,
    ) -> Result<Option<Box<Again>>, SqlError> {
        let mut stale = Stale {
            targets: parts.targets,
            registers: Registers::new(),
            links: Vec::new(),
            around: outside.clone(),
        };
        for target in parts.targets {
            stale.registers.extend(self.source_writes(*target));
        }
        let mut fresh: Vec<Reg> = stale.registers.iter().copied().collect();
        fresh.sort_unstable();
        self.inner_writes(parts.from, &mut stale.around);
        let values = parts.assigned.iter().map(|assignment| &assignment.value);
        let computed = parts.computed.iter().map(|(expr, _)| expr);
        let mut exprs: Vec<&Expr> = parts.conditions.iter().chain(values).chain(computed).collect();
        join_conditions(parts.from, &mut exprs);
        // No join depends on a candidate: its result is a condition of all rows.
        let candidates = candidates(parts, &stale);
        let apart: Registers = candidates.iter().map(|candidate| candidate.link.output).collect();
        let others: Vec<Sublink> =
            parts.sublinks.iter().filter(|link| !apart.contains(&link.output)).cloned().collect();
        stale.settle(|stale| {
            stale.spread(self, parts.from)?;
            stale.choose(&others, &exprs)
        })?;
        let joined = self.matches(parts.from, &candidates, &fresh, &stale)?;
        stale.registers.extend(joined.matches.iter().map(|part| part.output));
        let others: Vec<Sublink> =
            parts.sublinks.iter().filter(|link| !joined.without.contains(&link.output)).cloned().collect();
        stale.choose(&others, &exprs)?;
        let before = self.with_sublinks(std::mem::take(&mut stale.links), &stale.around.clone())?;
        let planned = self.again_with_links(parts, &mut stale);
        self.pending = before;
        let plan = planned?;
        let plan = (!matches!(plan, Plan::OneRow)).then_some(plan);
        let again = Again { fresh, matches: joined.matches, plan };
        Ok((again.plan.is_some() || !again.matches.is_empty()).then(|| Box::new(again)))
    }

    /// The candidates whose row was found by the join: it stays the one. NOT EXISTS found none, and none is sought. A
    /// subquery that is a join here too has its row in the registers.
    fn matches(
        &mut self,
        from: &FromItem,
        candidates: &[Candidate<'_>],
        fresh: &[Reg],
        stale: &Stale<'_>,
    ) -> Result<Joined, SqlError> {
        let mut joined = Joined { matches: Vec::new(), without: Vec::new() };
        for candidate in candidates {
            let link = candidate.link;
            let mut read = Registers::new();
            reads::sublink_reads(link, &mut read);
            if read.is_disjoint(&stale.registers) {
                continue;
            }
            if candidate.negated {
                joined.without.push(link.output);
                continue;
            }
            let subquery = self.query(link.query.clone(), &stale.around)?.plan;
            let hashed = matches!(link.kind, SubqueryKind::Quantified { hash: Some(_), .. });
            if hashed && registers::free(&subquery).is_empty() {
                continue;
            }
            joined.without.push(link.output);
            // It reads what FROM gives anew, beside the locked rows themselves.
            let derived =
                read.intersection(&stale.registers).any(|register| fresh.binary_search(register).is_err());
            let plan = self.matched(candidate, derived.then_some(from), stale)?;
            let comparison = candidate.comparison.cloned();
            joined.matches.push(Match { output: link.output, subquery, comparison, plan });
        }
        Ok(joined)
    }

    /// The condition under which a subquery's row matches a newer version. `from`: what is evaluated again before it.
    fn matched(
        &mut self,
        candidate: &Candidate<'_>,
        from: Option<&FromItem>,
        stale: &Stale<'_>,
    ) -> Result<Option<Plan>, SqlError> {
        let mut inner = Stale {
            targets: stale.targets,
            registers: stale.registers.clone(),
            links: if from.is_some() { stale.links.clone() } else { Vec::new() },
            around: stale.around.clone(),
        };
        let select = match candidate.comparison {
            None => joinable(&candidate.link.query),
            Some(_) => self.merged(&candidate.link.query),
        };
        if let Some(select) = select {
            inner.settle(|inner| inner.spread_select(self, select))?;
            select.from.iter().for_each(|from| self.inner_writes(from, &mut inner.around));
        }
        let before = self.with_sublinks(std::mem::take(&mut inner.links), &inner.around.clone())?;
        let planned = (|| {
            let mut plan = Plan::OneRow;
            if let Some(from) = from {
                // The plan of all rows tests the conditions.
                plan = self.rejoined(plan, from, &mut Vec::new(), &inner)?;
            }
            if let Some(select) = select {
                plan = self.selected(plan, select, &inner)?;
            }
            let comparison = candidate.comparison.filter(|comparison| inner.touches(comparison));
            self.filtered(one(plan), comparison.into_iter().cloned().collect())
        })();
        self.pending = before;
        let plan = planned?.plan;
        Ok((!matches!(plan, Plan::OneRow)).then_some(plan))
    }

    fn again_with_links(&mut self, parts: &Parts<'_>, stale: &mut Stale<'_>) -> Result<Plan, SqlError> {
        let mut conditions = Vec::new();
        let plan = self.rejoined(Plan::OneRow, parts.from, &mut conditions, stale)?;
        conditions.extend(self.touched(parts.conditions, stale));
        let part = self.filtered(one(plan), conditions)?;
        let part = self.attached(part, parts.assigned.iter().map(|assignment| &assignment.value))?;
        let mut computed: Vec<(Expr, Reg)> = Vec::new();
        for (expr, register) in parts.computed {
            if stale.touches(expr) {
                stale.registers.insert(*register);
                computed.push((expr.clone(), *register));
            }
        }
        let part = self.attach_bare(part, &computed);
        Ok(self.projected(part, computed)?.plan)
    }

    /// FROM again, behind `left`. Its conditions go to `conditions`, except those of outer joins.
    fn rejoined(
        &mut self,
        left: Plan,
        item: &FromItem,
        conditions: &mut Vec<Expr>,
        stale: &Stale<'_>,
    ) -> Result<Plan, SqlError> {
        match item {
            FromItem::Join { kind: JoinKind::Inner, left: first, right: second, condition } => {
                let left = self.rejoined(left, first, conditions, stale)?;
                let left = self.rejoined(left, second, conditions, stale)?;
                conditions.extend(self.touched(condition, stale));
                Ok(left)
            }
            FromItem::Join { kind, left: first, right: second, condition } => {
                let (kept, other) = stale.sides(*kind, first, second);
                let left = self.rejoined(left, kept, conditions, stale)?;
                let mut on = self.touched(condition, stale);
                if *kind == JoinKind::Full && !on.is_empty() {
                    // The other side's row that was joined with none stays.
                    let Some(absent) = self.absent(kept) else { return Ok(left) };
                    on = vec![Expr::Or(vec![absent, Expr::And(on)])];
                }
                let mut registers: Vec<Reg> = self.item_writes(other).into_iter().collect();
                registers.sort_unstable();
                let joined = Plan::Joined { registers, present: None };
                let mut right = self.rejoined(joined, other, &mut on, stale)?;
                if on.is_empty() && matches!(right, Plan::Joined { .. }) {
                    return Ok(left);
                }
                self.mark_present(&mut right, other);
                let right = self.filtered(one(right), on)?;
                Ok(nested_loop(JoinKind::Left, left, right.plan, None))
            }
            FromItem::Source(_, Source::Query(query)) => match self.merged(query) {
                Some(select) => self.selected(left, select, stale),
                None => Ok(left),
            },
            FromItem::Source(..) => Ok(left),
        }
    }

    /// A merged subquery again.
    fn selected(&mut self, left: Plan, select: &Select, stale: &Stale<'_>) -> Result<Plan, SqlError> {
        let mut own = Vec::new();
        let left = match &select.from {
            Some(from) => self.rejoined(left, from, &mut own, stale)?,
            None => left,
        };
        own.extend(self.touched(&select.conditions, stale));
        let part = self.filtered(one(left), own)?;
        let computed = select.targets.iter().filter(|(expr, _)| stale.touches(expr)).cloned();
        Ok(self.projected(part, computed.collect())?.plan)
    }

    /// The conditions that read a stale register. `x IN (subquery)` that the planner makes a join compares with the
    /// row that was joined: the subquery does not run again, and its registers are not this plan's own.
    fn touched(&mut self, conditions: &[Expr], stale: &Stale<'_>) -> Vec<Expr> {
        let mut touched = Vec::new();
        for condition in conditions.iter().filter(|condition| stale.touches(condition)) {
            let Some(found) = self.semi_join(condition) else {
                touched.push(condition.clone());
                continue;
            };
            let kind = self.pending.remove(&found).map(|pending| pending.kind);
            if let Some(SubqueryKind::Quantified { hash: Some(pairs), .. }) = kind {
                let equal =
                    pairs.into_iter().map(|(left, right)| functions::operator("=", Some(left), right).ok());
                touched.extend(equal.flatten());
            }
        }
        touched
    }

    /// Where something is computed from the rows of an outer join's empty side, it must show whether there was one.
    fn mark_present(&mut self, plan: &mut Plan, item: &FromItem) {
        let computes = matches!(plan, Plan::Project { .. } | Plan::Subquery { .. });
        let mut node = plan;
        loop {
            match node {
                Plan::Project { input, .. } | Plan::Filter { input, .. } | Plan::Subquery { input, .. } => {
                    node = input;
                }
                Plan::NestedLoop { left, .. } => node = left,
                Plan::Joined { present, .. } if computes => {
                    *present = self.first_table(item).map(|source| self.binder.identify(source).key);
                    return;
                }
                _ => return,
            }
        }
    }

    /// Whether an outer join found no row of an item of FROM. None: the registers can't tell.
    fn absent(&mut self, item: &FromItem) -> Option<Expr> {
        match item {
            FromItem::Join { kind: JoinKind::Full, left, right, .. } => {
                let sides: Vec<Expr> =
                    [left, right].into_iter().filter_map(|side| self.absent(side)).collect();
                (!sides.is_empty()).then_some(Expr::And(sides))
            }
            FromItem::Join { kind: JoinKind::Right, right, .. } => self.absent(right),
            FromItem::Join { kind: JoinKind::Left, left, .. } => self.absent(left),
            FromItem::Join { left, right, .. } => self.absent(left).or_else(|| self.absent(right)),
            FromItem::Source(_, Source::Query(query)) => self.absent(self.merged(query)?.from.as_ref()?),
            FromItem::Source(..) => {
                let key = self.binder.identify(self.first_table(item)?).key;
                Some(Expr::NullTest { input: Box::new(Expr::column(key, Type::BYTEA)), negated: false })
            }
        }
    }

    /// The SELECT of a subquery in FROM, if PostgreSQL merges it into the query around it.
    fn merged<'q>(&self, query: &'q Query) -> Option<&'q Select> {
        let QueryBody::Select(select) = &query.body else { return None };
        let whole = query.tables.is_empty()
            && query.order.is_empty()
            && query.limit.is_none()
            && query.offset.is_none()
            && query.locks.is_empty()
            && !select.grouped
            && select.windows.is_empty()
            && select.sets.is_empty()
            && matches!(select.distinct, Distinct::No)
            && select.targets.iter().all(|(expr, _)| expr.volatility() < Volatility::Volatile)
            && !self.joins_by_outside(select);
        whole.then_some(&**select)
    }

    /// Whether the condition of an outer join, or of a join below one, reads the queries around the SELECT.
    fn joins_by_outside(&self, select: &Select) -> bool {
        let Some(from) = &select.from else { return false };
        let mut own: Registers = select.sublinks.iter().map(|link| link.output).collect();
        self.inner_writes(from, &mut own);
        let mut outer = Vec::new();
        outer_conditions(from, &mut outer);
        outer.into_iter().any(|condition| !registers::reads(condition).is_subset(&own))
    }

    /// A stored table that has a row whenever the item has one.
    fn first_table(&self, item: &FromItem) -> Option<SourceId> {
        match item {
            FromItem::Source(source, Source::Table(table)) => (!table.is_virtual()).then_some(*source),
            FromItem::Source(_, Source::Query(query)) => self.first_table(self.merged(query)?.from.as_ref()?),
            FromItem::Source(..) => None,
            FromItem::Join { kind: JoinKind::Full, .. } => None,
            FromItem::Join { kind: JoinKind::Right, right, .. } => self.first_table(right),
            FromItem::Join { kind: JoinKind::Inner, left, right, .. } => {
                self.first_table(left).or_else(|| self.first_table(right))
            }
            FromItem::Join { left, .. } => self.first_table(left),
        }
    }

    /// Every register that FROM and its merged subqueries fill.
    fn inner_writes(&self, item: &FromItem, into: &mut Registers) {
        into.extend(self.item_writes(item));
        match item {
            FromItem::Join { left, right, .. } => {
                self.inner_writes(left, into);
                self.inner_writes(right, into);
            }
            FromItem::Source(_, Source::Query(query)) => {
                if let Some(from) = self.merged(query).and_then(|select| select.from.as_ref()) {
                    self.inner_writes(from, into);
                }
            }
            FromItem::Source(..) => {}
        }
    }
}

/// The conditions of all rows that PostgreSQL makes joins of.
fn candidates<'q>(parts: &Parts<'q>, stale: &Stale<'_>) -> Vec<Candidate<'q>> {
    let mut conditions: Vec<&Expr> = parts.conditions.iter().collect();
    stale.inner_conditions(parts.from, &mut conditions);
    let candidate = |condition: &Expr| {
        let (negated, register) = match condition {
            Expr::Column { register, .. } => (false, *register),
            Expr::Not(input) => match &**input {
                Expr::Column { register, .. } => (true, *register),
                _ => return None,
            },
            _ => return None,
        };
        let link = parts.sublinks.iter().find(|link| link.output == register)?;
        match &link.kind {
            SubqueryKind::Exists if joinable(&link.query).is_some() => {
                Some(Candidate { link, comparison: None, negated })
            }
            SubqueryKind::Quantified { all: false, comparison, .. } if !negated => {
                Some(Candidate { link, comparison: Some(comparison), negated })
            }
            _ => None,
        }
    };
    conditions.into_iter().filter_map(candidate).collect()
}

fn one(plan: Plan) -> Part {
    Part { plan, rows: 1.0, cost: 0.0, ordered: false }
}

/// The stored table that a source of FROM is.
pub(super) fn table_of(item: &FromItem, wanted: SourceId) -> Option<Arc<Table>> {
    match item {
        FromItem::Source(source, Source::Table(table)) => (*source == wanted).then(|| Arc::clone(table)),
        FromItem::Source(..) => None,
        FromItem::Join { left, right, .. } => table_of(left, wanted).or_else(|| table_of(right, wanted)),
    }
}
