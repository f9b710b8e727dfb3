//! Estimates of rows and work. The unit of work is one row read in order.
//!
//! What must hold:
//!
//! 1. Estimates choose between plans. They never affect a result.
//! 2. A table has at least one estimated row, so products and quotients of estimates stay finite.
//! 3. All estimates are in the one unit, so those of different methods compare.

use crate::request::Context;
use catalog::Table;
use expressions::expr::{Expr, QuantifiedOver};
use expressions::function::Comparison;

/// Estimated rows of a query without any statistics.
pub(super) const SOME_ROWS: f64 = 100.0;

/// Work of finding one key in a tree.
pub(super) const DESCENT: f64 = 3.0;
/// Work of coming to another leaf and reading it.
pub(super) const LEAF: f64 = 20.0;
/// Entries of a leaf.
pub(super) const LEAF_ENTRIES: f64 = 150.0;
/// Work of reading one entry of a secondary index and its row.
pub(super) const INDEX_ROW: f64 = 4.0;
/// Work of reading one entry alone.
pub(super) const ENTRY: f64 = 1.2;
/// Work of reading one row by its key, if the keys come in order.
pub(super) const KEYED_ROW: f64 = 3.0;
/// Work of inserting one row into a hash table.
pub(super) const HASH_BUILD: f64 = 1.5;
/// Work of one lookup in a hash table.
pub(super) const HASH_PROBE: f64 = 0.8;
/// Work of one left and of one right row of a merge join.
pub(super) const MERGE_LEFT: f64 = 0.4;
pub(super) const MERGE_RIGHT: f64 = 0.8;
/// Bytes of a row in a hash table, and the work of a row of either side if it outgrows `work_mem`:
/// both sides are sorted.
pub(super) const HASH_BYTES: f64 = 150.0;
pub(super) const SPILLED: f64 = 1.2;
/// Work of looking up the kept rows of a loop's right side, of keeping those of one run, and of
/// each such row.
pub(super) const MEMO_LOOK: f64 = 0.8;
pub(super) const MEMO_KEEP: f64 = 6.0;
pub(super) const MEMO_ROW: f64 = 0.6;
/// Work of evaluating a condition or passing a row on.
pub(super) const ROW: f64 = 0.2;
/// Lower bound of a guessed number of rows when the planner compares join methods: the table may
/// have grown since ANALYZE.
pub(super) const GUESSED: f64 = 10.0;

/// Work of a method that is off.
pub(crate) const OFF: f64 = 1e10;

/// The work of a method, if it is on.
pub(super) fn of_method(is_on: bool, work: f64) -> f64 {
    if is_on { work } else { work + OFF }
}

/// Estimated rows of a table without statistics, at least, and of a system relation.
const UNKNOWN_ROWS: f64 = 1000.0;
const SYSTEM_ROWS: f64 = 100.0;
/// PostgreSQL's selectivities without statistics.
pub(super) const EQUAL: f64 = 0.005;
pub(super) const RANGE: f64 = 1.0 / 3.0;
const OTHER: f64 = 0.25;

/// Estimated rows of a table.
pub(super) fn table_rows(context: &Context<'_>, table: &Table) -> f64 {
    if table.is_virtual() {
        return SYSTEM_ROWS;
    }
    match context.catalog.statistics(table.oid) {
        Some(statistics) => statistics.rows.max(1.0),
        // The plan stays in use while the table grows, so a small table counts as a larger one.
        None => context.sizes.and_then(|sizes| sizes.rows(table)).unwrap_or(0.0).max(UNKNOWN_ROWS),
    }
}

/// Estimated fraction of the rows that meet a condition, without knowledge of its columns.
pub(super) fn selectivity(condition: &Expr) -> f64 {
    match condition {
        Expr::And(parts) => parts.iter().map(selectivity).product(),
        Expr::Or(parts) => parts.iter().map(selectivity).sum::<f64>().min(1.0),
        Expr::Shared(shared) => selectivity(&shared.body),
        Expr::Not(inner) => (1.0 - selectivity(inner)).max(EQUAL),
        Expr::NullTest { negated, .. } => {
            if *negated {
                1.0 - EQUAL
            } else {
                EQUAL
            }
        }
        Expr::Quantified(quantified) => match &quantified.right {
            QuantifiedOver::List(list) if !quantified.all => (EQUAL * list.len() as f64).min(0.5),
            _ => EQUAL * 10.0,
        },
        _ => match condition.as_comparison() {
            Some((Comparison::Equal, _, _)) => EQUAL,
            Some((Comparison::NotEqual, _, _)) => 1.0 - EQUAL,
            Some(_) => RANGE,
            None => OTHER,
        },
    }
}

/// Work of sorting this number of rows' keys.
pub(super) fn sort_keys(rows: f64) -> f64 {
    0.05 * rows * rows.max(2.0).log2()
}

/// Work of sorting this number of rows, of which so many of the first are kept.
pub(super) fn sort(rows: f64, kept: f64) -> f64 {
    0.3 * rows * kept.max(2.0).log2()
}
