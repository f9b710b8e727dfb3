//! Referential checks and actions that changes of rows queue for the end of their statement.
//!
//! What must hold: a change of a row only queues. [`super::foreign`] does the queued work at the
//! statement's end.

use std::sync::Arc;

use super::Executor;
use super::memory::encode_key;
use catalog::{ForeignKey, Table};
use values::error::SqlError;
use values::types::{Datum, Value};
use values::work::tick_key;

/// A check or action due at the statement's end.
pub(super) enum Pending {
    /// The child row with these values of the key's columns needs its parent.
    Parent { child: Arc<Table>, key: usize, values: Vec<Value> },
    /// The parent's row with these values is gone, or has other ones now.
    Children { child: Arc<Table>, key: usize, old: Vec<Value>, new: Option<Vec<Value>> },
}

/// A row is new.
#[inline]
pub(super) fn row_inserted(cx: &mut Executor<'_>, table: &Table, row: &[Datum<'_>]) -> Result<(), SqlError> {
    if table.foreign_keys.is_empty() {
        return Ok(());
    }
    let child = known(cx, table)?;
    for (at, key) in table.foreign_keys.iter().enumerate() {
        tick_key(table.foreign_keys.len())?;
        need_parent(cx, &child, at, key, row)?;
    }
    Ok(())
}

/// A row has a new version.
#[inline]
pub(super) fn row_changed(
    cx: &mut Executor<'_>,
    table: &Table,
    old: &[Datum<'_>],
    new: &[Datum<'_>],
) -> Result<(), SqlError> {
    parent_gone(cx, table, old, Some(new))?;
    for (at, key) in table.foreign_keys.iter().enumerate() {
        tick_key(table.foreign_keys.len())?;
        if !same(key.columns.iter(), old, new)? {
            let child = known(cx, table)?;
            need_parent(cx, &child, at, key, new)?;
        }
    }
    Ok(())
}

/// A row is gone.
#[inline]
pub(super) fn row_deleted(cx: &mut Executor<'_>, table: &Table, old: &[Datum<'_>]) -> Result<(), SqlError> {
    parent_gone(cx, table, old, None)
}

fn known(cx: &Executor<'_>, table: &Table) -> Result<Arc<Table>, SqlError> {
    cx.catalog.table(table.oid).cloned().ok_or_else(|| SqlError::internal("a table without definition"))
}

fn need_parent(
    cx: &mut Executor<'_>,
    child: &Arc<Table>,
    at: usize,
    key: &ForeignKey,
    row: &[Datum<'_>],
) -> Result<(), SqlError> {
    let values = key.columns.iter().map(|column| row[*column as usize]);
    // MATCH SIMPLE: any NULL satisfies the constraint.
    if values.clone().any(|value| value.is_null()) {
        return Ok(());
    }
    let values = values.map(|value| value.to_value()).collect::<Result<_, _>>()?;
    cx.pending.push(Pending::Parent { child: Arc::clone(child), key: at, values });
    Ok(())
}

fn parent_gone(
    cx: &mut Executor<'_>,
    table: &Table,
    old: &[Datum<'_>],
    new: Option<&[Datum<'_>]>,
) -> Result<(), SqlError> {
    let catalog = cx.catalog;
    for reference in catalog.references(table.oid) {
        let Some(child) = catalog.table(reference.child) else { continue };
        let key = &child.foreign_keys[reference.key];
        if let Some(new) = new
            && same(key.parent_columns.iter(), old, new)?
        {
            continue;
        }
        let values = |row: &[Datum<'_>]| -> Result<Vec<Value>, SqlError> {
            key.parent_columns.iter().map(|column| row[*column as usize].to_value()).collect()
        };
        let old = values(old)?;
        if old.iter().any(|value| matches!(value, Value::Null)) {
            continue;
        }
        let new = new.map(values).transpose()?;
        cx.pending.push(Pending::Children { child: Arc::clone(child), key: reference.key, old, new });
    }
    Ok(())
}

/// Whether these columns are the same in both rows.
pub(super) fn same<'c>(
    columns: impl Iterator<Item = &'c u32>,
    old: &[Datum<'_>],
    new: &[Datum<'_>],
) -> Result<bool, SqlError> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for column in columns {
        encode_key(old[*column as usize], &mut a)?;
        encode_key(new[*column as usize], &mut b)?;
    }
    Ok(a == b)
}
