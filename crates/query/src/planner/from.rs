//! FROM as the second look at locked rows sees it ([`super::second_look`]). It has the subqueries
//! that PostgreSQL merges into the query around them. It also has the tables whose rows show
//! whether an item had a row.

use std::sync::Arc;

use super::Planner;
use crate::bound::{Distinct, FromItem, Query, QueryBody, Select, Source, SourceId};
use crate::plan::JoinKind;
use crate::registers::{self, Registers};
use catalog::Table;
use expressions::expr::Expr;
use expressions::function::Volatility;

impl Planner<'_, '_> {
    /// The SELECT of a subquery in FROM, if PostgreSQL merges it into the query around it.
    pub(super) fn merged<'q>(&self, query: &'q Query) -> Option<&'q Select> {
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

    /// Whether the condition of an outer join, or of a join below one, reads the queries around the
    /// SELECT.
    fn joins_by_outside(&self, select: &Select) -> bool {
        let Some(from) = &select.from else { return false };
        let mut own: Registers = select.sublinks.iter().map(|link| link.output).collect();
        self.inner_writes(from, &mut own);
        let mut outer = Vec::new();
        outer_conditions(from, &mut outer);
        outer.into_iter().any(|condition| !registers::reads(condition).is_subset(&own))
    }

    /// A stored table that has a row whenever the item has one.
    pub(super) fn first_table(&self, item: &FromItem) -> Option<SourceId> {
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
    pub(super) fn inner_writes(&self, item: &FromItem, into: &mut Registers) {
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

/// The conditions of all joins of FROM.
pub(super) fn join_conditions<'q>(item: &'q FromItem, into: &mut Vec<&'q Expr>) {
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

/// The stored table of a source of FROM.
pub(super) fn table_of(item: &FromItem, wanted: SourceId) -> Option<Arc<Table>> {
    match item {
        FromItem::Source(source, Source::Table(table)) => (*source == wanted).then(|| Arc::clone(table)),
        FromItem::Source(..) => None,
        FromItem::Join { left, right, .. } => table_of(left, wanted).or_else(|| table_of(right, wanted)),
    }
}
