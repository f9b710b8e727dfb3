//! The plan of the second look: it evaluates a row again after a wait for its lock ended with a
//! newer version (PostgreSQL's EvalPlanQual).
//!
//! The registers then hold the newest versions of the locked rows, and the other tables' rows as
//! they were joined. The plan evaluates the statement's conditions, computed columns and subqueries
//! again over them. It searches no new row to replace a joined one. What must hold:
//!
//! 1. Only expressions that depend on a locked row (that read a *stale* register) are evaluated
//!    again. All others would return the same, since subqueries run under the statement's snapshot;
//!    their registers stay. If a locked row decides whether an outer join's nullable side has a
//!    row, the registers of that side are stale.
//! 2. The nodes below the one that runs the plan keep the registers that the plan reads:
//!    `registers::fill` counts them as read by that node.
//! 3. A subquery of FROM that PostgreSQL merges into the query around it is evaluated again, too.
//!    The row of any other subquery, of a function or of a WITH query stays as it was.

use super::Planner;
use super::from::join_conditions;
use super::keep::free;
use super::nested_loop::nested_loop;
use super::part::Part;
use super::stale::Stale;
use crate::bound::reads;
use crate::bound::{FromItem, Query, QueryBody, Select, Source, SourceId, Sublink};
use crate::plan::{Assignment, JoinKind, Match, Operator, Plan, Reg, SecondLook, SubqueryKind};
use crate::registers::Registers;
use expressions::expr::Expr;
use expressions::functions;
use values::error::SqlError;
use values::types::Type;

/// The input of a node that changes or locks rows, and the expressions that the node computes.
pub(super) struct Parts<'q> {
    /// The sources whose rows the node locks.
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

/// A condition that is EXISTS, NOT EXISTS or ANY and that PostgreSQL converts to a join.
struct Candidate<'q> {
    link: &'q Sublink,
    comparison: Option<&'q Expr>,
    negated: bool,
}

/// Subqueries whose rows were joined.
struct Joined {
    matches: Vec<Match>,
    /// Result registers that no run of a subquery fills.
    without: Vec<Reg>,
}

/// The SELECT of an EXISTS that PostgreSQL converts to a join.
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

impl Planner<'_, '_> {
    /// The plan of the second look over the newest versions of the locked rows; None if there is
    /// nothing to evaluate. `outside`: registers of the surrounding queries.
    pub(super) fn second_look(
        &mut self,
        parts: &Parts<'_>,
        outside: &Registers,
    ) -> Result<Option<Box<SecondLook>>, SqlError> {
        let mut stale = Stale {
            targets: parts.targets,
            registers: Registers::default(),
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
        // No join depends on a candidate, because its result is a condition on all rows.
        let candidates = candidates(parts, &stale);
        let apart: Registers = candidates.iter().map(|candidate| candidate.link.output).collect();
        let others: Vec<Sublink> =
            parts.sublinks.iter().filter(|link| !apart.contains(&link.output)).cloned().collect();
        stale.until_stable(|stale| {
            stale.spread(self, parts.from)?;
            stale.choose(&others, &exprs)
        })?;
        let joined = self.matches(parts.from, &candidates, &fresh, &stale)?;
        stale.registers.extend(joined.matches.iter().map(|part| part.output));
        let others: Vec<Sublink> =
            parts.sublinks.iter().filter(|link| !joined.without.contains(&link.output)).cloned().collect();
        stale.choose(&others, &exprs)?;
        let before = self.with_sublinks(std::mem::take(&mut stale.links), &stale.around.clone())?;
        let planned = self.second_look_with_links(parts, &mut stale);
        self.pending = before;
        let plan = planned?;
        let plan = (!matches!(plan.operator, Operator::OneRow)).then_some(plan);
        let second_look = SecondLook { fresh, matches: joined.matches, plan };
        Ok((second_look.plan.is_some() || !second_look.matches.is_empty()).then(|| Box::new(second_look)))
    }

    /// The candidates whose row the join found; that row stays. NOT EXISTS found no row, and none
    /// is searched. A subquery that is a join in this plan too has its row in the registers.
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
            let mut read = Registers::default();
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
            if hashed && free(&subquery).is_empty() {
                continue;
            }
            joined.without.push(link.output);
            // Beside the locked rows, it reads registers that FROM fills again.
            let derived =
                read.intersection(&stale.registers).any(|register| fresh.binary_search(register).is_err());
            let plan = self.matched(candidate, derived.then_some(from), stale)?;
            let comparison = candidate.comparison.cloned();
            joined.matches.push(Match { output: link.output, subquery, comparison, plan });
        }
        Ok(joined)
    }

    /// The condition under which a subquery's row matches a newer version. `from`: the item to
    /// evaluate again before it.
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
            inner.until_stable(|inner| inner.spread_select(self, select))?;
            select.from.iter().for_each(|from| self.inner_writes(from, &mut inner.around));
        }
        let before = self.with_sublinks(std::mem::take(&mut inner.links), &inner.around.clone())?;
        let planned = (|| {
            let mut plan = Plan::one_row();
            if let Some(from) = from {
                // The plan of all rows tests the conditions.
                plan = self.rejoined(plan, from, &mut Vec::new(), &inner)?;
            }
            if let Some(select) = select {
                plan = self.selected(plan, select, &inner)?;
            }
            let comparison = candidate.comparison.filter(|comparison| inner.touches(comparison));
            self.filtered(Part::unordered(plan), comparison.into_iter().cloned().collect())
        })();
        self.pending = before;
        let plan = planned?.plan;
        Ok((!matches!(plan.operator, Operator::OneRow)).then_some(plan))
    }

    fn second_look_with_links(&mut self, parts: &Parts<'_>, stale: &mut Stale<'_>) -> Result<Plan, SqlError> {
        let mut conditions = Vec::new();
        let plan = self.rejoined(Plan::one_row(), parts.from, &mut conditions, stale)?;
        conditions.extend(self.touched(parts.conditions, stale));
        let part = self.filtered(Part::unordered(plan), conditions)?;
        let part = self.attached(part, parts.assigned.iter().map(|assignment| &assignment.value))?;
        let mut computed: Vec<(Expr, Reg)> = Vec::new();
        for (expr, register) in parts.computed {
            if stale.touches(expr) {
                stale.registers.insert(*register);
                computed.push((expr.clone(), *register));
            }
        }
        let part = self.attach_bare(part, &computed, |_| true);
        Ok(self.projected(part, computed)?.plan)
    }

    /// Evaluates FROM again, after `left`. Adds its conditions to `conditions`, except those of
    /// outer joins.
    fn rejoined(
        &mut self,
        left: Plan,
        item: &FromItem,
        conditions: &mut Vec<Expr>,
        stale: &Stale<'_>,
    ) -> Result<Plan, SqlError> {
        match item {
            FromItem::Join { kind: JoinKind::Inner, left: first, right: second, condition, .. } => {
                let left = self.rejoined(left, first, conditions, stale)?;
                let left = self.rejoined(left, second, conditions, stale)?;
                conditions.extend(self.touched(condition, stale));
                Ok(left)
            }
            FromItem::Join { kind, left: first, right: second, condition, .. } => {
                let (kept, other) = stale.sides(*kind, first, second);
                let left = self.rejoined(left, kept, conditions, stale)?;
                let mut on = self.touched(condition, stale);
                if *kind == JoinKind::Full && !on.is_empty() {
                    // The other side's row that was joined without a match stays.
                    let Some(absent) = self.absent(kept) else { return Ok(left) };
                    on = vec![Expr::Or(vec![absent, Expr::And(on)])];
                }
                let mut registers: Vec<Reg> = self.item_writes(other).into_iter().collect();
                registers.sort_unstable();
                let joined = Operator::Joined { registers, present: None };
                let joined = Plan::new(joined, Plan::one_row().estimate);
                let mut right = self.rejoined(joined, other, &mut on, stale)?;
                if on.is_empty() && matches!(right.operator, Operator::Joined { .. }) {
                    return Ok(left);
                }
                self.mark_present(&mut right, other);
                let right = self.filtered(Part::unordered(right), on)?;
                Ok(nested_loop(JoinKind::Left, left, right.plan, None))
            }
            FromItem::Source(_, Source::Query(query)) => match self.merged(query) {
                Some(select) => self.selected(left, select, stale),
                None => Ok(left),
            },
            FromItem::Source(..) => Ok(left),
        }
    }

    /// Evaluates a merged subquery again.
    fn selected(&mut self, left: Plan, select: &Select, stale: &Stale<'_>) -> Result<Plan, SqlError> {
        let mut own = Vec::new();
        let left = match &select.from {
            Some(from) => self.rejoined(left, from, &mut own, stale)?,
            None => left,
        };
        own.extend(self.touched(&select.conditions, stale));
        let part = self.filtered(Part::unordered(left), own)?;
        let computed = select.targets.iter().filter(|(expr, _)| stale.touches(expr)).cloned();
        Ok(self.projected(part, computed.collect())?.plan)
    }

    /// The conditions that read a stale register. If the planner converted `x IN (subquery)` to a
    /// join, the condition compares with the joined row. The subquery does not run again, and its
    /// registers are not this plan's own.
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

    /// Adds a mark to the empty side of an outer join whose rows feed a computation, to show
    /// whether there was a row.
    fn mark_present(&mut self, plan: &mut Plan, item: &FromItem) {
        let computes = matches!(plan.operator, Operator::Project { .. } | Operator::Subquery { .. });
        let mut node = plan;
        loop {
            match &mut node.operator {
                Operator::Project { input, .. }
                | Operator::Filter { input, .. }
                | Operator::Subquery { input, .. } => {
                    node = input;
                }
                Operator::NestedLoop { left, .. } => node = left,
                Operator::Joined { present, .. } if computes => {
                    *present = self.first_table(item).map(|source| self.binder.identify(source).key);
                    return;
                }
                _ => return,
            }
        }
    }

    /// Whether an outer join found no row of an item of FROM. None if the registers do not show it.
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
}

/// The conditions on all rows that PostgreSQL converts to joins.
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
