//! Scans: point lookups, ranges of a table's tree, secondary indexes, system relations.

use std::iter::once;

use txn::{Direction, Range, Stamp};

use super::keys::{Bounds, damaged_entry, primary_key_of_entry, table_tree, tree};
use super::ranges::{Interval, Keyed, intervals};
use super::{Arena, Executor, File, Flow, Sink, from_txn, out_of_line};
use catalog::Index;
use expressions::expr::Expr;
use query::plan::{ColumnRead, KeyRange, Reg, RowIdentity, Scan};
use values::error::SqlError;
use values::key;
use values::row;
use values::types::Datum;

/// Fills the registers that identify a row.
pub(super) fn identify<'x>(
    identity: RowIdentity,
    key: &'x [u8],
    stamp: Stamp,
    row: &'x [u8],
    file: &mut File<'x>,
    arena: &'x Arena<'_>,
) {
    file[identity.key as usize] = Datum::Bytea(key);
    file[identity.stamp as usize] = Datum::Bytea(arena.bump.alloc(stamp.encode()));
    file[identity.row as usize] = Datum::Bytea(row);
}

/// Gives one row of a scan to the sink. The row's bytes live as long as the file's scope.
#[inline]
fn give<'s, 'x>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    (key, row, stamp): (&'x [u8], &'x [u8], Stamp),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    out_of_line::decode(&scan.table, &scan.columns, row, file)?;
    if row::has_out_of_line(row) {
        return give_out_of_line(cx, scan, (key, row, stamp), file, arena, sink);
    }
    if let Some(filter) = &scan.filter
        && !cx.test(filter, file, arena)?
    {
        return Ok(Flow::More);
    }
    if let Some(identity) = scan.identity {
        identify(identity, key, stamp, row, file, arena);
    }
    sink(cx, file, arena)
}

/// The rest of [`give`] for a row with values out of line. It fetches the values that the filter
/// reads, tests the filter, and then fetches the others.
#[cold]
fn give_out_of_line<'s, 'x>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    (key, row, stamp): (&'x [u8], &'x [u8], Stamp),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    if let Some(filter) = &scan.filter {
        let wanted = |register| out_of_line::reads(filter, register);
        out_of_line::fetch_registers(cx, &scan.table, &scan.columns, wanted, file, arena)?;
        if !cx.test(filter, file, arena)? {
            return Ok(Flow::More);
        }
    }
    out_of_line::fetch_registers(cx, &scan.table, &scan.columns, |_| true, file, arena)?;
    if let Some(identity) = scan.identity {
        identify(identity, key, stamp, row, file, arena);
    }
    sink(cx, file, arena)
}

/// Gives at most one row, by primary key. The row goes to the caller's arena, so it needs no scope
/// of its own.
pub(super) fn point<'s, 'x>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    key: &'s [Expr],
    bounds: &mut Bounds,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    if !bounds.exact(cx, super::keys::primary_parts(&scan.table), key, file, arena)? {
        return Ok(Flow::More);
    }
    fetch(cx, scan, bounds.low(), file, arena, sink)
}

/// The row of a primary key, if it is visible.
pub(super) fn fetch<'s, 'x>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    key: &[u8],
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let mut buffer = cx.take_bytes();
    let found = cx.txn.get(&table_tree(&scan.table), key, &mut buffer).map_err(from_txn)?;
    let row: &'x [u8] = if found.is_some() { arena.bump.alloc_slice_copy(&buffer) } else { &[] };
    cx.give_bytes(buffer);
    let Some(stamp) = found else { return Ok(Flow::More) };
    let key: &'x [u8] = if scan.identity.is_some() { arena.bump.alloc_slice_copy(key) } else { &[] };
    give(cx, scan, (key, row, stamp), file, arena, sink)
}

/// Gives at most one row, by a unique index.
pub(super) fn unique_point<'s, 'x>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    (index, key): (&'s Index, &'s [Expr]),
    bounds: &mut Bounds,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    if !bounds.exact(cx, super::keys::index_parts(index), key, file, arena)? {
        return Ok(Flow::More);
    }
    let mut primary = cx.take_bytes();
    let found = cx.txn.get(&tree(index.tree), bounds.low(), &mut primary).map_err(from_txn)?;
    let result = match found {
        Some(_) => fetch(cx, scan, &primary, file, arena, sink),
        None => Ok(Flow::More),
    };
    cx.give_bytes(primary);
    result
}

/// Gives the rows in ranges of the table's own tree.
pub(super) fn table_ranges<'s, 'x>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    (ranges, backward): (&'s [KeyRange], bool),
    bounds: &mut Bounds,
    file: &File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let parts = super::keys::primary_parts(&scan.table);
    if let [range] = ranges
        && range.is_contiguous()
    {
        return match bounds.range(cx, parts, range, file, arena)? {
            true => table_rows(cx, scan, (once(bounds.as_range()), backward), file, sink),
            false => Ok(Flow::More),
        };
    }
    let keyed = Keyed { table: &scan.table, tree: table_tree(&scan.table), parts };
    let intervals = intervals(cx, &keyed, ranges, bounds, file, arena)?;
    if intervals.iter().all(|interval| interval.key().is_none()) {
        let ranges = in_turn(&intervals, backward).map(Interval::as_range);
        return table_rows(cx, scan, (ranges, backward), file, sink);
    }
    for interval in in_turn(&intervals, backward) {
        let flow = match interval.key() {
            Some(key) => {
                cx.check()?;
                cx.scoped(|cx, own| {
                    let file = own.file(file);
                    fetch(cx, scan, key, file, own, sink)
                })
            }
            None => table_rows(cx, scan, (once(interval.as_range()), backward), file, sink),
        };
        if flow? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::More)
}

/// Gives the row of each entry in ranges of a secondary index.
pub(super) fn index_ranges<'s, 'x>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    (index, ranges, backward): (&'s Index, &'s [KeyRange], bool),
    bounds: &mut Bounds,
    file: &File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let parts = super::keys::entry_parts(&scan.table, index);
    if let [range] = ranges
        && range.is_contiguous()
    {
        return match bounds.range(cx, parts, range, file, arena)? {
            true => index_rows(cx, scan, index, (once(bounds.as_range()), backward), file, sink),
            false => Ok(Flow::More),
        };
    }
    let keyed = Keyed { table: &scan.table, tree: tree(index.tree), parts };
    let intervals = intervals(cx, &keyed, ranges, bounds, file, arena)?;
    let ranges = in_turn(&intervals, backward).map(Interval::as_range);
    index_rows(cx, scan, index, (ranges, backward), file, sink)
}

/// The intervals in the order of the scan.
fn in_turn<'i, 'x>(
    intervals: &'i [Interval<'x>],
    backward: bool,
) -> impl Iterator<Item = &'i Interval<'x>> + 'i {
    (0..intervals.len()).map(move |at| &intervals[if backward { intervals.len() - 1 - at } else { at }])
}

/// Gives the rows with keys in these ranges, which come in the order of the scan.
pub(super) fn table_rows<'s, 'r>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    (mut ranges, backward): (impl Iterator<Item = Range<'r>>, bool),
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let Some(first) = ranges.next() else { return Ok(Flow::More) };
    let mut rows = cx.txn.scan(&table_tree(&scan.table), first, direction(backward));
    cx.scoped(|cx, own| {
        loop {
            let Some((key, row, stamp)) = rows.next(cx.txn).map_err(from_txn)? else {
                let Some(range) = ranges.next() else { return Ok(Flow::More) };
                cx.check()?;
                rows.go_on(range);
                continue;
            };
            cx.check()?;
            let flow = {
                let file = own.file(file);
                give(cx, scan, (key, row, stamp), file, own, sink)?
            };
            own.bump.reset();
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
    })
}

/// Gives the rows of the index entries with keys in these ranges, which come in the order of the
/// scan.
fn index_rows<'s, 'r>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    index: &'s Index,
    (mut ranges, backward): (impl Iterator<Item = Range<'r>>, bool),
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let Some(first) = ranges.next() else { return Ok(Flow::More) };
    let mut entries = cx.txn.scan(&tree(index.tree), first, direction(backward));
    cx.scoped(|cx, own| {
        loop {
            let Some((key, payload, _)) = entries.next(cx.txn).map_err(from_txn)? else {
                let Some(range) = ranges.next() else { return Ok(Flow::More) };
                cx.check()?;
                entries.go_on(range);
                continue;
            };
            cx.check()?;
            let flow = {
                let file = own.file(file);
                match &scan.entry {
                    Some(registers) => {
                        entry(cx, scan, (index, registers), (key, payload), (file, own), sink)?
                    }
                    None => {
                        let primary = primary_key_of_entry(index, key, payload)?;
                        fetch(cx, scan, primary, file, own, sink)?
                    }
                }
            };
            own.bump.reset();
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
    })
}

/// Gives the row of an entry that has all columns of the scan in these registers.
fn entry<'s, 'x>(
    cx: &mut Executor<'s>,
    scan: &'s Scan,
    (index, registers): (&'s Index, &[Option<Reg>]),
    (key, payload): (&[u8], &[u8]),
    (file, arena): (&mut File<'x>, &'x Arena<'s>),
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let parts = super::keys::index_parts(index).chain(super::keys::primary_parts(&scan.table));
    let mut rest = key;
    for ((at, part), register) in parts.enumerate().zip(registers) {
        if index.unique && at == index.columns.len() {
            rest = payload;
        }
        let type_ = scan.table.columns[part.column as usize].type_;
        let column = key::length(rest, type_, part.order).and_then(|length| rest.split_at_checked(length));
        let Some((column, others)) = column else { return Err(damaged_entry(index)) };
        if let Some(register) = register {
            let value = key::decode(column, type_, part.order, &arena.bump);
            file[*register as usize] = value.ok_or_else(|| damaged_entry(index))?;
        }
        rest = others;
    }
    if let Some(filter) = &scan.filter
        && !cx.test(filter, file, arena)?
    {
        return Ok(Flow::More);
    }
    sink(cx, file, arena)
}

fn direction(backward: bool) -> Direction {
    if backward { Direction::Backward } else { Direction::Forward }
}

/// Gives the rows of a system relation.
pub(super) fn virtual_scan<'s>(
    cx: &mut Executor<'s>,
    (relation, columns, filter): (u32, &'s [ColumnRead], Option<&'s Expr>),
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let rows = catalog::pg_catalog::rows(cx.catalog, cx.session, relation)?;
    cx.scoped(|cx, own| {
        for row in &rows {
            cx.check()?;
            let flow = {
                let file = own.file(file);
                for read in columns {
                    file[read.register as usize] = row[read.column as usize].datum_in(&own.bump);
                }
                match filter {
                    Some(filter) if !cx.test(filter, file, own)? => Flow::More,
                    _ => sink(cx, file, own)?,
                }
            };
            own.bump.reset();
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    })
}
