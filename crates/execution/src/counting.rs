//! count(*) over a scan of one range without conditions on its rows.
//!
//! No row is read: the entries of the range are counted, leaf by leaf. What must hold: the count is
//! the number of rows that the scan would give.

use txn::Direction;
use txn::trees::Tree;

use super::keys::{Bounds, Part, entry_parts, primary_parts, table_tree, tree};
use super::{Arena, Executor, File, from_txn};
use expressions::function::AggregateKind;
use query::plan::{AccessPath, AggregateCall, KeyRange, Operator, Plan};
use values::error::SqlError;

/// Whether a call counts the rows alone.
pub(super) fn counts_rows(call: &AggregateCall) -> bool {
    call.function.kind == AggregateKind::CountRows && !call.distinct && call.filter.is_none()
}

/// The number of rows of such a scan. None if the plan is another one, or if EXPLAIN measures it.
pub(super) fn rows<'s, 'x>(
    cx: &mut Executor<'s>,
    plan: &'s Plan,
    file: &File<'x>,
    arena: &'x Arena<'s>,
) -> Result<Option<u64>, SqlError> {
    let Operator::Scan(scan) = &plan.operator else { return Ok(None) };
    if cx.measures.is_some() || scan.filter.is_some() || scan.identity.is_some() || !scan.columns.is_empty() {
        return Ok(None);
    }
    let table = &scan.table;
    match &scan.path {
        AccessPath::Table { ranges, .. } => {
            in_range(cx, (table_tree(table), primary_parts(table)), ranges, file, arena)
        }
        AccessPath::Index { index, ranges, .. } if scan.entry.is_some() => {
            let index = &table.indexes[*index];
            in_range(cx, (tree(index.tree), entry_parts(table, index)), ranges, file, arena)
        }
        _ => Ok(None),
    }
}

/// The number of entries in the only range. None if there are several.
fn in_range<'s, 'x>(
    cx: &mut Executor<'s>,
    (tree, parts): (Tree, impl Iterator<Item = Part>),
    ranges: &'s [KeyRange],
    file: &File<'x>,
    arena: &'x Arena<'s>,
) -> Result<Option<u64>, SqlError> {
    let [range] = ranges else { return Ok(None) };
    if !range.is_contiguous() {
        return Ok(None);
    }
    let mut bounds = Bounds::from_buffers(cx.take_bytes(), cx.take_bytes());
    let mut count = 0;
    if bounds.range(cx, parts, range, file, arena)? {
        let mut entries = cx.txn.scan(&tree, bounds.as_range(), Direction::Forward);
        while let Some(more) = entries.count_leaf(cx.txn).map_err(from_txn)? {
            count += more;
            cx.check()?;
        }
    }
    let (low, high) = bounds.into_buffers();
    cx.give_bytes(low);
    cx.give_bytes(high);
    Ok(Some(count))
}
