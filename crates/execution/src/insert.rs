//! INSERT and ON CONFLICT.

use txn::{InsertOutcome, LockOutcome, Outcome, RowLock, Wait};

use super::constraint::{check_row, check_row_of_pointers, unique_violation};
use super::keys::{index_entry, index_parts, primary_parts, row_key, table_tree, tree};
use super::modify::{change_row, insert_entry, old_row};
use super::{Arena, Executor, File, Flow, Sink, from_txn, load, out_of_line, pending, run};
use catalog::Table;
use query::plan::{Arbiter, ConflictUpdate, Insert, OnConflict};
use values::error::{SqlError, SqlState};
use values::row;
use values::types::Datum;
use values::work::{tick_key, tick_parts};

/// INSERT.
pub(super) fn insert<'s, 'x>(
    cx: &mut Executor<'s>,
    insert: &'s Insert,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    run(cx, &insert.input, file, arena, &mut |cx, file, arena| {
        if insert_row(cx, insert, file, arena)? {
            cx.affected += 1;
            return sink(cx, file, arena);
        }
        Ok(Flow::More)
    })
}

/// Inserts the row that the registers describe. Returns false if a conflict made it skip the row.
pub(super) fn insert_row<'s, 'x>(
    cx: &mut Executor<'s>,
    insert: &'s Insert,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
) -> Result<bool, SqlError> {
    let first = insert.new_row as usize;
    tick_parts(insert.values.len())?;
    for (at, expr) in insert.values.iter().enumerate() {
        file[first + at] = cx.eval(expr, file, arena)?;
    }
    check_row(cx, &insert.table, (insert.new_row, &insert.checks), file, arena)?;
    let row = first..first + insert.table.columns.len();
    let Some(conflict) = &insert.conflict else {
        store_row(cx, &insert.table, &file[row])?;
        return Ok(true);
    };
    loop {
        let Some(found) = existing(cx, insert, conflict, &file[row.clone()])? else {
            let savepoint = cx.txn.savepoint();
            match store_row(cx, &insert.table, &file[row.clone()]) {
                Ok(()) => {
                    cx.txn.release(savepoint).map_err(from_txn)?;
                    return Ok(true);
                }
                // Another transaction inserted the same key in between: undo what was stored and
                // look again.
                Err(error)
                    if error.code == SqlState::UNIQUE_VIOLATION && arbitrates(insert, conflict, &error) =>
                {
                    cx.txn.rollback_to(savepoint).map_err(from_txn)?;
                    cx.txn.release(savepoint).map_err(from_txn)?;
                    if conflict.update.is_none() {
                        return Ok(false);
                    }
                    cx.check()?;
                    continue;
                }
                Err(error) => return Err(error),
            }
        };
        let Some(update) = &conflict.update else { return Ok(false) };
        let located = (conflict, &found);
        match update_existing(cx, insert, update, located, file, arena)? {
            Resolved::Updated => return Ok(true),
            Resolved::Passed => return Ok(false),
            Resolved::Retry => cx.check()?,
        }
    }
}

/// Whether a broken unique key is the one ON CONFLICT names.
fn arbitrates(insert: &Insert, conflict: &OnConflict, error: &SqlError) -> bool {
    let broken = error.constraint.as_deref();
    match conflict.arbiter {
        None => true,
        Some(Arbiter::PrimaryKey) => broken == insert.table.primary_key.as_ref().map(|key| key.name.as_str()),
        Some(Arbiter::Index(index)) => broken == Some(insert.table.indexes[index].name.as_str()),
    }
}

/// Stores a complete, checked row and its index entries, and notes the referential checks due.
pub(super) fn store_row(cx: &mut Executor<'_>, table: &Table, row: &[Datum<'_>]) -> Result<(), SqlError> {
    let (mut bytes, mut key) = (cx.take_bytes(), cx.take_bytes());
    match table.primary_key {
        Some(_) => row_key(table, row, &mut key)?,
        None => key.extend_from_slice(&cx.numbers.take(cx.folder(), table.tree)?.to_be_bytes()),
    }
    out_of_line::encode(cx, table, row, &key, &mut bytes)?;
    if load::insert(cx, table, &key, &bytes)? == InsertOutcome::Duplicate {
        let name = table.primary_key.as_ref().map_or("", |key| &key.name);
        return Err(unique_violation(cx, table, name, primary_parts(table), row));
    }
    if !table.indexes.is_empty() {
        let (mut entry, mut payload) = (cx.take_bytes(), cx.take_bytes());
        for index in &table.indexes {
            tick_key(table.indexes.len())?;
            index_entry(index, row, &key, &mut entry, &mut payload)?;
            insert_entry(cx, (table, index), row, &entry, &payload)?;
        }
        cx.give_bytes(entry);
        cx.give_bytes(payload);
    }
    pending::row_inserted(cx, table, row)?;
    cx.give_bytes(bytes);
    cx.give_bytes(key);
    Ok(())
}

/// The row that a new one conflicts with.
struct Existing {
    key: Vec<u8>,
    /// A secondary index led to it, so its columns may change before the row is locked.
    by_index: bool,
}

/// The row that conflicts with a new one, in its newest version, whatever the snapshot sees. Waits
/// until every other transaction that wrote it has ended.
fn existing(
    cx: &mut Executor<'_>,
    insert: &Insert,
    conflict: &OnConflict,
    row: &[Datum<'_>],
) -> Result<Option<Existing>, SqlError> {
    let table = &*insert.table;
    let wanted = |arbiter: Arbiter| conflict.arbiter.is_none_or(|named| named == arbiter);
    let (mut payload, mut key) = (cx.take_bytes(), Vec::new());
    let mut found = None;
    if table.primary_key.is_some() && wanted(Arbiter::PrimaryKey) {
        row_key(table, row, &mut key)?;
        if cx.txn.await_newest(&table_tree(table), &key, &mut payload).map_err(from_txn)?.is_some() {
            found = Some(Existing { key: key.clone(), by_index: false });
        }
    }
    for (at, index) in table.indexes.iter().enumerate() {
        tick_key(table.indexes.len())?;
        let null = index_parts(index).any(|part| row[part.column as usize].is_null());
        if found.is_some()
            || !index.unique
            || (null && !index.nulls_not_distinct)
            || !wanted(Arbiter::Index(at))
        {
            continue;
        }
        key.clear();
        index_entry(index, row, &[], &mut key, &mut payload)?;
        while cx.txn.await_newest(&tree(index.tree), &key, &mut payload).map_err(from_txn)?.is_some() {
            // The row itself may be changing. A change that keeps the key does not touch the entry,
            // so the wait for the entry does not cover it.
            let of_row = std::mem::take(&mut payload);
            let row = cx.txn.await_newest(&table_tree(table), &of_row, &mut payload).map_err(from_txn)?;
            if row.is_some() {
                found = Some(Existing { key: of_row, by_index: true });
                break;
            }
            cx.check()?;
        }
    }
    cx.give_bytes(payload);
    Ok(found)
}

enum Resolved {
    Updated,
    Passed,
    Retry,
}

/// DO UPDATE.
fn update_existing<'s, 'x>(
    cx: &mut Executor<'s>,
    insert: &'s Insert,
    update: &'s ConflictUpdate,
    (conflict, found): (&OnConflict, &Existing),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
) -> Result<Resolved, SqlError> {
    let table = &*insert.table;
    let (key, columns) = (&found.key[..], table.columns.len());
    // The columns that are assigned decide the lock, even if they get the value they have.
    let lock = match update.assignments.iter().any(|assignment| table.is_unique(assignment.column)) {
        true => RowLock::Update,
        false => RowLock::NoKeyUpdate,
    };
    let mut buffer = cx.take_bytes();
    let outcome = cx.txn.lock_row(&table_tree(table), key, lock, Wait::Block, &mut buffer);
    let bytes: &'x [u8] = arena.bump.alloc_slice_copy(&buffer);
    cx.give_bytes(buffer);
    let LockOutcome::Locked(stamp) = outcome.map_err(from_txn)? else { return Ok(Resolved::Retry) };
    if found.by_index {
        let row = insert.new_row as usize..insert.new_row as usize + columns;
        if existing(cx, insert, conflict, &file[row])?.is_none_or(|still| still.key != found.key) {
            return Ok(Resolved::Retry);
        }
    }
    let snapshot = cx.txn.snapshot();
    if stamp.txid == snapshot.txid && stamp.command >= snapshot.command {
        return Err(second_time());
    }
    out_of_line::decode_whole(cx, table, &update.existing, bytes, file, arena)?;
    if let Some(condition) = &update.condition
        && !cx.test(condition, file, arena)?
    {
        return Ok(Resolved::Passed);
    }
    let old = old_row(table, bytes, arena)?;
    let values = arena.bump.alloc_slice_fill_copy(update.assignments.len(), Datum::Null);
    tick_parts(update.assignments.len())?;
    for (value, assignment) in values.iter_mut().zip(&update.assignments) {
        *value = cx.eval(&assignment.value, file, arena)?;
    }
    let first = update.updated_row as usize;
    file[first..first + columns].copy_from_slice(old);
    for (value, assignment) in values.iter().zip(&update.assignments) {
        file[first + assignment.column as usize] = *value;
    }
    let checked = (update.updated_row, &update.checks[..]);
    match row::has_out_of_line(bytes) {
        false => check_row(cx, table, checked, file, arena)?,
        true => check_row_of_pointers(cx, table, checked, file, arena)?,
    }
    match change_row(cx, table, (key, stamp, old), &file[first..first + columns])? {
        Outcome::Done => {
            let new_row = insert.new_row as usize;
            file.copy_within(first..first + columns, new_row);
            out_of_line::fetch_returned(cx, table, (insert.new_row, &insert.returned), file, arena)?;
            Ok(Resolved::Updated)
        }
        Outcome::SelfChanged => Err(second_time()),
        Outcome::Changed | Outcome::Gone => Ok(Resolved::Retry),
    }
}

#[cold]
fn second_time() -> SqlError {
    SqlError::new(
        SqlState::CARDINALITY_VIOLATION,
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
    )
    .with_hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )
}
