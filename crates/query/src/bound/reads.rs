//! The registers that bound queries read, before planning. They show which sources read others of
//! the same FROM (LATERAL).

use super::{FromItem, Query, QueryBody, Source, Sublink};
use crate::registers::{self, Registers};

/// Adds all registers that a query's expressions read, the query's own included.
pub(crate) fn query_reads(query: &Query, into: &mut Registers) {
    for table in &query.tables {
        query_reads(&table.query, into);
        table.recursive.iter().for_each(|(term, _)| query_reads(term, into));
    }
    query.order.iter().for_each(|key| registers::of_expr(&key.expr, into));
    query.limit.iter().chain(&query.offset).for_each(|expr| registers::of_expr(expr, into));
    query.limit_sublinks.iter().for_each(|link| sublink_reads(link, into));
    match &query.body {
        QueryBody::Values { rows, sublinks, .. } => {
            rows.iter().flatten().for_each(|expr| registers::of_expr(expr, into));
            sublinks.iter().for_each(|link| sublink_reads(link, into));
        }
        QueryBody::Set { sides, .. } => sides.iter().for_each(|side| query_reads(side, into)),
        QueryBody::Select(select) => {
            select.from.iter().for_each(|item| item_reads(item, into));
            let pairs = select.groups.iter().chain(&select.targets).map(|(expr, _)| expr);
            let conditions = select.conditions.iter().chain(&select.having);
            let calls = select.aggregates.iter().flat_map(|call| {
                call.arguments.iter().chain(&call.filter).chain(call.order.iter().map(|key| &key.expr))
            });
            let sets = select.grouped_sets.iter().chain(&select.sets).flat_map(|set| &set.arguments);
            pairs.chain(conditions).chain(calls).chain(sets).for_each(|expr| registers::of_expr(expr, into));
            for window in &select.windows {
                let keys = window.order.iter().map(|key| &key.expr);
                let arguments = window.calls.iter().flat_map(|call| &call.arguments);
                window
                    .partition
                    .iter()
                    .chain(keys)
                    .chain(arguments)
                    .chain(&window.run)
                    .for_each(|expr| registers::of_expr(expr, into));
            }
            select.sublinks.iter().for_each(|link| sublink_reads(link, into));
        }
    }
}

/// Adds all registers that an expression's subquery reads, the subquery's own included.
pub(crate) fn sublink_reads(link: &Sublink, into: &mut Registers) {
    query_reads(&link.query, into);
    registers::kind_reads(&link.kind, into);
}

pub(crate) fn item_reads(item: &FromItem, into: &mut Registers) {
    match item {
        FromItem::Join { left, right, condition, .. } => {
            item_reads(left, into);
            item_reads(right, into);
            condition.iter().for_each(|expr| registers::of_expr(expr, into));
        }
        FromItem::Source(_, Source::Query(query)) => query_reads(query, into),
        FromItem::Source(_, Source::Function(calls, _)) => {
            calls.iter().flat_map(|call| &call.arguments).for_each(|expr| registers::of_expr(expr, into));
        }
        FromItem::Source(_, Source::Table(_) | Source::Common(_)) => {}
    }
}
