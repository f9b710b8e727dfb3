//! Setting `join_collapse_limit`: which JOINs keep their written order.
//!
//! As in PostgreSQL, each side of a JOIN is a list of items in any order. A JOIN merges both lists,
//! unless the merged one has more items than the limit. Then each side with several items is joined
//! first, by itself, and the JOIN is a list of two items. So a limit of 1 keeps the order of all
//! JOINs. Which of two sides is read first stays the planner's choice.
//!
//! What must hold: commas and subqueries of FROM merge whatever the limit is. FULL JOIN and the
//! nullable side of an outer join are one item.

use super::pushdown::is_flat;
use crate::bound::walk::{self, Part};
use crate::bound::{Bound, FromItem, Query, QueryBody, Source};
use crate::plan::JoinKind;

/// Marks the joins of a statement that keep their written order.
pub(super) fn statement(bound: &mut Bound, limit: usize) {
    walk::statement(bound, &mut |part| {
        let Part::Join(FromItem::Join { kind, left, right, listed, items, .. }) = part else { return };
        let merged = match kind {
            JoinKind::Left => count(left) + 1,
            JoinKind::Right => 1 + count(right),
            _ => count(left) + count(right),
        };
        *items = (*listed || merged <= limit).then_some(merged);
    });
}

/// The items of the list that an item of FROM becomes. Its joins are counted.
fn count(item: &FromItem) -> usize {
    match item {
        FromItem::Join { kind: JoinKind::Full, .. } => 1,
        FromItem::Join { items, .. } => items.unwrap_or(2),
        FromItem::Source(_, Source::Query(query)) => inner(query).map_or(1, count),
        FromItem::Source(..) => 1,
    }
}

/// Whether an item of FROM is one side of a join, however many items others merge into.
pub(super) fn is_one(item: &FromItem) -> bool {
    match item {
        FromItem::Join { kind, .. } => *kind == JoinKind::Full,
        FromItem::Source(_, Source::Query(query)) => inner(query).is_none_or(is_one),
        FromItem::Source(..) => true,
    }
}

/// FROM of a subquery that merges into the query around it.
fn inner(query: &Query) -> Option<&FromItem> {
    match &query.body {
        QueryBody::Select(select) if is_flat(query) => select.from.as_ref(),
        _ => None,
    }
}
