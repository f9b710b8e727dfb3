//! Foreign keys: checks and actions at the end of a statement.
//!
//! A change of a row only queues the checks and actions that its foreign keys call for. [`settle`]
//! does them at the statement's end, as PostgreSQL does. In read committed it takes a new snapshot,
//! because a parent or child row may have come since the statement began:
//!
//! 1. A new or changed child: its parent must exist. The check locks the parent KEY SHARE, so that
//!    it stays.
//! 2. A deleted parent, or one whose key has changed: the action is done to its children, which may
//!    queue more. NO ACTION and RESTRICT lock a child KEY SHARE to learn whether it stays.
//!
//! A parent's change and a child's arrival at the same time meet at the parent row's lock. The
//! second session waits, and learns the first one's commit with the lock. So the snapshot of its
//! checks includes that commit. No child can arrive once the parent's change has the lock. The
//! check waits for a child that leaves at the same time, at the child's own row. After each such
//! wait it looks the children up again, because a child that left may have come back under another
//! key.

mod parent;

use std::sync::Arc;

use bumpalo::Bump;

use txn::trees::Tree;
use txn::{Direction, LockOutcome, Outcome, RowLock, Stamp, TableLock, Wait};

use super::constraint::{check_violation, in_table, null_violation, shown_key};
use super::keys::{encode_part, index_parts, primary_key_of_entry, primary_parts, table_tree, tree};
use super::modify::{change_row, old_row, remove_row};
use super::pending::Pending;
use super::{Executor, from_txn, out_of_line};
use catalog::ReferentialAction;
use catalog::{ForeignKey, Table};
use expressions::context::EvalContext;
use parent::{hold_parent, hold_replacement, require_parent};
use query::plan::Check;
use values::error::{SqlError, SqlState};
use values::key::step_over;
use values::types::{Datum, Type, Value, modifier, oid};
use values::work::tick_parts;

/// Does all queued checks and actions, in the order of the queue, as PostgreSQL's triggers do. For
/// a changed row, the actions on its children come first, by the age of their constraints. Work
/// that an action queues comes behind the rest. So a NO ACTION key is checked before a CASCADE of
/// the same row reaches its children's children. Every row is acted on once, so it ends.
pub(super) fn settle(cx: &mut Executor<'_>) -> Result<(), SqlError> {
    let (txn, affected) = (cx.txn, cx.affected);
    // `lacking`: child rows whose parent was missing after some action had run. An action may have
    // changed such a row since, or may still change it, so each is looked at again at the end.
    let (mut acted, mut lacking) = (false, Vec::new());
    while !cx.pending.is_empty() {
        txn.statement_start().map_err(from_txn)?;
        for pending in std::mem::take(&mut cx.pending) {
            cx.check()?;
            match pending {
                Pending::Parent { child, key, values } => {
                    let checked = require_parent(cx, &child, &child.foreign_keys[key], &values, hold_parent);
                    match checked {
                        Err(error) if acted && error.code == SqlState::FOREIGN_KEY_VIOLATION => {
                            lacking.push((child, key, values));
                        }
                        checked => checked?,
                    }
                }
                Pending::Children { child, key, old, new } => {
                    // Earlier actions are visible: two keys may refer to the same row, or one row
                    // may have two of them.
                    txn.next_command();
                    acted |= settle_children(cx, (&child, key), &old, new.as_deref())?;
                }
            }
        }
    }
    for (child, key, values) in lacking {
        still_lacks(cx, &child, &child.foreign_keys[key], &values)?;
    }
    cx.affected = affected;
    Ok(())
}

/// Fails if a row that had no parent still exists and still has none.
fn still_lacks(
    cx: &mut Executor<'_>,
    child: &Table,
    key: &ForeignKey,
    values: &[Value],
) -> Result<(), SqlError> {
    let txn = cx.txn;
    txn.statement_start().map_err(from_txn)?;
    if txn.with_newest(|| children(cx, child, key, values, 1))?.is_empty() {
        return Ok(());
    }
    require_parent(cx, child, key, values, hold_parent)
}

/// Does a key's action after the parent row with the values `old` was deleted or got other values.
/// Returns whether the action changes children. Checks read the newest version of every row,
/// whatever the transaction's snapshot sees.
fn settle_children(
    cx: &mut Executor<'_>,
    (child, key): (&Arc<Table>, usize),
    old: &[Value],
    new: Option<&[Value]>,
) -> Result<bool, SqlError> {
    let (txn, definition) = (cx.txn, &child.foreign_keys[key]);
    debug_assert!(txn.holds_table(child.oid, TableLock::RowShare), "the binder locks what keys lead to");
    let action = if new.is_some() { definition.on_update } else { definition.on_delete };
    let acts = !matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict);
    if acts {
        act(cx, (child, key), action, old, new)?;
        // The statements that follow see the action's changes.
        txn.next_command();
    }
    match action {
        ReferentialAction::Cascade | ReferentialAction::SetNull => Ok(()),
        // SET DEFAULT: the children's default may equal the parent's old key, which no longer
        // exists. So it is checked like NO ACTION.
        ReferentialAction::NoAction | ReferentialAction::SetDefault => {
            txn.with_newest(|| forbid(cx, child, key, old, false))
        }
        ReferentialAction::Restrict => txn.with_newest(|| forbid(cx, child, key, old, true)),
    }?;
    Ok(acts)
}

/// A value as the other side's column has it: integer columns of different widths may reference
/// each other.
fn as_type<'v>(value: &'v Value, type_: Type) -> Result<Datum<'v>, SqlError> {
    let number = match *value {
        Value::Int2(number) => i64::from(number),
        Value::Int4(number) => i64::from(number),
        Value::Int8(number) => number,
        _ => return Ok(value.datum()),
    };
    // A value that does not fit the child's type has no child. It stays an int8, whose key bytes
    // equal no key of the narrower type, so the search finds nothing.
    Ok(match type_.oid {
        oid::INT2 => i16::try_from(number).map_or(Datum::Int8(number), Datum::Int2),
        oid::INT4 => i32::try_from(number).map_or(Datum::Int8(number), Datum::Int4),
        oid::INT8 => Datum::Int8(number),
        _ => value.datum(),
    })
}

fn same_set(a: &[u32], b: &[u32]) -> bool {
    a.len() == b.len() && a.iter().all(|column| b.contains(column))
}

/// A child row.
struct ChildRow {
    key: Vec<u8>,
    stamp: Stamp,
    bytes: Vec<u8>,
    /// The entry of the unique index that led to the row. A change of the key changes this entry.
    entry: Option<(Tree, Vec<u8>)>,
}

/// A parent's key as its children have it.
fn as_child<'v>(child: &Table, key: &ForeignKey, old: &'v [Value]) -> Result<Vec<Datum<'v>>, SqlError> {
    let columns = key.columns.iter().map(|column| child.columns[*column as usize].type_);
    columns.zip(old).map(|(type_, value)| as_type(value, type_)).collect()
}

/// At most `limit` children of a parent's key. Reads an index that begins with the key's columns,
/// or else the whole table.
fn children(
    cx: &mut Executor<'_>,
    child: &Table,
    key: &ForeignKey,
    old: &[Value],
    limit: usize,
) -> Result<Vec<ChildRow>, SqlError> {
    let wanted = as_child(child, key, old)?;
    let value_of = |column: u32| key.columns.iter().position(|c| *c == column).map(|at| wanted[at]);
    let leads = |columns: &[u32]| {
        columns.len() >= key.columns.len() && same_set(&columns[..key.columns.len()], &key.columns)
    };
    let (mut low, mut index) = (Vec::new(), None);
    let primary: Vec<_> = primary_parts(child).collect();
    let columns =
        |parts: &[super::keys::Part]| -> Vec<u32> { parts.iter().map(|part| part.column).collect() };
    let mut parts = Vec::new();
    if leads(&columns(&primary)) {
        parts = primary;
    } else if let Some(found) =
        child.indexes.iter().find(|index| leads(&columns(&index_parts(index).collect::<Vec<_>>())))
    {
        parts = index_parts(found).collect();
        index = Some(found);
    }
    for part in parts.iter().take(key.columns.len()) {
        if let Some(value) = value_of(part.column) {
            encode_part(*part, value, &mut low)?;
        }
    }
    let mut high = low.clone();
    let upper = match step_over(&mut high) {
        true => std::ops::Bound::Excluded(high.as_slice()),
        false => std::ops::Bound::Unbounded,
    };
    let range = txn::Range { lower: std::ops::Bound::Included(&low), upper };
    let target = index.map_or_else(|| table_tree(child), |index| tree(index.tree));
    let mut scan = cx.txn.scan(&target, range, Direction::Forward);
    let mut found = Vec::new();
    let mut buffer = Vec::new();
    while let Some((entry, payload, stamp)) = scan.next(cx.txn).map_err(from_txn)? {
        cx.check()?;
        let (primary, stamp, row) = match index {
            None => (entry, stamp, payload),
            Some(index) => {
                let primary = primary_key_of_entry(index, entry, payload)?;
                match cx.txn.get(&table_tree(child), primary, &mut buffer).map_err(from_txn)? {
                    Some(stamp) => (primary, stamp, buffer.as_slice()),
                    None => continue,
                }
            }
        };
        if parts.is_empty() && !refers(cx.txn, child, key, row, &wanted)? {
            continue;
        }
        let unique = index.filter(|index| index.unique);
        found.push(ChildRow {
            key: primary.to_vec(),
            stamp,
            bytes: row.to_vec(),
            entry: unique.map(|_| (target, entry.to_vec())),
        });
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// Whether a child's row has these values in the key's columns.
fn refers(
    txn: &txn::TxnSession,
    child: &Table,
    key: &ForeignKey,
    row: &[u8],
    wanted: &[Datum<'_>],
) -> Result<bool, SqlError> {
    let view = values::row::RowView::new(row, child.shape());
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let bump = bumpalo::Bump::new();
    for (column, value) in key.columns.iter().zip(wanted) {
        let column = *column as usize;
        super::memory::encode_key(
            out_of_line::fetch(txn, child, (column, view.get(column)?), &bump)?,
            &mut a,
        )?;
        super::memory::encode_key(*value, &mut b)?;
    }
    Ok(a == b)
}

/// Outcome of a search for a child that stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A child that stays, now locked KEY SHARE.
    Child,
    /// The child went during the wait. Another may have come in its place.
    Leaving,
}

/// Looks for a child. Waits for a session that is removing it or changing its key.
fn first_child(
    cx: &mut Executor<'_>,
    child: &Table,
    key: &ForeignKey,
    old: &[Value],
) -> Result<Found, SqlError> {
    let Some(found) = children(cx, child, key, old, 1)?.pop() else { return Ok(Found::Nothing) };
    let mut row = Vec::new();
    for (tree, entry) in found.entry.iter().chain([&(table_tree(child), found.key)]) {
        let locked = cx.txn.lock_row(tree, entry, RowLock::KeyShare, Wait::Block, &mut row);
        if !matches!(locked.map_err(from_txn)?, LockOutcome::Locked(_)) {
            return Ok(Found::Leaving);
        }
    }
    Ok(match row == found.bytes || refers(cx.txn, child, key, &row, &as_child(child, key, old)?)? {
        true => Found::Child,
        false => Found::Leaving,
    })
}

/// Whether another row has the parent's key now.
fn is_replaced(
    cx: &mut Executor<'_>,
    child: &Table,
    key: &ForeignKey,
    old: &[Value],
) -> Result<bool, SqlError> {
    match require_parent(cx, child, key, old, hold_replacement) {
        Ok(()) => Ok(true),
        Err(error) if error.code == SqlState::FOREIGN_KEY_VIOLATION => Ok(false),
        Err(error) => Err(error),
    }
}

/// NO ACTION and RESTRICT: fails if there are children, unless another row has the parent's key
/// again. The caller has taken the newest snapshot.
fn forbid(
    cx: &mut Executor<'_>,
    child: &Table,
    key: usize,
    old: &[Value],
    restrict: bool,
) -> Result<(), SqlError> {
    let key = &child.foreign_keys[key];
    let txn = cx.txn;
    let mut found = first_child(cx, child, key, old)?;
    if found == Found::Nothing || !restrict && is_replaced(cx, child, key, old)? {
        return Ok(());
    }
    while found == Found::Leaving {
        found = txn.with_newest(|| first_child(cx, child, key, old))?;
    }
    if found == Found::Nothing {
        return Ok(());
    }
    let catalog = cx.catalog;
    let Some(parent) = catalog.table(key.parent) else {
        return Err(SqlError::internal("a foreign key to no table"));
    };
    let mut shown = vec![Datum::Null; parent.columns.len()];
    for (column, value) in key.parent_columns.iter().zip(old) {
        shown[*column as usize] = value.datum();
    }
    let shown = shown_key(cx, parent, (key.parent_columns.iter().copied(), false), &shown)?;
    let (code, setting, still) = match restrict {
        true => (SqlState::RESTRICT_VIOLATION, "RESTRICT setting of ", "is referenced"),
        false => (SqlState::FOREIGN_KEY_VIOLATION, "", "is still referenced"),
    };
    let message = format!(
        "update or delete on table \"{}\" violates {setting}foreign key constraint \"{}\" on table \"{}\"",
        parent.name, key.name, child.name
    );
    Err(in_table(cx, child, SqlError::new(code, message))
        .with_detail(format!("{shown} {still} from table \"{}\".", child.name))
        .with_constraint(&key.name))
}

/// A child's row as an action leaves it must satisfy its table's constraints.
fn check_changed(
    cx: &Executor<'_>,
    child: &Table,
    (first, checks): &(u32, Vec<Check>),
    row: &[Datum<'_>],
) -> Result<(), SqlError> {
    let broken = child.columns.iter().zip(row).find(|(column, value)| column.not_null && value.is_null());
    if let Some((column, _)) = broken.filter(|(column, _)| !column.dropped) {
        return Err(null_violation(cx, child, &column.name, row)?);
    }
    if checks.is_empty() {
        return Ok(());
    }
    let bump = Bump::new();
    let reads =
        |column: usize| checks.iter().any(|check| out_of_line::reads(&check.expr, first + column as u32));
    let whole = out_of_line::fetched(cx.txn, child, row, reads, &bump)?;
    let before = std::iter::repeat_n(Datum::Null, *first as usize);
    let registers: Vec<Datum<'_>> = before.chain(whole.iter().copied()).collect();
    let mut context = EvalContext::new(&registers, &[], &bump, cx.environment);
    tick_parts(checks.len())?;
    for check in checks {
        if matches!(check.expr.eval(&mut context)?, Datum::Bool(false)) {
            return Err(check_violation(cx, child, &check.name, row)?);
        }
    }
    Ok(())
}

/// A column's default, evaluated for this row.
fn default_of<'b>(
    cx: &Executor<'_>,
    table: &Table,
    column: usize,
    bump: &'b Bump,
) -> Result<Datum<'b>, SqlError> {
    let default = query::compile::default_value(cx.catalog, table, column)?;
    let scratch = Bump::new();
    let mut context = EvalContext::new(&[], &[], &scratch, cx.environment);
    default.eval(&mut context)?.copy_in(bump)
}

/// CASCADE, SET NULL, SET DEFAULT.
fn act(
    cx: &mut Executor<'_>,
    (child, key): (&Arc<Table>, usize),
    action: ReferentialAction,
    old: &[Value],
    new: Option<&[Value]>,
) -> Result<(), SqlError> {
    let definition = &child.foreign_keys[key];
    let checks = match child.checks.is_empty() {
        true => (0, Vec::new()),
        false => query::compile::row_checks(cx.catalog, child)?,
    };
    let wanted = as_child(child, definition, old)?;
    let txn = cx.txn;
    loop {
        let mut waited = false;
        let found = txn.with_newest(|| children(cx, child, definition, old, usize::MAX))?;
        for ChildRow { key: primary, mut stamp, mut bytes, .. } in found {
            // In repeatable read, a child deleted since the snapshot does not count, and a child
            // added since then is an error.
            if txn.keeps_snapshot() && txn.committed_later(stamp.txid) {
                return Err(from_txn(txn::Error::Serialization));
            }
            loop {
                cx.check()?;
                let memory = cx.take_arena();
                let outcome = (|| {
                    let row = old_row(child, &bytes, &memory)?;
                    if action == ReferentialAction::Cascade && new.is_none() {
                        return remove_row(cx, child, (&primary, stamp, row), None);
                    }
                    let changed = changed_child(cx, (child, definition), action, row, new, &memory.bump)?;
                    check_changed(cx, child, &checks, changed)?;
                    change_row(cx, child, (&primary, stamp, row), changed)
                })();
                cx.give_arena(memory);
                match outcome? {
                    Outcome::Changed => {}
                    outcome => {
                        waited |= outcome == Outcome::Gone;
                        break;
                    }
                }
                waited = true;
                let mut newest = Vec::new();
                let locked = cx.txn.lock_row(
                    &table_tree(child),
                    &primary,
                    RowLock::NoKeyUpdate,
                    Wait::Block,
                    &mut newest,
                );
                match locked.map_err(from_txn)? {
                    LockOutcome::Locked(now) if refers(cx.txn, child, definition, &newest, &wanted)? => {
                        (stamp, bytes) = (now, newest);
                    }
                    _ => break,
                }
            }
        }
        if !waited {
            return Ok(());
        }
        // A child whose own key changed meanwhile lies under another key now.
        cx.txn.statement_start().map_err(from_txn)?;
    }
}

/// A child's row as an action leaves it.
fn changed_child<'b>(
    cx: &Executor<'_>,
    (child, key): (&Table, &ForeignKey),
    action: ReferentialAction,
    row: &[Datum<'b>],
    new: Option<&'b [Value]>,
    bump: &'b Bump,
) -> Result<&'b [Datum<'b>], SqlError> {
    let changed = bump.alloc_slice_copy(row);
    for (at, column) in key.columns.iter().enumerate() {
        let column = *column as usize;
        changed[column] = match (action, new) {
            (ReferentialAction::Cascade, Some(new)) => {
                let type_ = child.columns[column].type_;
                modifier::apply(as_type(&new[at], type_)?, type_, false, bump)?
            }
            (ReferentialAction::SetDefault, _) => default_of(cx, child, column, bump)?,
            _ => Datum::Null,
        };
    }
    Ok(changed)
}
