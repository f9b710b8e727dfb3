//! Values out of line: each pointer of a row has exactly its chunks, and every chunk belongs to a
//! row.
//!
//! The check looks chunks up one by one, so that it can name a missing one. It also sums both
//! sides, as for indexes, which shows a chunk of no row or of two rows.

use txn::{Direction, TxnSession};

use super::{ALL, EntrySum};
use crate::SqlError;
use catalog::{Table, TreeAddress};
use execution::keys::{table_tree, tree};
use execution::{from_txn, out_of_line};
use values::row::{self, RowView};
use values::types::{Datum, OutOfLinePointer};

/// The result of checking a table's out-of-line values.
#[derive(Default)]
pub(super) struct Values {
    /// Chunks found.
    pub chunks: u64,
    /// One line for each fault.
    pub faults: Vec<String>,
}

/// Checks a table's out-of-line values, as a snapshot of now sees them.
pub(super) fn check(txn: &TxnSession, table: &Table) -> Result<Values, SqlError> {
    let mut values = Values::default();
    let mut called = EntrySum::default();
    let mut scan = txn.scan(&table_tree(table), ALL, Direction::Forward);
    while let Some((_, bytes, _)) = scan.next(txn).map_err(from_txn)? {
        runtime::fiber::safe_point();
        if !row::has_out_of_line(bytes) {
            continue;
        }
        let view = RowView::new(bytes, table.shape());
        for column in 0..view.columns() {
            if let Datum::OutOfLine(pointer) = view.get(column)? {
                let name = &table.columns[column].name;
                pointer_holds(txn, table, (name, pointer), &mut called, &mut values.faults)?;
            }
        }
    }
    if table.out_of_line == TreeAddress::NONE {
        return Ok(values);
    }
    let mut found = EntrySum::default();
    let mut scan = txn.scan(&tree(table.out_of_line), ALL, Direction::Forward);
    while let Some((key, chunk, _)) = scan.next(txn).map_err(from_txn)? {
        found.add(key, &chunk.len().to_le_bytes());
        runtime::fiber::safe_point();
    }
    values.chunks = found.count;
    if found != called {
        let differ = if found.count == called.count { ", and they differ" } else { "" };
        values
            .faults
            .push(format!("{} chunks of values, its rows call for {}{differ}", found.count, called.count));
    }
    Ok(values)
}

/// Whether a pointer's chunks are there, with their lengths; names the first that is not.
fn pointer_holds(
    txn: &TxnSession,
    table: &Table,
    (column, pointer): (&str, OutOfLinePointer),
    called: &mut EntrySum,
    faults: &mut Vec<String>,
) -> Result<(), SqlError> {
    let (mut left, mut payload) = (pointer.length as usize, Vec::new());
    let mut whole = true;
    for chunk in 0..out_of_line::chunks(pointer.length) {
        let length = left.min(out_of_line::CHUNK);
        left -= length;
        let key = out_of_line::chunk_key(pointer.number, chunk);
        called.add(&key, &length.to_le_bytes());
        let found = txn.get(&tree(table.out_of_line), &key, &mut payload).map_err(from_txn)?;
        let what = match found {
            Some(_) if payload.len() == length => continue,
            Some(_) => "has another length",
            None => "is missing",
        };
        if std::mem::replace(&mut whole, false) {
            faults.push(format!("column {column}, value {}: chunk {chunk} {what}", pointer.number));
        }
        runtime::fiber::safe_point();
    }
    Ok(())
}
