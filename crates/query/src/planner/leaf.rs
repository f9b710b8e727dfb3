//! The sources of joins: what reading one costs, and its plan.
//!
//! What must hold: a source is priced under the same conditions under which it is then planned.

use std::sync::Arc;

use super::Planner;
use super::cost;
use super::graph::{Graph, Node, Set};
use super::nested_loop::nested_loop;
use super::part::{Leaf, Part, Wanted};
use super::price::{Merging, Price, Prices, Sets, Sought};
use super::pushdown::{is_open, push_down};
use super::search::Search;
use super::single::at_most_one;
use super::stable;
use crate::bound::{FromItem, Query, QueryBody, Source, SourceId};
use crate::plan::{self, ColumnRead, JoinKind, Operator, Plan, Reg, Scan};
use crate::registers::Registers;
use expressions::expr::Expr;
use expressions::function::Volatility;
use values::error::SqlError;

/// The estimate of a source.
pub(super) struct Estimate {
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// Whether it has at most one row.
    pub(super) single: bool,
}

impl Planner<'_, '_> {
    pub(super) fn search<'s>(
        &'s self,
        source: SourceId,
        table: &'s catalog::Table,
        conditions: &'s [Expr],
        available: &'s Registers,
        wanted: Wanted<'s>,
    ) -> Search<'s> {
        let of = &self.binder.sources[source];
        let search = self.search_in(&of.columns, table, (conditions, available), wanted);
        Search { reads_columns: of.identity.is_none(), ..search }
    }

    fn search_in<'s>(
        &'s self,
        columns: &'s [Option<Reg>],
        table: &'s catalog::Table,
        (conditions, available): (&'s [Expr], &'s Registers),
        wanted: Wanted<'s>,
    ) -> Search<'s> {
        Search {
            table,
            columns,
            conditions,
            available,
            rows: cost::table_rows(self.context(), table),
            statistics: self.context().catalog.statistics(table.oid),
            values: &*self.binder,
            choices: &self.choices,
            reads_columns: false,
            alone: self.binder.sources.len() == 1,
            order: wanted.order,
            share: wanted.share,
            otherwise: wanted.otherwise,
            methods: self.context().methods,
        }
    }

    /// Plans a source with its own conditions. `available`: registers filled before it runs.
    pub(super) fn leaf(
        &mut self,
        leaf: Leaf,
        conditions: Vec<Expr>,
        available: &Registers,
        wanted: Wanted<'_>,
    ) -> Result<Part, SqlError> {
        match leaf {
            Leaf::Table(source, table) => {
                let mut conditions = conditions;
                let once = self.tested_once(None, &mut conditions, &Registers::default())?;
                let part = self.scan(source, table, conditions, available, wanted)?;
                Ok(after_test(once, part))
            }
            Leaf::Planned(part) => self.filtered(*part, conditions),
            Leaf::Query(query) => {
                // Conditions on a subquery's result stay here, where the subquery is computed.
                let (late, conditions): (Vec<Expr>, Vec<Expr>) =
                    conditions.into_iter().partition(|condition| self.reads_pending(condition));
                let (inside, mut outside) = push_down(*query, conditions);
                outside.extend(late);
                // Its order is its own, not the one wanted here.
                let part = Part { sorted: 0, ordered: false, ..self.query(inside, available)? };
                self.filtered(part, outside)
            }
            Leaf::Joined(join) => {
                let (item, semis) = *join;
                self.join_tree(item, (conditions, semis), available, Wanted::default())
            }
            Leaf::Full(join) => {
                let (left, right, on) = *join;
                let (left_writes, right_writes) = (self.item_writes(&left), self.item_writes(&right));
                let part = self.full_join((left, left_writes), (right, right_writes), on, available)?;
                self.filtered(part, conditions)
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
            let operator = Operator::Virtual { relation: table.oid, columns, filter };
            let estimate = plan::Estimate { start: 0.0, cost: rows, rows: (rows * kept).max(1.0) };
            let part = Part { ordered: wanted.order.is_empty(), ..Part::new(operator, estimate) };
            return self.filtered(part, late);
        }
        let search = self.search(source, &table, &conditions, available, wanted);
        let in_order = || search.best_in_order().or_else(|| Some(search.best_presorted()?.0));
        let access = wanted.ordered.then(in_order).flatten();
        let access = access.unwrap_or_else(|| search.best());
        let (path, entry) =
            (access.path(&table)?, access.scanned_index().and_then(|index| search.covering(index)));
        let kept = search.rows * search.kept(&conditions);
        let rows = kept.min(access.rows).max(1.0);
        let estimate = plan::Estimate { start: access.ahead, cost: access.cost, rows };
        let (used, sorted, ordered) = (access.used, access.sorted, access.ordered);
        let mut filters = Vec::new();
        for (index, condition) in conditions.into_iter().enumerate() {
            if !used.contains(&index) {
                filters.push(condition);
            }
        }
        let filter = (!filters.is_empty()).then(|| Expr::and(filters));
        let identity = self.binder.sources[source].identity;
        let scan = Operator::Scan(Box::new(Scan { table, path, columns, entry, identity, filter }));
        let plan = Plan::new(scan, estimate);
        self.filtered(Part { plan, sorted, ordered }, late)
    }

    /// Estimates a source under conditions.
    pub(super) fn estimate(&self, leaf: &Leaf, conditions: &[Expr], available: &Registers) -> Estimate {
        let kept = || -> f64 { conditions.iter().map(cost::selectivity).product() };
        match leaf {
            Leaf::Table(source, table) => self.estimate_table(*source, table, conditions, available),
            Leaf::Planned(part) => {
                let single = at_most_one(&part.plan);
                Estimate { rows: (part.rows() * kept()).max(1.0), cost: part.cost(), single }
            }
            Leaf::Query(query) => self.estimate_query(query, conditions, available),
            Leaf::Joined(join) => self.estimate_item(&join.0, conditions, available),
            Leaf::Full(join) => {
                let rows = self.item_rows(&join.0).max(self.item_rows(&join.1));
                Estimate { rows: (rows * kept()).max(1.0), cost: rows * 2.0, single: false }
            }
        }
    }

    fn estimate_table(
        &self,
        source: SourceId,
        table: &catalog::Table,
        conditions: &[Expr],
        available: &Registers,
    ) -> Estimate {
        if table.is_virtual() {
            let rows = cost::table_rows(self.context(), table);
            let kept: f64 = conditions.iter().map(cost::selectivity).product();
            return Estimate { rows: (rows * kept).max(1.0), cost: rows, single: false };
        }
        let search = self.search(source, table, conditions, available, Wanted::default());
        let access = search.best();
        let rows = (search.rows * search.kept(conditions)).min(access.rows).max(1.0);
        Estimate { rows, cost: access.cost + access.rows * cost::ROW, single: access.single }
    }

    /// A subquery over one table is as cheap as that table's rows under the conditions.
    fn estimate_query(&self, query: &Query, conditions: &[Expr], available: &Registers) -> Estimate {
        let unknown = Estimate { rows: cost::SOME_ROWS, cost: 10.0 * cost::SOME_ROWS, single: false };
        if conditions.iter().any(|condition| self.reads_pending(condition)) {
            return unknown;
        }
        let (inner, _) = push_down(query.clone(), conditions.to_vec());
        let QueryBody::Select(select) = &inner.body else { return unknown };
        let Some(from) = &select.from else {
            return Estimate { rows: 1.0, cost: 1.0, single: select.sets.is_empty() };
        };
        let mut estimate = self.estimate_item(from, &select.conditions, available);
        if !is_open(&inner) && inner.limit.is_some() {
            estimate.rows = estimate.rows.min(10.0);
        }
        estimate
    }

    /// A join is as cheap as a loop that begins with the table that the conditions bound best.
    pub(super) fn estimate_item(
        &self,
        item: &FromItem,
        conditions: &[Expr],
        available: &Registers,
    ) -> Estimate {
        let mut tables: Vec<(SourceId, &catalog::Table)> = Vec::new();
        let mut others = 0.0;
        sources(item, &mut |source, of| match of {
            Source::Table(table) => tables.push((source, table)),
            _ => others += cost::SOME_ROWS,
        });
        let single = tables.len() == 1 && others == 0.0;
        let estimates = tables.iter().map(|(source, table)| {
            let own: Registers = self.source_writes(*source);
            let around: Registers = available.difference(&own).copied().collect();
            self.estimate_table(*source, table, conditions, &around)
        });
        let first = estimates.min_by(|one, other| one.cost.total_cmp(&other.cost));
        let Some(first) = first else {
            return Estimate { rows: cost::SOME_ROWS, cost: others, single: false };
        };
        let steps = tables.len() as f64 - 1.0;
        Estimate {
            rows: first.rows,
            cost: first.cost + first.rows * steps * (cost::DESCENT + cost::INDEX_ROW) + others,
            single: single && first.single,
        }
    }

    fn item_rows(&self, item: &FromItem) -> f64 {
        match item {
            FromItem::Source(_, Source::Table(table)) => cost::table_rows(self.context(), table),
            FromItem::Source(..) => cost::SOME_ROWS,
            FromItem::Join { left, right, .. } => self.item_rows(left).max(self.item_rows(right)),
        }
    }

    /// Estimated distinct values of a column of a source with so many rows.
    pub(super) fn distinct_values(&self, leaf: &Leaf, register: Reg, rows: f64) -> f64 {
        let Leaf::Table(source, table) = leaf else { return rows };
        let columns = &self.binder.sources[*source].columns;
        let column = columns.iter().position(|column| *column == Some(register));
        column.and_then(|column| self.distinct_in(table, column as u32)).unwrap_or(rows)
    }

    /// Estimated distinct values of a column of a stored table.
    pub(super) fn distinct_in(&self, table: &catalog::Table, column: u32) -> Option<f64> {
        self.asking(table, |search| search.distinct(column))
    }

    /// The answer of a search without conditions over a stored table.
    pub(super) fn asking<R>(&self, table: &catalog::Table, ask: impl FnOnce(&Search<'_>) -> R) -> Option<R> {
        let none = Registers::default();
        let search = || self.search_in(&[], table, (&[], &none), Wanted::default());
        (!table.is_virtual()).then(|| ask(&search()))
    }
}

/// A part that is read if the conditions tested before it hold.
pub(super) fn after_test(first: Option<Part>, part: Part) -> Part {
    let Some(first) = first else { return part };
    Part { plan: nested_loop(JoinKind::Inner, first.plan, part.plan, None), ..part }
}

/// Visits the sources of an item of FROM.
pub(super) fn sources<'q>(item: &'q FromItem, visit: &mut dyn FnMut(SourceId, &'q Source)) {
    match item {
        FromItem::Join { left, right, .. } => {
            sources(left, visit);
            sources(right, visit);
        }
        FromItem::Source(source, of) => visit(*source, of),
    }
}

/// Prices of the sides of a join.
pub(super) struct LeafPrices<'j, 'b, 'a> {
    pub(super) planner: &'j Planner<'b, 'a>,
    pub(super) leaves: &'j [Option<Leaf>],
    /// Subqueries that are planned, for loops that run them with conditions inside.
    pub(super) queries: &'j [Option<Box<Query>>],
    pub(super) graph: &'j Graph,
    /// The conditions of each side alone, or of the left join whose nullable side it is.
    pub(super) own: &'j [Vec<Expr>],
    /// Registers filled before the join.
    pub(super) outside: &'j Registers,
    pub(super) wanted: Wanted<'j>,
    /// For each nullable side, whether its condition has a key for hashing.
    pub(super) keyed: &'j [bool],
}

impl LeafPrices<'_, '_, '_> {
    /// The conditions of a side for one row of others, and the registers that are then filled.
    fn running(&self, side: usize, clauses: &[usize]) -> (Vec<Expr>, Registers) {
        let mut conditions = self.own[side].clone();
        conditions.extend(clauses.iter().map(|&at| self.graph.clauses[at].condition.clone()));
        let others = self.graph.nodes.iter().enumerate().filter(|(other, _)| *other != side);
        let mut available: Registers = others.flat_map(|(_, node)| &node.writes).copied().collect();
        available.extend(self.outside);
        (conditions, available)
    }

    /// A table's rows in an order.
    pub(super) fn ordered(
        &self,
        side: usize,
        (conditions, available): (&[Expr], &Registers),
        wanted: Wanted<'_>,
    ) -> Option<Price> {
        let Some(Leaf::Table(source, table)) = &self.leaves[side] else { return None };
        if table.is_virtual() {
            return None;
        }
        let search = self.planner.search(*source, table, conditions, available, wanted);
        let access = search.best_in_order()?;
        let rows = (search.rows * search.kept(conditions)).min(access.rows).max(1.0);
        Some(Price { start: access.ahead, cost: access.cost + access.rows * cost::ROW, rows })
    }

    /// The conditions that read a side alone.
    pub(super) fn own_alone(&self, side: usize) -> Vec<Expr> {
        let writes = &self.graph.nodes[side].writes;
        let alone = self.own[side].iter().filter(|condition| {
            let required = self.planner.required(condition);
            required.iter().all(|register| writes.contains(register) || self.outside.contains(register))
        });
        alone.cloned().collect()
    }

    /// Whether a source gives the same rows for the same outer values, as far as is known before it
    /// is planned.
    fn is_stable(&self, leaf: &Leaf, conditions: &[Expr]) -> bool {
        let is_stable = |condition: &Expr| condition.volatility() < Volatility::Volatile;
        conditions.iter().all(is_stable)
            && match leaf {
                Leaf::Query(query) => stable::is_stable(&mut query.clone()),
                Leaf::Planned(part) => stable::is_stable_plan(&part.plan),
                Leaf::Table(..) | Leaf::Joined(_) | Leaf::Full(_) => true,
            }
    }

    fn price(estimate: &Estimate, leaf: &Leaf) -> Price {
        // A part that is planned may compute all its rows before the first.
        let start = if matches!(leaf, Leaf::Planned(_)) { estimate.cost } else { 0.0 };
        Price { start, cost: estimate.cost, rows: estimate.rows }
    }
}

impl Prices for LeafPrices<'_, '_, '_> {
    fn alone(&mut self, side: usize) -> Price {
        let Some(leaf) = &self.leaves[side] else { return Price::NONE };
        // A hash is made of the rows that meet the conditions on the side alone.
        let alone = self.own_alone(side);
        Self::price(&self.planner.estimate(leaf, &alone, self.outside), leaf)
    }

    fn in_order(&mut self, side: usize) -> Option<Price> {
        self.ordered(side, (&self.own[side], self.outside), self.wanted)
    }

    fn presorted(&mut self, side: usize) -> Option<(Price, Sets)> {
        let Some(Leaf::Table(source, table)) = &self.leaves[side] else { return None };
        if table.is_virtual() {
            return None;
        }
        let conditions = &self.own[side];
        let search = self.planner.search(*source, table, conditions, self.outside, self.wanted);
        let (access, sets) = search.best_presorted()?;
        let rows = (search.rows * search.kept(conditions)).min(access.rows).max(1.0);
        let cost = access.cost + access.rows * cost::ROW;
        Some((Price { start: access.ahead, cost, rows }, sets))
    }

    fn run(&mut self, side: usize, clauses: &[usize]) -> Price {
        let Some(leaf) = &self.leaves[side] else { return Price::NONE };
        let (conditions, available) = self.running(side, clauses);
        let price = Self::price(&self.planner.estimate(leaf, &conditions, &available), leaf);
        let Some(query) = &self.queries[side] else { return price };
        let inside = self.planner.estimate_query(query, &conditions, &available);
        if inside.cost < price.cost { Price { start: 0.0, cost: inside.cost, ..price } } else { price }
    }

    fn run_in_order(&mut self, side: usize, clauses: &[usize]) -> Option<Price> {
        let (conditions, available) = self.running(side, clauses);
        self.ordered(side, (&conditions, &available), self.wanted)
    }

    fn outer_values(&self, side: usize, clauses: &[usize]) -> f64 {
        let Some(leaf) = &self.leaves[side] else { return f64::INFINITY };
        let (conditions, _) = self.running(side, clauses);
        let mut read = self.planner.leaf_needs(leaf);
        conditions.iter().for_each(|condition| read.extend(self.planner.required(condition)));
        let mut values = 1.0;
        let mut depends = false;
        for (Node { writes, base, rows, .. }, other) in self.graph.nodes.iter().zip(self.leaves) {
            let Some(other) = other.as_ref().filter(|_| *writes != self.graph.nodes[side].writes) else {
                continue;
            };
            let own = writes.intersection(&read);
            let distinct: Vec<f64> =
                own.map(|register| self.planner.distinct_values(other, *register, *base)).collect();
            if !distinct.is_empty() {
                depends = true;
                values *= distinct.iter().product::<f64>().min(rows.max(1.0));
            }
        }
        if depends && self.is_stable(leaf, &conditions) { values } else { f64::INFINITY }
    }

    fn merging(&mut self, left: Set, side: usize, sought: Sought) -> Option<Merging> {
        match sought {
            Sought::Wanted(keys) => self.merging_by_wanted(left, side, keys),
            Sought::Own => self.merging_by_own(left, side),
        }
    }

    fn has_key(&self, side: usize) -> bool {
        self.keyed[side]
    }
}
