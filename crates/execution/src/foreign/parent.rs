//! The parent of a child row: it must exist, and a KEY SHARE lock keeps it there.

use bumpalo::Bump;

use txn::trees::Tree;
use txn::{LockOutcome, RowLock, TableLock, TxnSession, Wait};

use super::{as_type, same_set};
use crate::constraint::{in_table, shown_key};
use crate::keys::{encode_part, index_parts, primary_parts, table_tree, tree};
use crate::{Executor, from_txn, out_of_line};
use catalog::{ForeignKey, Index, Table};
use values::error::{SqlError, SqlState};
use values::row::RowView;
use values::types::{Datum, Value};

/// Locks the row with a parent's key. The index is the unique index of that key, or none for the
/// primary key.
type Hold = fn(&TxnSession, &Table, Option<&Index>, &[u8]) -> Result<LockOutcome, SqlError>;

/// Locks the parent of a new child: the row that has the key now, or in repeatable read had it at
/// the snapshot. The lock goes to that row's newest version.
///
/// A row that was deleted or got another key meanwhile counts as gone, even if another row has the
/// key now. In repeatable read it is a serialization error.
///
/// The lock holds off changes of all unique keys of the row, so the index's entry needs no lock.
pub(super) fn hold_parent(
    txn: &TxnSession,
    parent: &Table,
    index: Option<&Index>,
    key: &[u8],
) -> Result<LockOutcome, SqlError> {
    let (rows, mut primary, mut row) = (table_tree(parent), Vec::new(), Vec::new());
    let mut look = || match index {
        None => txn.get(&rows, key, &mut row),
        Some(index) => match txn.get(&tree(index.tree), key, &mut primary)? {
            Some(_) => txn.get(&rows, &primary, &mut row),
            None => Ok(None),
        },
    };
    let seen = if txn.keeps_snapshot() { look() } else { txn.with_newest(look) };
    let Some(seen) = seen.map_err(from_txn)? else { return Ok(LockOutcome::Gone) };
    let at = if index.is_some() { &primary[..] } else { key };
    let (wanted, mut moved_to) = ((RowLock::KeyShare, Wait::Block), Vec::new());
    let outcome = txn.lock_version(&rows, (at, seen), wanted, &mut row, &mut moved_to).map_err(from_txn)?;
    let still = matches!(outcome, LockOutcome::Locked(_))
        && match index {
            None => moved_to.is_empty() || moved_to == key,
            Some(index) => has_key(txn, parent, index, &row, key)?,
        };
    match still {
        true => Ok(outcome),
        false if txn.keeps_snapshot() => Err(from_txn(txn::Error::Serialization)),
        false => Ok(LockOutcome::Gone),
    }
}

/// Whether a row has this key in a unique index. The key holds no NULL.
fn has_key(txn: &TxnSession, table: &Table, index: &Index, row: &[u8], key: &[u8]) -> Result<bool, SqlError> {
    let (view, bump, mut now) = (RowView::new(row, table.shape()), Bump::new(), Vec::new());
    for part in index_parts(index) {
        let column = part.column as usize;
        encode_part(part, out_of_line::fetch(txn, table, (column, view.get(column)?), &bump)?, &mut now)?;
    }
    Ok(now == key)
}

/// Locks the row that has a parent's key now.
pub(super) fn hold_replacement(
    txn: &TxnSession,
    parent: &Table,
    index: Option<&Index>,
    key: &[u8],
) -> Result<LockOutcome, SqlError> {
    let (rows, mut primary, mut row) = (table_tree(parent), Vec::new(), Vec::new());
    let lock = |tree: &Tree, key: &[u8], row: &mut Vec<u8>| {
        txn.lock_row(tree, key, RowLock::KeyShare, Wait::Block, row).map_err(from_txn)
    };
    let Some(index) = index else { return lock(&rows, key, &mut row) };
    match lock(&tree(index.tree), key, &mut primary)? {
        LockOutcome::Locked(_) => lock(&rows, &primary, &mut row),
        outcome => Ok(outcome),
    }
}

/// Locks the parent of a child row, or fails.
pub(super) fn require_parent(
    cx: &mut Executor<'_>,
    child: &Table,
    key: &ForeignKey,
    values: &[Value],
    hold: Hold,
) -> Result<(), SqlError> {
    let catalog = cx.catalog;
    let Some(parent) = catalog.table(key.parent) else {
        return Err(SqlError::internal("a foreign key to no table"));
    };
    debug_assert!(cx.txn.holds_table(parent.oid, TableLock::RowShare), "the binder locks what keys lead to");
    let value_of = |column: u32| key.parent_columns.iter().position(|c| *c == column).map(|at| &values[at]);
    let primary =
        parent.primary_key.as_ref().filter(|primary| same_set(&primary.columns, &key.parent_columns));
    let index = parent.indexes.iter().filter(|_| primary.is_none()).find(|index| {
        let columns: Vec<u32> = index.columns.iter().map(|key| key.column).collect();
        index.unique && same_set(&columns, &key.parent_columns)
    });
    let parts: Vec<_> = match index {
        None if primary.is_none() => return Err(SqlError::internal("a foreign key to no unique key")),
        None => primary_parts(parent).collect(),
        Some(index) => index_parts(index).collect(),
    };
    let mut bytes = Vec::new();
    for part in parts {
        if let Some(value) = value_of(part.column) {
            encode_part(part, as_type(value, parent.columns[part.column as usize].type_)?, &mut bytes)?;
        }
    }
    if matches!(hold(cx.txn, parent, index, &bytes)?, LockOutcome::Locked(_)) {
        return Ok(());
    }
    let mut shown = vec![Datum::Null; child.columns.len()];
    for (column, value) in key.columns.iter().zip(values) {
        shown[*column as usize] = value.datum();
    }
    let message = format!(
        "insert or update on table \"{}\" violates foreign key constraint \"{}\"",
        child.name, key.name
    );
    let shown = shown_key(cx, child, (key.columns.iter().copied(), false), &shown)?;
    Err(in_table(cx, child, SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message))
        .with_detail(format!("{shown} is not present in table \"{}\".", parent.name))
        .with_constraint(&key.name))
}
