//! Plans queries and statements that change rows, from their bound form.
//!
//! The order of a SELECT's nodes, from below, begins with FROM and WHERE (see [`super::join`]).
//! Then come grouping, HAVING, windows, set-returning functions, computed columns, DISTINCT, ORDER
//! BY, row locks and LIMIT.

use std::mem::take;

use super::common;
use super::cost;
use super::grouping::{Order, User};
use super::keep::free;
use super::nested_loop::nested_loop;
use super::part::{Leaf, Part, Semi, Share};
use super::sets::Sets;
use super::single::at_most_one;
use super::top::{Top, copy_key};
use super::written::written;
use super::{Planned, Planner};
use crate::bound::reads::{item_reads, query_reads, sublink_reads};
use crate::bound::{Bound, Distinct, FromItem, Query, QueryBody, Select, Source, SourceId, Sublink};
use crate::plan::{
    AggregateCall, EquiMethod, Estimate, JoinKind, LockTarget, Operator, Plan, QueryTag, Reg, SecondLook,
    SetCall, SortKey,
};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::functions;
use values::error::SqlError;
use values::types::Datum;

/// Estimated number of groups as a fraction of the input rows.
const GROUPS: f64 = 0.1;
/// Estimated fraction of the rows under a LIMIT whose number is not known.
const UNKNOWN_SHARE: f64 = 0.1;
/// Work of planning one query without its inner queries, in ns: some microseconds.
const PLANNING: usize = 5000;

impl Planner<'_, '_> {
    /// Plans a statement.
    pub(super) fn statement(&mut self, mut bound: Bound) -> Result<Planned, SqlError> {
        crate::fold::nulls(&mut bound);
        super::copies::common_queries(&mut bound, self.binder);
        super::inline::common_queries(&mut bound, self.binder);
        super::positive::statement(&mut bound);
        self.premises = super::premises::statement(&mut bound, self.binder.request.truths);
        super::prune::statement(&mut bound);
        super::useless::clauses(&mut bound, &self.binder.sources);
        if super::useless::joins(&mut bound, &self.binder.sources) {
            super::prune::statement(&mut bound);
        }
        super::factor::statement(&mut bound, &self.binder.sources);
        super::prune::sources(&mut bound, &mut self.binder.sources);
        let limit = self.context().methods.join_collapse_limit;
        if self.binder.sources.len() > limit {
            super::collapse::statement(&mut bound, limit);
        }
        match bound {
            Bound::Query(query) => {
                let columns = query.output.clone();
                let part = self.query(*query, &Registers::default())?;
                Ok(Planned { root: part.plan, tag: QueryTag::Select, columns })
            }
            Bound::Insert(insert) => self.insert(*insert),
            Bound::Update(change) => self.change(*change, true),
            Bound::Delete(change) => self.change(*change, false),
        }
    }

    /// Plans a query. `outside`: registers of the surrounding queries.
    pub(super) fn query(&mut self, query: Query, outside: &Registers) -> Result<Part, SqlError> {
        self.nesting += 1;
        let part = self.nested_query(query, outside);
        self.nesting -= 1;
        part
    }

    fn nested_query(&mut self, query: Query, outside: &Registers) -> Result<Part, SqlError> {
        values::work::tick(PLANNING)?;
        let Query { tables, body, order, limit, offset, limit_sublinks, ties, locks, .. } = query;
        let tables = self.common_tables(tables, outside)?;
        let counts = match limit_sublinks.is_empty() {
            true => None,
            false => {
                let before = self.with_sublinks(limit_sublinks, outside)?;
                let one = Part::one();
                let part = self.attached(one, limit.iter().chain(&offset))?;
                self.pending = before;
                Some(part.plan)
            }
        };
        let top = Top { order, limit, offset, ties, locks };
        let part = match body {
            QueryBody::Select(select) => self.select(*select, top, outside)?,
            QueryBody::Values { rows, output, sublinks } => {
                let count = rows.len() as f64;
                let estimate = Estimate { start: 0.0, cost: count, rows: count };
                let before = self.with_sublinks(sublinks, outside)?;
                let left = Part::one();
                let left = self.attached(left, rows.iter().flatten())?;
                self.pending = before;
                let values = Plan::new(Operator::Values { rows, output }, estimate);
                let plan = nested_loop(JoinKind::Inner, left.plan, values, None);
                self.topped(Part::unordered(plan), top, None)?
            }
            QueryBody::Set { sides, steps, output } => {
                let part = self.set_operation(sides, &steps, output, outside)?;
                self.topped(part, top, None)?
            }
        };
        // The subqueries of LIMIT and OFFSET run first, as the one row of an outer loop.
        let plan = match counts {
            Some(counts) => nested_loop(JoinKind::Inner, counts, part.plan, None),
            None => part.plan,
        };
        Ok(Part { plan: common::with_tables(tables, plan), ..part })
    }

    /// Groups the rows and computes the aggregates of each group.
    pub(super) fn aggregated(
        &mut self,
        part: Part,
        (groups, calls): (Vec<(Expr, Reg)>, Vec<AggregateCall>),
        order: &Order,
    ) -> Result<Part, SqlError> {
        let inputs = groups.iter().map(|(expr, _)| expr);
        let arguments = calls.iter().flat_map(|call| {
            call.arguments.iter().chain(&call.filter).chain(call.order.iter().map(|key| &key.expr))
        });
        let mut part = self.attached(part, inputs.chain(arguments))?;
        let rows = match order.groups {
            _ if groups.is_empty() => 1.0,
            Some(groups) => groups.clamp(1.0, part.rows().max(1.0)),
            None => (part.rows() * GROUPS).max(1.0),
        };
        let sorted = part.ordered && matches!(order.user, User::Groups { .. });
        if sorted {
            keep_order(&mut part.plan);
        }
        let cost = part.cost() + part.rows() * if sorted { cost::ROW } else { cost::HASH_PROBE };
        let start = if sorted && !groups.is_empty() { part.plan.estimate.start } else { cost };
        let ordered = sorted && order.user == User::Groups { sorts: true };
        let node = |input| Operator::Aggregate { input, groups, calls, keep: Vec::new(), sorted };
        let part = part.below(node, Estimate { start, cost, rows });
        Ok(Part { sorted: 0, ordered, ..part })
    }

    fn select(&mut self, mut select: Select, mut top: Top, outside: &Registers) -> Result<Part, SqlError> {
        super::run::drop_constants(&mut select.windows);
        super::fixed_keys::drop_from(&mut top, &select);
        self.group_distinct(&mut select, &top);
        let mut around = outside.clone();
        if let Some(from) = &select.from {
            around.extend(self.item_writes(from));
        }
        around.extend(select.groups.iter().map(|(_, register)| register));
        around.extend(select.aggregates.iter().map(|call| call.output));
        let locks = self.row_locks(&select, &top, outside)?;
        let order = self.order_for(&select, &top);
        let different = self.different(&select);
        let semis = self.take_semis(&mut select);
        let before = self.with_sublinks(take(&mut select.sublinks), &around)?;
        let mut part = self.grouped(&mut select, semis, outside, &order)?;
        let windows = select.windows;
        let keys = windows.iter().flat_map(|w| w.partition.iter().chain(w.order.iter().map(|key| &key.expr)));
        let mut read = Registers::default();
        keys.for_each(|expr| registers::of_expr(expr, &mut read));
        let early = |call: &SetCall| call.output.iter().any(|output| read.contains(output));
        let (windowed, calls) = select.sets.into_iter().partition(early);
        part = self.with_sets(part, Sets { calls: windowed, ordinality: None })?;
        for window in windows {
            part = self.windowed(part, window)?;
        }
        let sets = Sets { calls, ordinality: select.ordinality };
        let targets = select.targets;
        let part = if sets.are_late(&targets, &select.distinct, &top.order) {
            part = self.attach_bare(part, &targets, |_| true);
            self.with_late_sets(part, (sets, targets), select.distinct, top)?
        } else {
            let is_late = top.late();
            let is_early = |register| !matches!(select.distinct, Distinct::No) || !is_late(register);
            part = self.attach_bare(part, &targets, is_early);
            part = self.with_sets(part, sets)?;
            let (targets, late): (Vec<_>, Vec<_>) =
                targets.into_iter().partition(|(_, register)| is_early(*register));
            let is_sorted = !top.order.is_empty();
            part = self.projected(part, targets)?;
            part = self.distinct(part, (select.distinct, different), &top);
            part = self.topped(part, top, locks)?;
            part = self.attach_bare(part, &late, |_| true);
            part = self.projected(part, late)?;
            if is_sorted {
                keep_order(&mut part.plan);
            }
            part
        };
        self.pending = before;
        Ok(part)
    }

    /// Plans FROM, WHERE, GROUP BY and HAVING of a SELECT.
    fn grouped(
        &mut self,
        select: &mut Select,
        semis: Vec<Semi>,
        outside: &Registers,
        order: &Order,
    ) -> Result<Part, SqlError> {
        let (calls, having) = (take(&mut select.aggregates), take(&mut select.having));
        // Without aggregates and keys, HAVING returns one row or none, independent of FROM and
        // WHERE.
        if select.grouped && select.groups.is_empty() && calls.is_empty() {
            let sets = Sets { calls: take(&mut select.grouped_sets), ordinality: None };
            let part = self.with_sets(Part::one(), sets)?;
            return self.filtered(part, having);
        }
        if semis.is_empty()
            && let Some(table) = self.extremes_of(select, &calls, outside)
        {
            let part = self.extremes(table, &select.conditions, calls, outside)?;
            return self.filtered(part, having);
        }
        let conditions = take(&mut select.conditions);
        let mut part = match select.from.take() {
            Some(from) => self.join_tree(from, (conditions, semis), outside, order.wanted())?,
            None => self.filtered(Part { ordered: true, ..Part::one() }, conditions)?,
        };
        part.ordered &= match order.user {
            User::Nobody => false,
            User::OrderBy | User::Distinct | User::Window => !order.keys.is_empty(),
            User::Groups { .. } => true,
        };
        if !matches!(order.user, User::OrderBy | User::Distinct) {
            part.sorted = 0;
        }
        let sets = Sets { calls: take(&mut select.grouped_sets), ordinality: None };
        let part = self.with_sets(part, sets)?;
        if !select.grouped {
            return Ok(part);
        }
        let part = self.aggregated(part, (take(&mut select.groups), calls), order)?;
        self.filtered(part, having)
    }

    /// The rows that a locking clause locks, and the plan of the second look over their newer
    /// versions.
    fn row_locks(
        &mut self,
        select: &Select,
        top: &Top,
        outside: &Registers,
    ) -> Result<Option<RowLocks>, SqlError> {
        let (Some(from), false) = (&select.from, top.locks.is_empty()) else { return Ok(None) };
        let mut targets = Vec::with_capacity(top.locks.len());
        for (source, lock, wait) in &top.locks {
            let table = super::from::table_of(from, *source)
                .ok_or_else(|| SqlError::internal("a locked row without a table"))?;
            targets.push(LockTarget { target: self.row_target(*source, table)?, lock: *lock, wait: *wait });
        }
        // Columns computed above the limit see the newer version anyway.
        let is_late = top.late();
        let (computed, late): (Vec<_>, Vec<_>) =
            select.targets.iter().cloned().partition(|(_, register)| !is_late(*register));
        let mut above = Registers::default();
        late.iter().for_each(|(expr, _)| registers::of_expr(expr, &mut above));
        let read = read_below(select, from, &computed);
        let is_bare = |link: &&Sublink| is_late(link.output) && !read.contains(&link.output);
        let below = |link: &&Sublink| !above.contains(&link.output) && !is_bare(link);
        let sources: Vec<SourceId> = top.locks.iter().map(|(source, ..)| *source).collect();
        let sublinks: Vec<Sublink> = select.sublinks.iter().filter(below).cloned().collect();
        let parts = super::second_look::Parts {
            targets: &sources,
            from,
            conditions: &select.conditions,
            assigned: &[],
            computed: &computed,
            sublinks: &sublinks,
        };
        let second_look = self.second_look(&parts, outside)?;
        Ok(Some(RowLocks { targets, second_look }))
    }

    pub(super) fn projected(&mut self, part: Part, targets: Vec<(Expr, Reg)>) -> Result<Part, SqlError> {
        let mut part = self.attached(part, targets.iter().map(|(expr, _)| expr))?;
        part.plan = part.plan.project(targets);
        Ok(part)
    }

    /// The estimated rows that DISTINCT leaves of all rows of FROM, if their columns are known.
    fn different(&self, select: &Select) -> Option<f64> {
        match (&select.distinct, &select.from) {
            (Distinct::All(columns), Some(from)) if !select.grouped => self.values(from, columns.iter()),
            _ => None,
        }
    }

    /// `different`: the estimated number of different rows, if it is known.
    pub(super) fn distinct(
        &self,
        mut part: Part,
        (distinct, different): (Distinct, Option<f64>),
        top: &Top,
    ) -> Part {
        match distinct {
            Distinct::No => part,
            Distinct::All(keys) => {
                if part.ordered || part.sorted > 0 {
                    keep_order(&mut part.plan);
                }
                let rows = different.map_or(part.rows() * GROUPS, |rows| rows.min(part.rows())).max(1.0);
                let estimate = Estimate { rows, ..part.plan.estimate };
                part.below(|input| Operator::Distinct { input, keys, keep: Vec::new() }, estimate)
            }
            Distinct::On(keys) => {
                // The first row of each set, in the order of ORDER BY.
                if part.ordered {
                    keep_order(&mut part.plan);
                } else {
                    let order = top.order.iter().map(copy_key).collect();
                    part = sorted(part, order, (None, Share::All));
                }
                let estimate = part.plan.estimate;
                part.ordered = true;
                part.below(|input| Operator::Distinct { input, keys, keep: Vec::new() }, estimate)
            }
        }
    }

    /// The share of its rows that a query reads.
    pub(super) fn share(&self, top: &Top) -> Share {
        let Some(limit) = &top.limit else { return Share::All };
        match (self.count(limit), top.offset.as_ref().map_or(Some(None), |offset| self.count(offset))) {
            (Some(Some(limit)), Some(offset)) => Share::Rows((limit + offset.unwrap_or(0.0)).max(1.0)),
            (Some(None), _) => Share::All,
            _ => Share::Some,
        }
    }

    /// The number of rows that an expression means, if it is known. The inner None is NULL.
    pub(super) fn count(&self, expr: &Expr) -> Option<Option<f64>> {
        let value = match expr {
            Expr::Const(value, _) => value.clone(),
            Expr::Param { index, .. } => self.binder.peek(*index)?,
            Expr::Cast(cast) => match &cast.input {
                Expr::Const(value, _) => value.clone(),
                Expr::Param { index, .. } => self.binder.peek(*index)?,
                _ => return None,
            },
            _ => return None,
        };
        match value.datum() {
            Datum::Int8(count) => Some(Some(count as f64)),
            Datum::Int4(count) => Some(Some(f64::from(count))),
            Datum::Null => Some(None),
            _ => None,
        }
    }

    /// The estimate of a part of so many rows under LIMIT and OFFSET. As PostgreSQL does, it takes
    /// a tenth of the rows for a number that is not known.
    fn limited(&self, all: Estimate, (limit, offset): (&Option<Expr>, &Option<Expr>)) -> Estimate {
        let number = |expr: &Option<Expr>, absent: f64| match expr.as_ref().map(|expr| self.count(expr)) {
            None | Some(Some(None)) => absent,
            Some(None) => all.rows * UNKNOWN_SHARE,
            Some(Some(Some(number))) => number.max(0.0),
        };
        let skipped = number(offset, 0.0).min(all.rows);
        let rows = number(limit, all.rows).min(all.rows - skipped).max(1.0);
        let work = |rows: f64| all.start + (all.cost - all.start) * (rows / all.rows.max(1.0)).min(1.0);
        Estimate { start: work(skipped), cost: work(skipped + rows), rows }
    }

    /// Adds ORDER BY, row locks and LIMIT.
    pub(super) fn topped(
        &mut self,
        mut part: Part,
        top: Top,
        locks: Option<RowLocks>,
    ) -> Result<Part, SqlError> {
        let ties: Vec<Expr> =
            if top.ties { top.order.iter().map(|key| key.expr.clone()).collect() } else { Vec::new() };
        if !top.order.is_empty() && !part.ordered {
            let bound = match (&top.limit, &top.offset) {
                (Some(limit), None) if !top.ties && top.locks.is_empty() => Some(limit.clone()),
                (Some(limit), Some(offset)) if !top.ties && top.locks.is_empty() => {
                    functions::operator("+", Some(limit.clone()), offset.clone()).ok()
                }
                _ => None,
            };
            let share = self.share(&top);
            part = sorted(part, top.order, (bound, share));
        } else if !top.order.is_empty() {
            keep_order(&mut part.plan);
        }
        if let Some(RowLocks { targets, second_look }) = locks {
            let estimate = part.plan.estimate;
            part = part.below(|input| Operator::LockRows { input, targets, second_look }, estimate);
        }
        if top.limit.is_some() || top.offset.is_some() {
            let estimate = self.limited(part.plan.estimate, (&top.limit, &top.offset));
            let (limit, offset) = (top.limit, top.offset);
            part = part.below(|input| Operator::Limit { input, limit, offset, ties }, estimate);
        }
        Ok(part)
    }

    /// A part with conditions applied on top. Conditions without a subquery come first. A subquery
    /// runs only for rows that meet the conditions before its own, since it may fail for others.
    pub(super) fn filtered(&mut self, part: Part, conditions: Vec<Expr>) -> Result<Part, SqlError> {
        let (late, early): (Vec<Expr>, Vec<Expr>) =
            conditions.into_iter().partition(|condition| self.reads_pending(condition));
        let mut part = self.filtered_at_once(part, early)?;
        for condition in late {
            part = self.attached(part, std::iter::once(&condition))?;
            part = self.filtered_at_once(part, vec![condition])?;
        }
        Ok(part)
    }

    /// A part with conditions applied on top that read only filled registers.
    fn filtered_at_once(&mut self, mut part: Part, conditions: Vec<Expr>) -> Result<Part, SqlError> {
        if conditions.is_empty() {
            return Ok(part);
        }
        let kept: f64 = conditions.iter().map(cost::selectivity).product();
        let estimate = Estimate { rows: (part.rows() * kept).max(1.0), ..part.plan.estimate };
        let mut all = Vec::new();
        let input = match part.plan.operator {
            Operator::Filter { input, condition } => {
                crate::bind::flatten_condition(condition, &mut all)?;
                input
            }
            operator => Box::new(Plan::new(operator, part.plan.estimate)),
        };
        all.extend(conditions);
        part.plan = Plan::new(Operator::Filter { input, condition: Expr::and(all) }, estimate);
        Ok(part)
    }

    /// The registers that a leaf fills for others.
    pub(super) fn leaf_writes(&self, leaf: &Leaf) -> Registers {
        match leaf {
            Leaf::Table(source, _) => self.source_writes(*source),
            Leaf::Planned(part) => written(&part.plan),
            Leaf::Query(query) => query.output.iter().map(|column| column.register).collect(),
            Leaf::Joined(join) => self.item_writes(&join.0),
            Leaf::Full(join) => {
                let mut writes = self.item_writes(&join.0);
                writes.extend(self.item_writes(&join.1));
                writes
            }
        }
    }

    pub(super) fn source_writes(&self, source: SourceId) -> Registers {
        let source = &self.binder.sources[source];
        let mut writes: Registers = source.columns.iter().flatten().copied().collect();
        writes
            .extend(source.identity.iter().flat_map(|identity| [identity.key, identity.stamp, identity.row]));
        writes
    }

    /// The registers that an item of FROM fills for others.
    pub(super) fn item_writes(&self, item: &FromItem) -> Registers {
        match item {
            FromItem::Join { left, right, .. } => {
                let mut writes = self.item_writes(left);
                writes.extend(self.item_writes(right));
                writes
            }
            FromItem::Source(source, Source::Table(_) | Source::Common(_)) => self.source_writes(*source),
            FromItem::Source(_, Source::Query(query)) => {
                query.output.iter().map(|column| column.register).collect()
            }
            FromItem::Source(_, Source::Function(calls, ordinality)) => {
                calls.iter().flat_map(|call| &call.output).chain(ordinality).copied().collect()
            }
        }
    }

    /// Registers of siblings that a leaf may read.
    pub(super) fn leaf_needs(&self, leaf: &Leaf) -> Registers {
        let mut needs = Registers::default();
        match leaf {
            Leaf::Table(..) => {}
            Leaf::Planned(part) => needs = free(&part.plan),
            Leaf::Query(query) => query_reads(query, &mut needs),
            Leaf::Joined(join) => {
                item_reads(&join.0, &mut needs);
                join.1.iter().for_each(|semi| semi.reads(&mut needs));
            }
            Leaf::Full(join) => {
                item_reads(&join.0, &mut needs);
                item_reads(&join.1, &mut needs);
                join.2.iter().for_each(|expr| registers::of_expr(expr, &mut needs));
            }
        }
        needs
    }
}

/// The registers that a query reads below its limit, sort keys aside.
fn read_below(select: &Select, from: &FromItem, computed: &[(Expr, Reg)]) -> Registers {
    let mut read = Registers::default();
    item_reads(from, &mut read);
    let exprs = computed.iter().map(|(expr, _)| expr).chain(&select.conditions);
    exprs.for_each(|expr| registers::of_expr(expr, &mut read));
    select.sublinks.iter().for_each(|link| sublink_reads(link, &mut read));
    read
}

/// Marks the joins that pass on their left rows in order, because a node above relies on it.
pub(super) fn keep_order(plan: &mut Plan) {
    match &mut plan.operator {
        Operator::EquiJoin { left, method, .. } => {
            if let EquiMethod::Hash { ordered } = method {
                *ordered = true;
            }
            keep_order(left);
        }
        // The right side gives the order for the one row of the left side.
        Operator::NestedLoop { left, right, .. } if at_most_one(left) => keep_order(right),
        Operator::NestedLoop { left: input, .. }
        | Operator::Filter { input, .. }
        | Operator::Project { input, .. }
        | Operator::Subquery { input, .. } => keep_order(input),
        _ => {}
    }
}

/// The fields of a LockRows node other than its input.
pub(super) struct RowLocks {
    targets: Vec<LockTarget>,
    second_look: Option<Box<SecondLook>>,
}

/// A part sorted by these keys. It reads a share of the sorted rows, the first ones up to a limit.
pub(super) fn sorted(mut part: Part, keys: Vec<SortKey>, (limit, share): (Option<Expr>, Share)) -> Part {
    if keys.is_empty() {
        return part;
    }
    let mut estimate = part.plan.estimate;
    estimate.cost += cost::sort(estimate.rows, share.kept(estimate.rows));
    let presorted = part.sorted;
    if presorted == 0 {
        estimate.start = estimate.cost;
    } else {
        keep_order(&mut part.plan);
    }
    let node = |input| Operator::Sort { input, keys, presorted, keep: Vec::new(), limit };
    part.below(node, estimate)
}
