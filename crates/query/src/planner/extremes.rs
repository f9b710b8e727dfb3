//! min and max by ordered scans: a scan that ends at its first row, for each aggregate.
//!
//! What must hold:
//!
//! 1. The order of a key is that of min and max, so the first row with a value has the result.
//! 2. Several aggregates read the table by scans with registers of their own. So no condition is
//!    volatile, or reads a subquery that one node computes for all.
//! 3. The aggregate stays above its scan. It gives NULL without a row.

use runtime::hash::HashMap;
use std::sync::Arc;

use super::Planner;
use super::cost;
use super::grouping::Order;
use super::nested_loop::nested_loop;
use super::part::{Part, Share, Wanted};
use super::top::Top;
use crate::bind::{SourceRegisters, rename, same};
use crate::bound::{FromItem, Select, Source, SourceId};
use crate::plan::{AggregateCall, JoinKind, Reg, SortKey};
use crate::registers::{self, Registers};
use catalog::Table;
use expressions::expr::Expr;
use expressions::function::{AggregateKind, Volatility};
use values::error::SqlError;
use values::types::{Type, Value};

impl Planner<'_, '_> {
    /// The table whose ordered scans give a SELECT's aggregates at less cost than one scan of all
    /// rows.
    pub(super) fn extremes_of(
        &self,
        select: &Select,
        calls: &[AggregateCall],
        outside: &Registers,
    ) -> Option<(SourceId, Arc<Table>)> {
        let FromItem::Source(source, Source::Table(table)) = select.from.as_ref()? else { return None };
        let are_extremes = !calls.is_empty() && calls.iter().all(|call| extreme(call).is_some());
        if table.is_virtual() || !are_extremes || !select.groups.is_empty() || !select.grouped_sets.is_empty()
        {
            return None;
        }
        let scans = alike(calls.to_vec());
        let is_volatile = |expr: &Expr| expr.volatility() == Volatility::Volatile;
        let filters = calls.iter().flat_map(|call| &call.filter);
        let shared = scans.len() > 1 && select.conditions.iter().any(|expr| self.reads_pending(expr));
        if shared
            || filters.clone().any(|filter| self.reads_pending(filter))
            || filters.chain(&select.conditions).any(is_volatile)
        {
            return None;
        }
        // Subqueries without outer reads are computed before the scan.
        let mut available = outside.clone();
        available.extend(self.pending.keys());
        let mut sum = 0.0;
        for calls in scans {
            sum += self.first_row(*source, table, &select.conditions, &calls[0], &available)?;
        }
        let all = self.search(*source, table, &select.conditions, &available, Wanted::default()).best();
        (sum < all.cost + all.rows * cost::HASH_PROBE).then(|| (*source, Arc::clone(table)))
    }

    /// The cost of finding the row with an aggregate's result; None if no key gives the order.
    fn first_row(
        &self,
        source: SourceId,
        table: &Table,
        conditions: &[Expr],
        call: &AggregateCall,
        available: &Registers,
    ) -> Option<f64> {
        let key = extreme(call)?;
        let mut conditions = conditions.to_vec();
        self.add_conditions(source, table, call, &mut conditions)?;
        let order = [key];
        let wanted = Wanted { order: &order, share: Share::Rows(1.0), ..Wanted::default() };
        let search = self.search(source, table, &conditions, available, wanted);
        let access = search.best_in_order()?;
        let found = (search.rows * search.kept(&conditions)).max(1.0);
        Some(cost::DESCENT + access.ahead + (access.cost - access.ahead) / found)
    }

    /// Adds the conditions on the row with an aggregate's result. None if its argument is not a
    /// column.
    fn add_conditions(
        &self,
        source: SourceId,
        table: &Table,
        call: &AggregateCall,
        conditions: &mut Vec<Expr>,
    ) -> Option<()> {
        let argument = call.arguments.first()?;
        let none = Registers::default();
        let column = self.search(source, table, &[], &none, Wanted::default()).own_column(argument)?;
        conditions.extend(call.filter.clone());
        if !table.columns[column as usize].not_null {
            conditions.push(Expr::NullTest { input: Box::new(argument.clone()), negated: true });
        }
        Some(())
    }

    /// Plans the aggregates of [`Planner::extremes_of`].
    pub(super) fn extremes(
        &mut self,
        (source, table): (SourceId, Arc<Table>),
        conditions: &[Expr],
        calls: Vec<AggregateCall>,
        outside: &Registers,
    ) -> Result<Part, SqlError> {
        let scans = alike(calls);
        let several = scans.len() > 1;
        let mut all: Option<Part> = None;
        for mut calls in scans {
            let mut own = conditions.to_vec();
            self.add_conditions(source, &table, &calls[0], &mut own)
                .ok_or_else(|| SqlError::internal("an extreme of no column"))?;
            calls.iter_mut().for_each(|call| call.filter = None);
            let source = if several { self.scanned_again(source, &mut own, &mut calls) } else { source };
            let from = FromItem::Source(source, Source::Table(Arc::clone(&table)));
            let part = self.first(from, own, calls, outside)?;
            all = Some(match all {
                None => part,
                Some(left) => Part { plan: nested_loop(JoinKind::Inner, left.plan, part.plan, None), ..left },
            });
        }
        all.ok_or_else(|| SqlError::internal("no aggregate"))
    }

    /// Aggregates alike over the first row of an ordered scan.
    fn first(
        &mut self,
        from: FromItem,
        conditions: Vec<Expr>,
        calls: Vec<AggregateCall>,
        outside: &Registers,
    ) -> Result<Part, SqlError> {
        let order: Vec<SortKey> = calls.first().and_then(extreme).into_iter().collect();
        let wanted = Wanted { order: &order, share: Share::Rows(1.0), ..Wanted::default() };
        let part = self.join_tree(from, (conditions, Vec::new()), outside, wanted)?;
        let one = Expr::constant(Value::Int8(1), Type::INT8);
        let top = Top { order, limit: Some(one), offset: None, ties: false, locks: Vec::new() };
        let part = self.topped(part, top, None)?;
        self.aggregated(part, (Vec::new(), calls), &Order::none())
    }

    /// A source for one more scan of a table, with registers for the columns that aggregates and
    /// their conditions read.
    fn scanned_again(
        &mut self,
        source: SourceId,
        conditions: &mut [Expr],
        calls: &mut [AggregateCall],
    ) -> SourceId {
        let mut read = Registers::default();
        let mut exprs: Vec<&mut Expr> =
            conditions.iter_mut().chain(calls.iter_mut().flat_map(|call| &mut call.arguments)).collect();
        exprs.iter().for_each(|expr| registers::of_expr(expr, &mut read));
        let mut columns = self.binder.sources[source].columns.clone();
        let mut renamed: HashMap<Reg, Reg> = HashMap::default();
        for column in &mut columns {
            *column = column.filter(|register| read.contains(register)).map(|register| {
                let own = self.binder.register();
                renamed.insert(register, own);
                own
            });
        }
        for expr in &mut exprs {
            rename(expr, &renamed);
        }
        self.binder.sources.push(SourceRegisters { columns, identity: None });
        self.binder.sources.len() - 1
    }
}

/// The order in which the row with a min or max comes first. None for another aggregate.
fn extreme(call: &AggregateCall) -> Option<SortKey> {
    let descending = match call.function.kind {
        AggregateKind::Min => false,
        AggregateKind::Max => true,
        _ => return None,
    };
    let [argument] = call.arguments.as_slice() else { return None };
    // No NULL comes.
    call.order.is_empty().then(|| SortKey { expr: argument.clone(), descending, nulls_first: descending })
}

/// Aggregates in groups that have one result.
fn alike(calls: Vec<AggregateCall>) -> Vec<Vec<AggregateCall>> {
    let mut groups: Vec<Vec<AggregateCall>> = Vec::new();
    for call in calls {
        let is_alike = |other: &AggregateCall| {
            let filters = match (&call.filter, &other.filter) {
                (Some(own), Some(other)) => same(own, other),
                (None, None) => true,
                _ => false,
            };
            filters && call.function == other.function && same(&call.arguments[0], &other.arguments[0])
        };
        match groups.iter_mut().find(|group| is_alike(&group[0])) {
            Some(group) => group.push(call),
            None => groups.push(vec![call]),
        }
    }
    groups
}
