//! Subqueries of expressions. Each is planned on its own, then placed below the expressions that
//! read it, or joined.
//!
//! What must hold: each is placed once, above everything it reads, by [`Planner::attach`], or
//! becomes a side of a join.

use super::keep::free;
use super::written::written;
use std::collections::{BTreeMap, BTreeSet};

use super::Planner;
use super::cost;
use super::grouped::Grouped;
use super::guard;
use super::matches::Hashed;
use super::part::{Leaf, Part, Side};
use crate::bound::reads::query_reads;
use crate::bound::{Query, Sublink};
use crate::plan::{Guard, Operator, Plan, Reg, SubqueryKind};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::functions;
use values::error::SqlError;
use values::types::{Type, Value};

/// Beyond this depth of queries, a subquery has one plan.
const MOST_NESTED: usize = 4;

/// A planned subquery of an expression that no node computes yet.
pub(super) struct Pending {
    plan: Plan,
    /// The estimated work of one run, or of all runs by a hash.
    cost: f64,
    pub(super) kind: SubqueryKind,
    /// For EXISTS, the plan by a hash.
    hashed: Option<Hashed>,
    /// For one value of aggregates, the plan by groups.
    grouped: Option<Grouped>,
    /// Registers of surrounding queries that its plan reads.
    outer: Registers,
    /// Further registers that turning its rows into the result reads: the operand of IN.
    operands: Registers,
    /// Whether another subquery's plan reads its result. It must then run wherever that one does.
    shared: bool,
    /// The rows for which it must run (see [`super::guard`]).
    guard: Option<Guard>,
}

impl Pending {
    /// Registers that must be filled before it runs.
    pub(super) fn needs(&self) -> impl Iterator<Item = Reg> {
        self.outer.union(&self.operands).copied()
    }

    fn is_correlated(&self) -> bool {
        !self.outer.is_empty()
    }

    /// The work of the cheapest plan for so many rows.
    fn run_cost(&self, rows: f64) -> f64 {
        if !self.is_correlated() {
            return self.cost;
        }
        let each = rows.max(cost::GUESSED) * self.cost;
        let hashed = self.hashed.as_ref().map_or(each, |hashed| hashed.cost(rows));
        let grouped = self.grouped.as_ref().map_or(each, |grouped| grouped.cost(rows));
        each.min(hashed).min(grouped)
    }

    /// The plan by groups, if that is cheaper for so many rows.
    fn choose_groups(&mut self, rows: f64) -> Option<Grouped> {
        let grouped = self.grouped.take()?;
        let is_cheaper = grouped.cost(rows) < rows.max(cost::GUESSED) * self.cost;
        (is_cheaper && self.guard.is_none()).then_some(grouped)
    }

    /// Takes the plan by a hash if that is cheaper for so many rows.
    fn choose(&mut self, rows: f64) {
        let Some(hashed) = self.hashed.take() else { return };
        let by_hash = hashed.cost(rows);
        let Hashed { part, pairs } = hashed;
        if self.is_correlated() && by_hash < rows.max(cost::GUESSED) * self.cost {
            self.plan = part.plan;
            self.kind = SubqueryKind::Matches { pairs };
            self.cost = by_hash;
            self.outer = Registers::default();
        }
    }
}

impl Planner<'_, '_> {
    /// Plans the subqueries of a query's expressions. Returns the outer query's, to be restored.
    pub(super) fn with_sublinks(
        &mut self,
        sublinks: Vec<Sublink>,
        around: &Registers,
    ) -> Result<BTreeMap<Reg, Pending>, SqlError> {
        let outer = std::mem::take(&mut self.pending);
        let mut planned = BTreeMap::new();
        for link in sublinks {
            let hashed = match link.kind {
                SubqueryKind::Exists if self.nesting <= MOST_NESTED => self.hashed_exists(&link.query)?,
                _ => None,
            };
            let grouped = match self.nesting <= MOST_NESTED {
                true => self.by_groups(&link.query, &link.kind)?,
                false => None,
            };
            let is_exists = matches!(link.kind, SubqueryKind::Exists);
            let plan = if is_exists && is_apart(&link.query, around) {
                self.first_row_of(link.query, around)?
            } else {
                self.query(link.query, around)?.plan
            };
            let (outer, own) = (free(&plan), written(&plan));
            let mut operands = Registers::default();
            registers::kind_reads(&link.kind, &mut operands);
            operands.retain(|register| !own.contains(register));
            let pending = Pending {
                cost: plan.estimate.cost,
                plan,
                kind: link.kind,
                hashed,
                grouped,
                outer,
                operands,
                shared: false,
                guard: None,
            };
            planned.insert(link.output, pending);
        }
        let within: Registers = planned.values().flat_map(|pending| &pending.outer).copied().collect();
        for (output, pending) in &mut planned {
            pending.shared = within.contains(output);
        }
        self.pending = planned;
        Ok(outer)
    }

    /// Plans a query of which one row is read.
    fn first_row_of(&mut self, mut query: Query, around: &Registers) -> Result<Plan, SqlError> {
        query.limit = Some(Expr::constant(Value::Int8(1), Type::INT8));
        let plan = self.query(query, around)?.plan;
        Ok(match plan.operator {
            Operator::Limit { input, .. } => *input,
            _ => plan,
        })
    }

    /// All registers that must be filled before an expression can be evaluated, including those its
    /// subqueries need.
    pub(super) fn required(&self, expr: &Expr) -> Registers {
        let mut required = Registers::default();
        let mut open: Vec<Reg> = registers::reads(expr).into_iter().collect();
        while let Some(register) = open.pop() {
            match self.pending.get(&register) {
                Some(pending) => open.extend(pending.needs().filter(|needed| *needed != register)),
                None => {
                    required.insert(register);
                }
            }
        }
        required
    }

    /// The work of the subqueries that an expression reads, for so many rows.
    pub(super) fn run_cost(&self, expr: &Expr, rows: f64) -> f64 {
        let read = registers::reads(expr);
        let pending = read.iter().filter_map(|register| self.pending.get(register));
        pending.map(|pending| pending.run_cost(rows)).sum()
    }

    /// Whether an expression reads the result of a subquery that no node computes yet.
    pub(super) fn reads_pending(&self, expr: &Expr) -> bool {
        registers::reads(expr).iter().any(|register| self.pending.contains_key(register))
    }

    /// Places the subqueries that expressions read between the expressions and a plan.
    pub(super) fn attached<'e>(
        &mut self,
        mut part: Part,
        exprs: impl Iterator<Item = &'e Expr>,
    ) -> Result<Part, SqlError> {
        if self.pending.is_empty() {
            return Ok(part);
        }
        let mut read = BTreeSet::new();
        let exprs = exprs.inspect(|expr| read.extend(registers::reads(expr)));
        let (pending, binder) = (&self.pending, &mut *self.binder);
        let guardable = |register| pending.get(&register).is_some_and(|pending| !pending.shared);
        let operands = |register| pending.get(&register).map(|pending| &pending.operands);
        for (register, guard) in guard::of(exprs, guardable, operands, || binder.register())? {
            if let Some(pending) = self.pending.get_mut(&register) {
                pending.guard = guard;
            }
            part = self.attach(part, register);
        }
        Ok(read.into_iter().fold(part, |part, register| self.attach(part, register)))
    }

    pub(super) fn attach(&mut self, mut part: Part, register: Reg) -> Part {
        let Some(mut pending) = self.pending.remove(&register) else { return part };
        let mut needs: Vec<Reg> = pending.needs().collect();
        if let Some(guard) = &pending.guard {
            let flags = guard.flags.iter().map(|(expr, _)| expr);
            needs.extend(flags.chain(&guard.conditions).flat_map(registers::reads));
        }
        needs.sort_unstable();
        for needed in needs {
            part = self.attach(part, needed);
        }
        if let Some(grouped) = pending.choose_groups(part.rows()) {
            return grouped.join(part, register);
        }
        pending.choose(part.rows());
        let correlated = pending.is_correlated();
        let mut estimate = part.plan.estimate;
        if correlated {
            estimate.cost += estimate.rows * pending.cost;
        } else {
            estimate.start += pending.cost;
            estimate.cost += pending.cost;
        }
        let node = |input| Operator::Subquery {
            input,
            subquery: Box::new(pending.plan),
            kind: pending.kind,
            output: register,
            correlated,
            parameters: Vec::new(),
            keep: Vec::new(),
            guard: pending.guard.map(Box::new),
        };
        part.below(node, estimate)
    }

    /// Places the subqueries that are an output column or a sort key by themselves, of those that
    /// are `due`. No target expression and no other subquery reads them.
    pub(super) fn attach_bare(
        &mut self,
        mut part: Part,
        targets: &[(Expr, Reg)],
        due: impl Fn(Reg) -> bool,
    ) -> Part {
        let mut read = Registers::default();
        targets.iter().for_each(|(expr, _)| registers::of_expr(expr, &mut read));
        read.extend(self.pending.values().flat_map(Pending::needs));
        let bare: Vec<Reg> = self.pending.keys().copied().filter(|output| !read.contains(output)).collect();
        for register in bare.into_iter().filter(|register| due(*register)) {
            part = self.attach(part, register);
        }
        part
    }

    /// Scalar subqueries without outer reads that conditions compare with. They are computed before
    /// the scans, so that their values can bound a key.
    pub(super) fn early_sublinks(&mut self, conditions: &[Expr]) -> Option<Part> {
        let mut early: Vec<Reg> = Vec::new();
        for condition in conditions {
            let Some((_, left, right)) = condition.as_comparison() else { continue };
            for side in [left, right] {
                for register in registers::reads(side) {
                    let simple = self.pending.get(&register).is_some_and(|pending| {
                        !pending.is_correlated() && matches!(pending.kind, SubqueryKind::Scalar { .. })
                    });
                    if simple && !early.contains(&register) {
                        early.push(register);
                    }
                }
            }
        }
        early.sort_unstable();
        let mut part: Option<Part> = None;
        for register in early {
            let below = part.take().unwrap_or_else(Part::one);
            part = Some(self.attach(below, register));
        }
        part
    }

    /// Converts `x IN (subquery)` without outer reads to a join with the subquery's distinct rows.
    pub(super) fn semi_joins(&mut self, conditions: &mut Vec<Expr>, sides: &mut Vec<Side>) {
        let mut index = 0;
        while index < conditions.len() {
            let Some(found) = self.semi_join(&conditions[index]) else {
                index += 1;
                continue;
            };
            conditions.remove(index);
            let Some(pending) = self.pending.remove(&found) else { continue };
            let SubqueryKind::Quantified { hash: Some(pairs), .. } = pending.kind else { continue };
            let mut keys = Vec::with_capacity(pairs.len());
            for (left, right) in pairs {
                if let Ok(equal) = functions::operator("=", Some(left), right.clone()) {
                    conditions.push(equal);
                }
                keys.push(right);
            }
            let mut estimate = pending.plan.estimate;
            estimate.cost = pending.cost + estimate.rows * cost::HASH_BUILD;
            let node = |input| Operator::Distinct { input, keys, keep: Vec::new() };
            let leaf = Leaf::Planned(Box::new(Part::unordered(pending.plan).below(node, estimate)));
            let writes = self.leaf_writes(&leaf);
            sides.push(Side { leaf, writes, needs: Registers::default(), join: None });
        }
    }

    /// The register of the pending `x IN (subquery)` that a condition consists of, if it can become
    /// a join.
    pub(super) fn semi_join(&self, condition: &Expr) -> Option<Reg> {
        let Expr::Column { register, .. } = condition else { return None };
        let pending = self.pending.get(register)?;
        let joinable = !pending.is_correlated()
            && matches!(&pending.kind, SubqueryKind::Quantified { all: false, hash: Some(_), .. });
        joinable.then_some(*register)
    }
}

/// Whether a query without LIMIT reads nothing of the queries around it.
fn is_apart(query: &Query, around: &Registers) -> bool {
    let mut read = Registers::default();
    query_reads(query, &mut read);
    query.limit.is_none() && query.offset.is_none() && read.is_disjoint(around)
}
