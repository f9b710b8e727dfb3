//! UPDATE and DELETE.
//!
//! The statement changes the version that the scan read. In read committed, another transaction may
//! have committed a newer version meanwhile. Then [`second_look`] locks it and evaluates everything
//! again, and the statement changes that version if it still qualifies.
//!
//! What must hold: a change of a row changes its index entries and queues its referential checks in
//! the same call. Only the entries of a DELETE's rows may wait for its end ([`Removals`]).

use txn::{InsertOutcome, Outcome, RowLock, Stamp};

use super::constraint::{check_row, check_row_of_pointers, unique_violation};
use super::keys::{index_entry, index_parts, primary_parts, row_key, table_tree, tree};
use super::removals::{self, Removals};
use super::second_look::{self, identified};
use super::{Arena, Executor, File, Flow, Sink, from_txn, out_of_line, pending, run};
use catalog::{Index, Table};
use query::plan::{Delete, Update};
use values::error::SqlError;
use values::row::{self, RowView};
use values::types::Datum;
use values::work::{tick_key, tick_parts};

/// UPDATE.
pub(super) fn update<'s, 'x>(
    cx: &mut Executor<'s>,
    update: &'s Update,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    run(cx, &update.input, file, arena, &mut |cx, file, arena| {
        if update_row(cx, update, file, arena)? {
            cx.affected += 1;
            return sink(cx, file, arena);
        }
        Ok(Flow::More)
    })
}

/// Changes one row. Returns false if the row is gone, no longer qualifies, or was changed by this
/// command already.
fn update_row<'s, 'x>(
    cx: &mut Executor<'s>,
    update: &'s Update,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
) -> Result<bool, SqlError> {
    let table = &*update.target.table;
    let columns = table.columns.len();
    let first = update.new_row as usize;
    loop {
        let Some((key, stamp, bytes)) = identified(&update.target, file)? else { return Ok(false) };
        // The assignments read the old row's registers, so they run before the new row fills its
        // own.
        let values = arena.bump.alloc_slice_fill_copy(update.assignments.len(), Datum::Null);
        tick_parts(update.assignments.len())?;
        for (value, assignment) in values.iter_mut().zip(&update.assignments) {
            *value = cx.eval(&assignment.value, file, arena)?;
        }
        let old = old_row(table, bytes, arena)?;
        file[first..first + columns].copy_from_slice(old);
        for (value, assignment) in values.iter().zip(&update.assignments) {
            file[first + assignment.column as usize] = *value;
        }
        let checked = (update.new_row, &update.checks[..]);
        match row::has_out_of_line(bytes) {
            false => check_row(cx, table, checked, file, arena)?,
            true => check_row_of_pointers(cx, table, checked, file, arena)?,
        }
        match change_row(cx, table, (key, stamp, old), &file[first..first + columns])? {
            Outcome::Done => {
                out_of_line::fetch_returned(cx, table, (update.new_row, &update.returned), file, arena)?;
                return Ok(true);
            }
            Outcome::SelfChanged => return Ok(false),
            // A row that is gone may live on under another key.
            Outcome::Changed | Outcome::Gone => {
                let looked = (&update.target, update.second_look.as_deref());
                if !second_look::look(cx, looked, (key, stamp, RowLock::NoKeyUpdate), file, arena)? {
                    return Ok(false);
                }
            }
        }
    }
}

/// All columns of a stored row. Those out of line are pointers.
pub(super) fn old_row<'x>(
    table: &'x Table,
    bytes: &'x [u8],
    arena: &'x Arena<'_>,
) -> Result<&'x [Datum<'x>], SqlError> {
    let view = RowView::new(bytes, table.shape());
    let row = arena.bump.alloc_slice_fill_copy(table.columns.len(), Datum::Null);
    for (column, value) in row.iter_mut().enumerate() {
        *value = view.get(column)?;
    }
    Ok(row)
}

/// Replaces a row by its new version, in the table and its indexes, and notes the referential
/// checks due. Columns that stay as they are may be pointers.
pub(super) fn change_row(
    cx: &mut Executor<'_>,
    table: &Table,
    (key, stamp, old): (&[u8], Stamp, &[Datum<'_>]),
    new: &[Datum<'_>],
) -> Result<Outcome, SqlError> {
    if !old.iter().any(Datum::is_out_of_line) {
        return replace_row(cx, table, (key, stamp), new, (old, new));
    }
    let arena = cx.take_arena();
    let old_keys = out_of_line::fetched(cx.txn, table, old, |column| table.is_keyed(column), &arena.bump)?;
    let new_keys = out_of_line::fetched(cx.txn, table, new, |column| table.is_keyed(column), &arena.bump)?;
    let outcome = replace_row(cx, table, (key, stamp), new, (old_keys, new_keys))?;
    if outcome == Outcome::Done {
        out_of_line::retire_replaced(cx, table, old, new)?;
    }
    cx.give_arena(arena);
    Ok(outcome)
}

/// [`change_row`] without retiring the values out of line that the new version drops. `old_keys`
/// and `new_keys` are the two versions with the values of their keys fetched.
fn replace_row(
    cx: &mut Executor<'_>,
    table: &Table,
    (key, stamp): (&[u8], Stamp),
    new: &[Datum<'_>],
    (old_keys, new_keys): (&[Datum<'_>], &[Datum<'_>]),
) -> Result<Outcome, SqlError> {
    let (mut bytes, mut new_key) = (cx.take_bytes(), cx.take_bytes());
    match table.primary_key {
        Some(_) => row_key(table, new_keys, &mut new_key)?,
        None => new_key.extend_from_slice(key),
    }
    let written = out_of_line::encode(cx, table, new, &new_key, &mut bytes)?;
    let moved = new_key != key;
    let tree = table_tree(table);
    let outcome = match moved {
        false if !table.indexes.is_empty() && unique_keys_change(table, old_keys, new_keys)? => {
            cx.txn.update_keys(&tree, key, stamp, &bytes)
        }
        false => cx.txn.update(&tree, key, stamp, &bytes),
        true => cx.txn.delete_moved(&tree, key, stamp, &new_key),
    };
    let outcome = outcome.map_err(from_txn)?;
    if outcome == Outcome::Done {
        if moved && cx.txn.insert(&tree, &new_key, &bytes).map_err(from_txn)? == InsertOutcome::Duplicate {
            let name = table.primary_key.as_ref().map_or("", |key| &key.name);
            return Err(unique_violation(cx, table, name, primary_parts(table), new_keys));
        }
        for index in &table.indexes {
            tick_key(table.indexes.len())?;
            change_entry(cx, (table, index), (old_keys, key), (new_keys, &new_key))?;
        }
        pending::row_changed(cx, table, old_keys, new_keys)?;
    } else {
        // Another transaction was faster, so no row has the values that were written for this
        // version.
        for pointer in written {
            out_of_line::retire(cx, table, pointer)?;
        }
    }
    cx.give_bytes(bytes);
    cx.give_bytes(new_key);
    Ok(outcome)
}

/// Whether the values of a unique index, which a foreign key could reference, differ in two
/// versions of a row.
fn unique_keys_change(table: &Table, old: &[Datum<'_>], new: &[Datum<'_>]) -> Result<bool, SqlError> {
    for index in table.indexes.iter().filter(|index| index.unique) {
        if !pending::same(index.columns.iter().map(|key| &key.column), old, new)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Moves a row's entry in a secondary index if it has changed.
fn change_entry(
    cx: &mut Executor<'_>,
    (table, index): (&Table, &Index),
    (old, old_primary): (&[Datum<'_>], &[u8]),
    (new, new_primary): (&[Datum<'_>], &[u8]),
) -> Result<(), SqlError> {
    let (mut old_key, mut old_payload) = (cx.take_bytes(), cx.take_bytes());
    let (mut new_key, mut new_payload) = (cx.take_bytes(), cx.take_bytes());
    index_entry(index, old, old_primary, &mut old_key, &mut old_payload)?;
    index_entry(index, new, new_primary, &mut new_key, &mut new_payload)?;
    if old_key != new_key || old_payload != new_payload {
        removals::remove(cx, index, &old_key)?;
        insert_entry(cx, (table, index), new, &new_key, &new_payload)?;
    }
    for buffer in [old_key, old_payload, new_key, new_payload] {
        cx.give_bytes(buffer);
    }
    Ok(())
}

/// Adds an entry to a secondary index.
pub(super) fn insert_entry(
    cx: &mut Executor<'_>,
    (table, index): (&Table, &Index),
    row: &[Datum<'_>],
    key: &[u8],
    payload: &[u8],
) -> Result<(), SqlError> {
    if key.len() > txn::trees::MAX_KEY {
        return Err(out_of_line::key_too_long(key.len(), &index.name));
    }
    let insert = |cx: &Executor<'_>| cx.txn.insert(&tree(index.tree), key, payload).map_err(from_txn);
    let mut outcome = insert(cx)?;
    if outcome == InsertOutcome::Duplicate {
        await_rival(cx, table, index, key)?;
        outcome = insert(cx)?;
    }
    match outcome {
        InsertOutcome::Done => Ok(()),
        InsertOutcome::Duplicate => Err(unique_violation(cx, table, &index.name, index_parts(index), row)),
    }
}

/// Waits for a running transaction that wrote the row of a conflicting entry but left the entry
/// alone. That transaction may still delete the row.
#[cold]
fn await_rival(cx: &mut Executor<'_>, table: &Table, index: &Index, key: &[u8]) -> Result<(), SqlError> {
    let (mut primary, mut row) = (cx.take_bytes(), cx.take_bytes());
    if cx.txn.get_written(&tree(index.tree), key, &mut primary).map_err(from_txn)?.is_some() {
        match cx.txn.await_newest(&table_tree(table), &primary, &mut row) {
            // A change after the snapshot is no error here, because the statement does not change
            // that row.
            Ok(_) | Err(txn::Error::Serialization) => {}
            Err(error) => return Err(from_txn(error)),
        }
    }
    cx.give_bytes(primary);
    cx.give_bytes(row);
    Ok(())
}

/// DELETE.
pub(super) fn delete<'s, 'x>(
    cx: &mut Executor<'s>,
    delete: &'s Delete,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let target = &delete.target;
    let mut removals = Removals::default();
    let flow = run(cx, &delete.input, file, arena, &mut |cx, file, arena| {
        loop {
            let Some((key, stamp, bytes)) = identified(target, file)? else { return Ok(Flow::More) };
            let row = (key, stamp, old_row(&target.table, bytes, arena)?);
            match remove_row(cx, &target.table, row, Some(&mut removals))? {
                Outcome::Done => {
                    cx.affected += 1;
                    return sink(cx, file, arena);
                }
                Outcome::SelfChanged => return Ok(Flow::More),
                Outcome::Changed | Outcome::Gone => {
                    let looked = (target, delete.second_look.as_deref());
                    if !second_look::look(cx, looked, (key, stamp, RowLock::Update), file, arena)? {
                        return Ok(Flow::More);
                    }
                }
            }
        }
    })?;
    removals.finish(cx, &target.table)?;
    Ok(flow)
}

/// Deletes a row from the table and its indexes, and notes the referential checks due. Its index
/// entries may wait in `removals`.
pub(super) fn remove_row<'s>(
    cx: &mut Executor<'s>,
    table: &Table,
    (key, stamp, old): (&[u8], Stamp, &[Datum<'_>]),
    removals: Option<&mut Removals<'s>>,
) -> Result<Outcome, SqlError> {
    let outcome = cx.txn.delete(&table_tree(table), key, stamp).map_err(from_txn)?;
    if outcome == Outcome::Done {
        match old.iter().any(Datum::is_out_of_line) {
            false => remove_entries(cx, table, (key, old), removals)?,
            true => {
                let arena = cx.take_arena();
                let keys =
                    out_of_line::fetched(cx.txn, table, old, |column| table.is_keyed(column), &arena.bump)?;
                remove_entries(cx, table, (key, keys), removals)?;
                cx.give_arena(arena);
                out_of_line::retire_replaced(cx, table, old, &[])?;
            }
        }
    }
    Ok(outcome)
}

/// Removes a deleted row's entries from the indexes, and notes the referential checks due.
fn remove_entries<'s>(
    cx: &mut Executor<'s>,
    table: &Table,
    (key, old): (&[u8], &[Datum<'_>]),
    removals: Option<&mut Removals<'s>>,
) -> Result<(), SqlError> {
    let mut waiting = removals.and_then(|removals| (!removals.is_at_once(cx, table)).then_some(removals));
    let (mut entry, mut payload) = (cx.take_bytes(), cx.take_bytes());
    for (at, index) in table.indexes.iter().enumerate() {
        tick_key(table.indexes.len())?;
        index_entry(index, old, key, &mut entry, &mut payload)?;
        match &mut waiting {
            None => removals::remove(cx, index, &entry)?,
            Some(removals) => removals.note(at, &entry)?,
        }
    }
    cx.give_bytes(entry);
    cx.give_bytes(payload);
    pending::row_deleted(cx, table, old)
}
