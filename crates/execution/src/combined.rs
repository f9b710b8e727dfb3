//! Scans that combine several trees: the rows whose keys any of their ranges has, or all.
//!
//! What must hold:
//!
//! 1. A tree's intervals share no entry, and a row has one visible entry in an index. So each tree
//!    gives a key at most once, and a key that comes as often as there are trees is in all of them.
//! 2. Entries and rows are read with one snapshot. A key of the table's own tree that was computed
//!    and not read may have no row; its lookup then finds none.

use txn::Direction;
use txn::trees::Tree;

use super::keys::{Bounds, entry_parts, primary_key_of_entry, primary_parts, table_tree, tree};
use super::ranges::{Interval, Keyed, intervals};
use super::scan::fetch;
use super::{Arena, Executor, File, Flow, Sink, from_txn};
use crate::spill::Sorter;
use catalog::Index;
use query::plan::{Scan, TreePart};
use values::error::SqlError;
use values::work;

/// Gives the rows in the order of their keys.
pub(super) fn rows<'s>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    (parts, all): (&'s [TreePart], bool),
    bounds: &mut Bounds,
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let mut sorter = cx.sorter();
    cx.scoped(|cx, own| {
        for part in parts {
            let file = own.file(file);
            gather(cx, scan, part, (bounds, &mut sorter), file, own)?;
        }
        Ok(())
    })?;
    let mut keys = sorter.finish()?;
    let least = if all { parts.len() } else { 1 };
    let (mut key, mut count) = (cx.take_bytes(), 0);
    let result = cx.scoped(|cx, own| {
        loop {
            cx.check()?;
            let next = keys.next()?.map(|(next, _)| next);
            if count > 0 && next.is_some_and(|next| *next == *key) {
                count += 1;
                continue;
            }
            if count >= least {
                let flow = {
                    let file = own.file(file);
                    fetch(cx, scan, &key, file, own, sink)?
                };
                own.bump.reset();
                if flow == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            let Some(next) = next else { return Ok(Flow::More) };
            key.clear();
            work::put(next, &mut key)?;
            count = 1;
        }
    });
    cx.give_bytes(key);
    result
}

/// Adds the keys of the rows in a tree's ranges.
fn gather<'s, 'x>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    part: &'s TreePart,
    (bounds, sorter): (&mut Bounds, &mut Sorter<'s>),
    file: &File<'x>,
    arena: &'x Arena<'s>,
) -> Result<(), SqlError> {
    let table = &scan.table;
    let index = part.index.map(|index| &table.indexes[index]);
    match index {
        None => {
            let keyed = Keyed { table, tree: table_tree(table), parts: primary_parts(table) };
            let intervals = intervals(cx, &keyed, &part.ranges, bounds, file, arena)?;
            gather_keys(cx, (&keyed.tree, None), &intervals, sorter)
        }
        Some(index) => {
            let keyed = Keyed { table, tree: tree(index.tree), parts: entry_parts(table, index) };
            let intervals = intervals(cx, &keyed, &part.ranges, bounds, file, arena)?;
            gather_keys(cx, (&keyed.tree, Some(index)), &intervals, sorter)
        }
    }
}

fn gather_keys(
    cx: &mut Executor<'_>,
    (tree, index): (&Tree, Option<&Index>),
    intervals: &[Interval<'_>],
    sorter: &mut Sorter<'_>,
) -> Result<(), SqlError> {
    for interval in intervals {
        if let (Some(key), None) = (interval.key(), index) {
            cx.check()?;
            sorter.push(key, |_| Ok(()))?;
            continue;
        }
        let mut entries = cx.txn.scan(tree, interval.as_range(), Direction::Forward);
        while let Some((key, payload, _)) = entries.next(cx.txn).map_err(from_txn)? {
            cx.check()?;
            let key = match index {
                Some(index) => primary_key_of_entry(index, key, payload)?,
                None => key,
            };
            sorter.push(key, |_| Ok(()))?;
        }
    }
    Ok(())
}
