//! Scans that gather keys first: of the rows that the ranges of any tree have, or all.
//!
//! Reading rows by their keys takes longer than reading as many in order. So the scan gathers the
//! keys of a part of the table's rows at most. With more it reads the whole table. It does so at
//! once if most of a tree lies in the ranges, by a look at a few leaves.
//!
//! What must hold:
//!
//! 1. A tree's intervals share no entry, and a row has one visible entry in an index. So each tree
//!    gives a key at most once, and a key that comes as often as there are trees is in all of them.
//! 2. Entries and rows are read with one snapshot. A key of the table's own tree that was computed
//!    and not read may have no row; its lookup then finds none.
//! 3. No row is given before all keys are gathered.

use txn::trees::{self, Tree};
use txn::{Direction, Range};

use super::keys::{Bounds, entry_parts, primary_key_of_entry, primary_parts, table_tree, tree};
use super::ranges::{Interval, Keyed, intervals};
use super::scan::{fetch, table_rows};
use super::{Arena, Executor, File, Flow, Sink, from_storage, from_txn};
use crate::spill::Sorter;
use catalog::{Index, Table};
use query::plan::{Scan, TreePart};
use values::error::SqlError;
use values::work;

/// So many keys are gathered of any table.
const FEW: usize = 1000;
/// The part of a table's rows whose keys are gathered at most: one of so many.
const PART: f64 = 4.0;
/// Ranges with such a part of a tree's entries have most of them: the look is rough.
const MOST: f64 = 0.45;

/// The keys gathered so far.
struct Keys<'s> {
    sorter: Sorter<'s>,
    count: usize,
    /// More keys are too many.
    most: usize,
    /// Whether each range's rows are given.
    union: bool,
}

impl<'s> Keys<'s> {
    fn add(&mut self, cx: &Executor<'s>, table: &Table, key: &[u8]) -> Result<Flow, SqlError> {
        if self.count == self.most {
            let size = trees::size(cx.folder(), table_tree(table)).map_err(|error| from_storage(&error))?;
            self.most = (size.entries / PART) as usize;
            if self.count >= self.most {
                return Ok(Flow::Stop);
            }
        }
        self.count += 1;
        self.sorter.push(key, |_| Ok(()))?;
        Ok(Flow::More)
    }
}

/// Gives the rows in the order of their keys.
pub(super) fn rows<'s>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    (parts, all): (&'s [TreePart], bool),
    bounds: &mut Bounds,
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let mut keys = Keys { sorter: cx.sorter(), count: 0, most: FEW, union: !all };
    let gathered = cx.scoped(|cx, own| {
        for part in parts {
            let file = own.file(file);
            if gather(cx, scan, part, (bounds, &mut keys), file, own)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    })?;
    if gathered == Flow::Stop {
        drop(keys);
        return table_rows(cx, scan, (std::iter::once(Range::ALL), false), file, sink);
    }
    let least = if all { parts.len() } else { 1 };
    by_keys(cx, scan, (keys.sorter, least), file, sink)
}

/// Gives the rows whose keys come so many times at least.
fn by_keys<'s>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    (sorter, least): (Sorter<'s>, usize),
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let mut keys = sorter.finish()?;
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

/// Adds the keys of the rows in a tree's ranges. Stops if they are too many.
fn gather<'s, 'x>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    part: &'s TreePart,
    (bounds, keys): (&mut Bounds, &mut Keys<'s>),
    file: &File<'x>,
    arena: &'x Arena<'s>,
) -> Result<Flow, SqlError> {
    let table = &scan.table;
    match part.index.map(|index| &table.indexes[index]) {
        None => {
            let keyed = Keyed { table, tree: table_tree(table), parts: primary_parts(table) };
            let intervals = intervals(cx, &keyed, &part.ranges, bounds, file, arena)?;
            gather_keys(cx, (table, &keyed.tree, None), &intervals, keys)
        }
        Some(index) => {
            let keyed = Keyed { table, tree: tree(index.tree), parts: entry_parts(table, index) };
            let intervals = intervals(cx, &keyed, &part.ranges, bounds, file, arena)?;
            gather_keys(cx, (table, &keyed.tree, Some(index)), &intervals, keys)
        }
    }
}

fn gather_keys<'s>(
    cx: &mut Executor<'s>,
    (table, tree, index): (&Table, &Tree, Option<&Index>),
    intervals: &[Interval<'_>],
    keys: &mut Keys<'s>,
) -> Result<Flow, SqlError> {
    let mut entries = cx.txn.scan(tree, Range::ALL, Direction::Forward);
    for interval in intervals {
        if let (Some(key), None) = (interval.key(), index) {
            cx.check()?;
            if keys.add(cx, table, key)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            continue;
        }
        entries.go_on(interval.as_range());
        while let Some((key, payload, _)) = entries.next(cx.txn).map_err(from_txn)? {
            cx.check()?;
            let key = match index {
                Some(index) => primary_key_of_entry(index, key, payload)?,
                None => key,
            };
            let are_most = || have_most(cx, *tree, intervals);
            if keys.add(cx, table, key)? == Flow::Stop || keys.union && keys.count == FEW && are_most()? {
                return Ok(Flow::Stop);
            }
        }
    }
    Ok(Flow::More)
}

/// Whether intervals have most of a tree's entries, by a look at a few leaves.
fn have_most(cx: &Executor<'_>, tree: Tree, intervals: &[Interval<'_>]) -> Result<bool, SqlError> {
    let is_within = |leaf: &trees::Drawn| intervals.iter().any(|interval| interval.has_all(leaf));
    let part = trees::part_within(cx.folder(), tree, is_within);
    Ok(part.map_err(|error| from_storage(&error))? >= MOST)
}
