//! Joins: the order of the sources, and the method of each join.
//!
//! 1. Inner joins become a set of leaves and one pool of conditions. An outer join is a leaf,
//!    planned on its own.
//! 2. The cheapest leaf comes first. Then the planner repeatedly joins the leaf that is cheapest to
//!    join next. If the row's values bound a key, or the leaf needs them, it runs the leaf for each
//!    row so far. Otherwise it uses a hash table.
//! 3. The plan applies a condition as soon as all registers it reads are filled.

use super::Planner;
use super::cost;
use super::part::{Candidate, Conditions, Leaf, Part, Wanted};
use super::pushdown::{is_plain, push_down};
use super::search::Search;
use super::written::written;
use crate::bound::{FromItem, QueryBody, Source, SourceId};
use crate::plan::{AccessPath, ColumnRead, JoinKind, Plan, Reg, Scan};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::Comparison;
use expressions::function::{SetFunction, Volatility};
use values::error::SqlError;
use values::types::Value;

use std::sync::Arc;

impl Planner<'_, '_> {
    /// Plans FROM with conditions that must all hold. `outside`: registers filled before all of it.
    pub(super) fn join_tree(
        &mut self,
        item: FromItem,
        mut conditions: Vec<Expr>,
        outside: &Registers,
        wanted: Wanted<'_>,
    ) -> Result<Part, SqlError> {
        let mut leaves = Vec::new();
        self.take_apart(item, &mut leaves, &mut conditions)?;
        self.semi_joins(&mut conditions, &mut leaves);
        let mut candidates = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let writes = self.leaf_writes(&leaf);
            candidates.push(Candidate { leaf: Some(leaf), writes, needs: Registers::default(), known: None });
        }
        let all: Registers = candidates.iter().flat_map(|candidate| &candidate.writes).copied().collect();
        for candidate in &mut candidates {
            if let Some(leaf) = &candidate.leaf {
                candidate.needs = self.leaf_needs(leaf);
                candidate
                    .needs
                    .retain(|register| all.contains(register) && !candidate.writes.contains(register));
            }
        }
        let first = self.early_sublinks(&conditions);
        let first = self.tested_once(first, &mut conditions)?;
        let single = candidates.len() == 1;
        let mut available: Registers = outside.difference(&all).copied().collect();
        let mut current: Option<Part> = None;
        if let Some(part) = first {
            available.extend(written(&part.plan));
            current = Some(part);
        }
        let mut conditions = Conditions {
            required: conditions.iter().map(|condition| self.required(condition)).collect(),
            used: vec![false; conditions.len()],
            pending: self.pending.len(),
            list: conditions,
        };
        while let Some(next) = self.cheapest(&mut candidates, &conditions, current.as_ref(), &available)? {
            let leaf = candidates[next].leaf.take().ok_or_else(|| SqlError::internal("leaf joined twice"))?;
            let writes = candidates[next].writes.clone();
            let lateral = !candidates[next].needs.is_empty();
            let is_first = current.as_ref().is_none_or(|part| at_most_one(&part.plan));
            let order = if single || is_first { wanted } else { Wanted::default() };
            current = Some(self.join_next(
                current,
                leaf,
                &writes,
                lateral,
                &mut conditions,
                &mut available,
                order,
            )?);
            if conditions.pending != self.pending.len() {
                conditions.pending = self.pending.len();
                conditions.required = conditions.list.iter().map(|expr| self.required(expr)).collect();
            }
        }
        let current = current.ok_or_else(|| SqlError::internal("FROM without a source"))?;
        let rest = conditions.list.into_iter().zip(conditions.used);
        self.filtered(current, rest.filter(|(_, used)| !used).map(|(condition, _)| condition).collect())
    }

    /// Conditions that read no row are tested once, before the first source is read.
    fn tested_once(
        &mut self,
        first: Option<Part>,
        conditions: &mut Vec<Expr>,
    ) -> Result<Option<Part>, SqlError> {
        let is_once = |condition: &mut Expr| {
            registers::reads(condition).is_empty() && condition.volatility() < Volatility::Volatile
        };
        let mut once: Vec<Expr> = conditions.extract_if(.., is_once).collect();
        once.retain(|condition| !matches!(condition, Expr::Const(Value::Bool(true), _)));
        if once.is_empty() {
            return Ok(first);
        }
        let one = Part { plan: Plan::OneRow, rows: 1.0, cost: 0.0, ordered: false };
        self.filtered(first.unwrap_or(one), once).map(Some)
    }

    /// Joins one more leaf to the plan so far.
    #[allow(clippy::too_many_arguments)]
    fn join_next(
        &mut self,
        current: Option<Part>,
        leaf: Leaf,
        writes: &Registers,
        lateral: bool,
        conditions: &mut Conditions,
        available: &mut Registers,
        wanted: Wanted<'_>,
    ) -> Result<Part, SqlError> {
        let (mut own, mut joining) = (Vec::new(), Vec::new());
        for (index, reads) in conditions.required.iter().enumerate() {
            let is_there = |register: &Reg| available.contains(register) || writes.contains(register);
            if conditions.used[index] || !reads.iter().all(is_there) {
                continue;
            }
            conditions.used[index] = true;
            let only_own =
                reads.iter().all(|register| writes.contains(register) || !available.contains(register));
            let outer_only = current.is_none() || only_own;
            if outer_only { &mut own } else { &mut joining }.push(conditions.list[index].clone());
        }
        let Some(left) = current else {
            let part = self.leaf(leaf, own, available, wanted)?;
            available.extend(writes);
            return Ok(part);
        };
        let keys = self.hash_keys(&joining, available, writes);
        // A nested loop that reads the whole right side for each left row has no bound if the
        // number of left rows is a guess.
        let single = at_most_one(&left.plan);
        let rows = if single { left.rows } else { left.rows.max(cost::GUESSED) };
        let loop_cost = rows * self.run_cost(&leaf, &own, &joining, available);
        let hash_cost = self.hash_cost(&leaf, &own, available) + rows * cost::HASH_PROBE;
        let hashed = !lateral && !keys.is_empty() && hash_cost < loop_cost && !single;
        let part = if hashed {
            let outside: Registers = available.difference(&written(&left.plan)).copied().collect();
            let right = self.leaf(leaf, own, &outside, Wanted::default())?;
            let rest: Vec<Expr> =
                joining.into_iter().filter(|expr| !self.is_key(expr, available, writes)).collect();
            self.hash_join(JoinKind::Inner, left, right, keys, rest)?
        } else {
            own.extend(joining);
            let wanted = if single { wanted } else { Wanted::default() };
            let right = self.leaf(leaf, own, available, wanted)?;
            let rows = (left.rows * right.rows).max(1.0);
            let cost = left.cost + left.rows * right.cost;
            let ordered = if single { right.ordered } else { left.ordered };
            let plan = nested_loop(JoinKind::Inner, left.plan, right.plan, None);
            Part { plan, rows, cost, ordered }
        };
        available.extend(writes);
        Ok(part)
    }

    pub(super) fn hash_join(
        &mut self,
        kind: JoinKind,
        left: Part,
        right: Part,
        keys: Vec<(Expr, Expr)>,
        rest: Vec<Expr>,
    ) -> Result<Part, SqlError> {
        let larger = left.rows.max(right.rows);
        let mirrored = match kind {
            JoinKind::Inner | JoinKind::Full => Some(kind),
            JoinKind::Left => Some(JoinKind::Right),
            _ => None,
        };
        let (kind, left, right, keys) = match mirrored {
            Some(mirrored)
                if left.rows <= right.rows
                    && self.may_be_endless(&right.plan)
                    && !self.may_be_endless(&left.plan) =>
            {
                (mirrored, right, left, keys.into_iter().map(|(left, right)| (right, left)).collect())
            }
            _ => (kind, left, right, keys),
        };
        let plan = Plan::HashJoin {
            kind,
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            keys,
            condition: None,
            test: None,
            left_registers: Vec::new(),
            right_registers: Vec::new(),
            ordered: false,
        };
        let cost = left.cost + right.cost + right.rows * cost::HASH_BUILD + left.rows * cost::HASH_PROBE;
        let part = Part {
            plan,
            rows: larger,
            cost,
            ordered: left.ordered && !matches!(kind, JoinKind::Right | JoinKind::Full),
        };
        if kind == JoinKind::Inner {
            return self.filtered(part, rest);
        }
        let mut part = part;
        if !rest.is_empty()
            && let Plan::HashJoin { condition, .. } = &mut part.plan
        {
            *condition = Some(Expr::and(rest));
        }
        Ok(part)
    }

    /// The pairs of keys among conditions, each side over one side of a join. A condition on the
    /// result of a subquery that is computed above the join is not a key.
    pub(super) fn hash_keys(
        &self,
        conditions: &[Expr],
        left: &Registers,
        right: &Registers,
    ) -> Vec<(Expr, Expr)> {
        let computed = conditions.iter().filter(|condition| !self.reads_pending(condition));
        computed.filter_map(|condition| key_pair(condition, left, right)).collect()
    }

    /// Whether a condition is among the keys.
    pub(super) fn is_key(&self, condition: &Expr, left: &Registers, right: &Registers) -> bool {
        !self.reads_pending(condition) && key_pair(condition, left, right).is_some()
    }

    pub(super) fn search<'s>(
        &'s self,
        source: SourceId,
        table: &'s catalog::Table,
        conditions: &'s [Expr],
        available: &'s Registers,
        wanted: Wanted<'s>,
    ) -> Search<'s> {
        Search {
            table,
            columns: &self.binder.sources[source].columns,
            conditions,
            available,
            rows: cost::table_rows(self.context(), table),
            statistics: self.context().catalog.statistics(table.oid),
            values: &*self.binder,
            choices: &self.choices,
            alone: self.binder.sources.len() == 1,
            order: wanted.order,
            limited: wanted.limited,
        }
    }

    /// Plans a leaf with its own conditions. `available`: registers filled before it runs.
    fn leaf(
        &mut self,
        leaf: Leaf,
        conditions: Vec<Expr>,
        available: &Registers,
        wanted: Wanted<'_>,
    ) -> Result<Part, SqlError> {
        match leaf {
            Leaf::Table(source, table) => self.scan(source, table, conditions, available, wanted),
            Leaf::Planned(part) => self.filtered(*part, conditions),
            Leaf::Query(query) => {
                // Conditions on a subquery's result stay here, where the subquery is computed.
                let (late, conditions): (Vec<Expr>, Vec<Expr>) =
                    conditions.into_iter().partition(|condition| self.reads_pending(condition));
                let (inside, mut outside) = push_down(*query, conditions);
                outside.extend(late);
                // Its order is its own, not the one wanted here.
                let part = Part { ordered: false, ..self.query(inside, available)? };
                self.filtered(part, outside)
            }
            Leaf::Outer(join) => {
                let (kind, left, right, on) = *join;
                // Nobody asked it for an order.
                Ok(Part { ordered: false, ..self.outer_join(kind, left, right, on, conditions, available)? })
            }
        }
    }

    fn scan(
        &mut self,
        source: SourceId,
        table: Arc<catalog::Table>,
        conditions: Vec<Expr>,
        available: &Registers,
        wanted: Wanted<'_>,
    ) -> Result<Part, SqlError> {
        let columns: Vec<ColumnRead> = self.binder.sources[source]
            .columns
            .iter()
            .enumerate()
            .filter_map(|(column, register)| {
                register.map(|register| ColumnRead { column: column as u32, register })
            })
            .collect();
        // A condition on a subquery's result is a filter above, since the subquery runs in between.
        let (late, conditions): (Vec<Expr>, Vec<Expr>) =
            conditions.into_iter().partition(|condition| self.reads_pending(condition));
        if table.is_virtual() {
            let rows = cost::table_rows(self.context(), &table);
            let kept: f64 = conditions.iter().map(cost::selectivity).product();
            let filter = (!conditions.is_empty()).then(|| Expr::and(conditions));
            let plan = Plan::Virtual { relation: table.oid, columns, filter };
            let part =
                Part { plan, rows: (rows * kept).max(1.0), cost: rows, ordered: wanted.order.is_empty() };
            return self.filtered(part, late);
        }
        let search = self.search(source, &table, &conditions, available, wanted);
        let access = search.best();
        let path = access.path(&table)?;
        let kept = search.rows * search.kept(&conditions);
        let rows = kept.min(access.rows);
        let (used, cost, ordered) = (access.used, access.cost, access.ordered);
        let mut filters = Vec::new();
        for (index, condition) in conditions.into_iter().enumerate() {
            if !used.contains(&index) {
                filters.push(condition);
            }
        }
        let filter = (!filters.is_empty()).then(|| Expr::and(filters));
        let identity = self.binder.sources[source].identity;
        let plan = Plan::Scan(Box::new(Scan { table, path, columns, identity, filter }));
        self.filtered(Part { plan, rows: rows.max(1.0), cost, ordered }, late)
    }

    /// Plans LEFT, RIGHT and FULL joins. `conditions` apply above the join; those on the preserved
    /// side move below it.
    fn outer_join(
        &mut self,
        kind: JoinKind,
        left: FromItem,
        right: FromItem,
        on: Vec<Expr>,
        conditions: Vec<Expr>,
        available: &Registers,
    ) -> Result<Part, SqlError> {
        if kind == JoinKind::Right {
            return self.outer_join(JoinKind::Left, right, left, on, conditions, available);
        }
        let (left_writes, right_writes) = (self.item_writes(&left), self.item_writes(&right));
        if kind == JoinKind::Full {
            let part = self.full_join((left, left_writes), (right, right_writes), on, available)?;
            return self.filtered(part, conditions);
        }
        let mut inside = Vec::new();
        let mut above = conditions;
        if kind == JoinKind::Left {
            (above, inside) = above.into_iter().partition(|condition| {
                self.required(condition).iter().any(|register| right_writes.contains(register))
            });
        }
        let left = self.join_tree(left, inside, available, Wanted::default())?;
        let keys = self.hash_keys(&on, &left_writes, &right_writes);
        let hashable = !keys.is_empty() && !on.iter().any(|condition| self.reads_pending(condition));
        let lateral = !self.item_needs(&right).is_disjoint(&left_writes);
        let mut with_left = available.clone();
        with_left.extend(&left_writes);
        if !lateral
            && hashable
            && !self.leads_into_key(&right, &on, &with_left, &left_writes)
            && !at_most_one(&left.plan)
        {
            let (own, rest): (Vec<Expr>, Vec<Expr>) = on.into_iter().partition(|condition| {
                self.required(condition).iter().all(|r| right_writes.contains(r) || !left_writes.contains(r))
            });
            let right = self.join_tree(right, own, available, Wanted::default())?;
            let rest =
                rest.into_iter().filter(|expr| !self.is_key(expr, &left_writes, &right_writes)).collect();
            let part = self.hash_join(kind, left, right, keys, rest)?;
            return self.filtered(part, above);
        }
        // The right side runs for each left row, so it can check the whole condition itself.
        let right = self.join_tree(right, on, &with_left, Wanted::default())?;
        let rows = (left.rows * right.rows).max(left.rows);
        let cost = left.cost + left.rows * right.cost;
        let ordered = left.ordered;
        let plan = nested_loop(kind, left.plan, right.plan, None);
        self.filtered(Part { plan, rows, cost, ordered }, above)
    }

    /// Whether conditions with the left side's values bound a key of the right table.
    fn leads_into_key(&self, right: &FromItem, on: &[Expr], available: &Registers, left: &Registers) -> bool {
        let FromItem::Source(source, Source::Table(table)) = right else { return false };
        if table.is_virtual() {
            return false;
        }
        self.search(*source, table, on, available, Wanted::default()).best().is_led_by(left)
    }

    /// Splits inner joins into leaves and conditions.
    fn take_apart(
        &mut self,
        item: FromItem,
        leaves: &mut Vec<Leaf>,
        conditions: &mut Vec<Expr>,
    ) -> Result<(), SqlError> {
        match item {
            FromItem::Join { kind: JoinKind::Inner, left, right, condition } => {
                self.take_apart(*left, leaves, conditions)?;
                self.take_apart(*right, leaves, conditions)?;
                conditions.extend(condition);
            }
            FromItem::Join { kind, left, right, condition } => {
                leaves.push(Leaf::Outer(Box::new((kind, *left, *right, condition))));
            }
            FromItem::Source(source, Source::Table(table)) => leaves.push(Leaf::Table(source, table)),
            FromItem::Source(_, Source::Query(query)) => {
                if !is_plain(&query) {
                    leaves.push(Leaf::Query(query));
                    return Ok(());
                }
                // A subquery that only selects columns is replaced by its FROM and WHERE.
                if let QueryBody::Select(select) = query.body
                    && let Some(from) = select.from
                {
                    conditions.extend(select.conditions);
                    self.take_apart(from, leaves, conditions)?;
                }
            }
            FromItem::Source(source, other) => {
                let part = self.computed_source(source, other);
                leaves.push(Leaf::Planned(Box::new(part)));
            }
        }
        Ok(())
    }

    /// Plans a source that has no conditions of its own.
    fn computed_source(&mut self, source: SourceId, item: Source) -> Part {
        let (plan, rows) = match item {
            Source::Function(calls, ordinality) => {
                let single = calls.iter().all(|call| call.function == SetFunction::Once);
                (Plan::Function { calls, ordinality }, if single { 1.0 } else { 100.0 })
            }
            Source::Common(id) => (self.common_scan(id, self.binder.sources[source].columns.clone()), 100.0),
            Source::Table(_) | Source::Query(_) => (Plan::Nothing, 1.0),
        };
        Part { plan, rows, cost: rows, ordered: false }
    }
}

/// A nested loop. A later step fills in the registers to set to NULL.
pub(super) fn nested_loop(kind: JoinKind, left: Plan, right: Plan, condition: Option<Expr>) -> Plan {
    if kind == JoinKind::Inner && condition.is_none() {
        match (left, right) {
            (Plan::OneRow, right) => return right,
            (left, Plan::OneRow) => return left,
            (left, right) => {
                return Plan::NestedLoop {
                    kind,
                    left: Box::new(left),
                    right: Box::new(right),
                    condition: None,
                    right_registers: Vec::new(),
                };
            }
        }
    }
    Plan::NestedLoop {
        kind,
        left: Box::new(left),
        right: Box::new(right),
        condition,
        right_registers: Vec::new(),
    }
}

/// Whether a plan returns at most one row, whatever the tables contain.
fn at_most_one(plan: &Plan) -> bool {
    match plan {
        Plan::OneRow | Plan::Nothing => true,
        Plan::Values { rows, .. } => rows.len() <= 1,
        Plan::Scan(scan) => matches!(scan.path, AccessPath::Point { .. } | AccessPath::UniquePoint { .. }),
        Plan::Filter { input, .. } | Plan::Project { input, .. } | Plan::Subquery { input, .. } => {
            at_most_one(input)
        }
        Plan::Aggregate { input, groups, .. } => groups.is_empty() || at_most_one(input),
        Plan::NestedLoop { left, right, .. } => at_most_one(left) && at_most_one(right),
        _ => false,
    }
}

fn key_pair(condition: &Expr, left: &Registers, right: &Registers) -> Option<(Expr, Expr)> {
    let (Comparison::Equal, a, b) = condition.as_comparison()? else { return None };
    let on = |expr: &Expr, own: &Registers, other: &Registers| {
        let reads = registers::reads(expr);
        !reads.is_disjoint(own) && reads.is_disjoint(other)
    };
    let (a, b) = if on(a, left, right) && on(b, right, left) {
        (a.clone(), b.clone())
    } else if on(b, left, right) && on(a, right, left) {
        (b.clone(), a.clone())
    } else {
        return None;
    };
    if a.type_().oid == b.type_().oid {
        return Some((a, b));
    }
    // Hashing needs one type, the wider of the two.
    let (pair, _) = expressions::functions::unify("JOIN", vec![a, b]).ok()?;
    <[Expr; 2]>::try_from(pair).ok().map(|[a, b]| (a, b))
}
