//! Foreign keys.
//!
//! Changing rows only notes what is due; everything is settled at the statement's end, as PostgreSQL does it, with a new
//! snapshot (in read committed), because a row referenced or referencing may have come since the statement began:
//!
//! 1. A new or changed referencing row: its parent must be there, and is locked KEY SHARE so that it stays.
//! 2. A deleted parent, or one whose key has changed: its children are looked up and the action is done to them, which
//!    may note more; NO ACTION and RESTRICT only look.
//!
//! A parent's change and a child's arrival at the same time meet at the parent row's lock: whoever comes second sees the
//! first one's outcome.

use std::sync::Arc;

use bumpalo::Bump;

use txn::{Direction, LockOutcome, Outcome, RowLock, Stamp, Wait};

use super::constraint::{check_violation, in_table, null_violation, shown_key};
use super::keys::{
    encode_part, index_parts, primary_key_of_entry, primary_parts, step_over, table_tree, tree,
};
use super::modify::{change_row, old_row, remove_row};
use super::{Executor, from_txn, wide};
use crate::catalog::{ForeignKey, Table};
use crate::error::{SqlError, SqlState};
use crate::expr::EvalContext;
use crate::plan::{Check, ReferentialAction};
use crate::types::{Datum, Type, Value, length, oid};

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
        need_parent(cx, &child, at, key, row);
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
    for (at, key) in table.foreign_keys.iter().enumerate() {
        if !same(key.columns.iter(), old, new)? {
            let child = known(cx, table)?;
            need_parent(cx, &child, at, key, new);
        }
    }
    parent_gone(cx, table, old, Some(new))
}

/// A row is gone.
#[inline]
pub(super) fn row_deleted(cx: &mut Executor<'_>, table: &Table, old: &[Datum<'_>]) -> Result<(), SqlError> {
    parent_gone(cx, table, old, None)
}

fn known(cx: &Executor<'_>, table: &Table) -> Result<Arc<Table>, SqlError> {
    cx.catalog.table(table.oid).cloned().ok_or_else(|| SqlError::internal("a table without definition"))
}

fn need_parent(cx: &mut Executor<'_>, child: &Arc<Table>, at: usize, key: &ForeignKey, row: &[Datum<'_>]) {
    let values = key.columns.iter().map(|column| row[*column as usize]);
    // MATCH SIMPLE: any NULL satisfies the constraint.
    if values.clone().any(|value| value.is_null()) {
        return;
    }
    let values = values.map(|value| value.to_value()).collect();
    cx.pending.push(Pending::Parent { child: Arc::clone(child), key: at, values });
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
        let values = |row: &[Datum<'_>]| -> Vec<Value> {
            key.parent_columns.iter().map(|column| row[*column as usize].to_value()).collect()
        };
        let old = values(old);
        if old.iter().any(|value| matches!(value, Value::Null)) {
            continue;
        }
        let new = new.map(values);
        cx.pending.push(Pending::Children { child: Arc::clone(child), key: reference.key, old, new });
    }
    Ok(())
}

/// Whether these columns are the same in both rows.
fn same<'c>(
    columns: impl Iterator<Item = &'c u32>,
    old: &[Datum<'_>],
    new: &[Datum<'_>],
) -> Result<bool, SqlError> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for column in columns {
        super::memory::encode_key(old[*column as usize], &mut a)?;
        super::memory::encode_key(new[*column as usize], &mut b)?;
    }
    Ok(a == b)
}

/// Does everything that is due. Actions may make more due; every row is acted on once, so it ends.
pub(super) fn settle(cx: &mut Executor<'_>) -> Result<(), SqlError> {
    let affected = cx.affected;
    let mut parents = Vec::new();
    let (mut last, mut acted) = (Vec::new(), Vec::new());
    while !cx.pending.is_empty() {
        cx.txn.statement_start().map_err(from_txn)?;
        for pending in std::mem::take(&mut cx.pending) {
            cx.check()?;
            match pending {
                Pending::Parent { child, key, values } => parents.push((child, key, values)),
                Pending::Children { child, key, old, new } => {
                    // What was done before is seen: two keys may refer to the same row, or one row have two of them.
                    cx.txn.next_command();
                    let definition = &child.foreign_keys[key];
                    let action = if new.is_some() { definition.on_update } else { definition.on_delete };
                    match action {
                        ReferentialAction::NoAction => last.push((child, key, old)),
                        ReferentialAction::Restrict => {
                            let txn = cx.txn;
                            txn.with_newest(|| forbid(cx, &child, key, &old, true))?;
                        }
                        _ => {
                            act(cx, (&child, key), action, &old, new.as_deref())?;
                            match action {
                                // The default may be the very value that is gone.
                                ReferentialAction::SetDefault => last.push((child, key, old)),
                                _ => acted.push((child, key, old)),
                            }
                        }
                    }
                }
            }
        }
    }
    if !last.is_empty() || !parents.is_empty() {
        cx.txn.statement_start().map_err(from_txn)?;
    }
    // Checks are about all rows there are, whatever the transaction's snapshot sees.
    let txn = cx.txn;
    if !last.is_empty() {
        txn.with_newest(|| {
            last.iter().try_for_each(|(child, key, old)| forbid(cx, child, *key, old, false))
        })?;
    }
    if txn.keeps_snapshot() && !acted.is_empty() {
        cx.txn.statement_start().map_err(from_txn)?;
        txn.with_newest(|| acted.iter().try_for_each(|(child, key, old)| left_over(cx, child, *key, old)))?;
    }
    for (child, key, values) in parents {
        require_parent(cx, &child, &child.foreign_keys[key], &values)?;
    }
    cx.affected = affected;
    Ok(())
}

/// A value as the other side's column has it: integer columns of different widths may reference each other.
fn as_type<'v>(value: &'v Value, type_: Type) -> Result<Datum<'v>, SqlError> {
    let number = match *value {
        Value::Int2(number) => i64::from(number),
        Value::Int4(number) => i64::from(number),
        Value::Int8(number) => number,
        _ => return Ok(value.datum()),
    };
    // What doesn't fit can't be there: any other type's bytes differ from every key.
    Ok(match type_.oid {
        oid::INT2 => i16::try_from(number).map_or(Datum::Int8(number), Datum::Int2),
        oid::INT4 => i32::try_from(number).map_or(Datum::Int8(number), Datum::Int4),
        oid::INT8 => Datum::Int8(number),
        _ => value.datum(),
    })
}

/// Locks the parent of a child row, or fails.
fn require_parent(
    cx: &mut Executor<'_>,
    child: &Table,
    key: &ForeignKey,
    values: &[Value],
) -> Result<(), SqlError> {
    let catalog = cx.catalog;
    let Some(parent) = catalog.table(key.parent) else {
        return Err(SqlError::internal("a foreign key to no table"));
    };
    let value_of = |column: u32| key.parent_columns.iter().position(|c| *c == column).map(|at| &values[at]);
    let (mut bytes, mut row) = (Vec::new(), Vec::new());
    let primary =
        parent.primary_key.as_ref().filter(|primary| same_set(&primary.columns, &key.parent_columns));
    let mut parts: Vec<_> = primary_parts(parent).collect();
    let mut target = table_tree(parent);
    if primary.is_none() {
        let index = parent.indexes.iter().find(|index| {
            let columns: Vec<u32> = index.columns.iter().map(|key| key.column).collect();
            index.unique && same_set(&columns, &key.parent_columns)
        });
        let Some(index) = index else { return Err(SqlError::internal("a foreign key to no unique key")) };
        parts = index_parts(index).collect();
        target = tree(index.tree);
    }
    for part in parts {
        if let Some(value) = value_of(part.column) {
            encode_part(part, as_type(value, parent.columns[part.column as usize].type_)?, &mut bytes)?;
        }
    }
    let mut outcome =
        cx.txn.lock_row(&target, &bytes, RowLock::KeyShare, Wait::Block, &mut row).map_err(from_txn)?;
    if primary.is_none() && matches!(outcome, LockOutcome::Locked(_)) {
        let row_key = std::mem::take(&mut row);
        outcome = cx
            .txn
            .lock_row(&table_tree(parent), &row_key, RowLock::KeyShare, Wait::Block, &mut row)
            .map_err(from_txn)?;
    }
    if matches!(outcome, LockOutcome::Locked(_)) {
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
    let shown = shown_key(cx, child, key.columns.iter().copied(), &shown);
    Err(in_table(cx, child, SqlError::new(SqlState::FOREIGN_KEY_VIOLATION, message))
        .with_detail(format!("{shown} is not present in table \"{}\".", parent.name))
        .with_constraint(&key.name))
}

fn same_set(a: &[u32], b: &[u32]) -> bool {
    a.len() == b.len() && a.iter().all(|column| b.contains(column))
}

/// A child row: its key, its version, its bytes.
type ChildRow = (Vec<u8>, Stamp, Vec<u8>);

/// The children of a parent's key, at most `limit`: through an index that begins with the key's columns, or all rows.
fn children(
    cx: &mut Executor<'_>,
    child: &Table,
    key: &ForeignKey,
    old: &[Value],
    limit: usize,
) -> Result<Vec<ChildRow>, SqlError> {
    let wanted: Vec<Datum<'_>> = key
        .columns
        .iter()
        .zip(old)
        .map(|(column, value)| as_type(value, child.columns[*column as usize].type_))
        .collect::<Result<_, _>>()?;
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
        if parts.is_empty() && !matches_values(cx.txn, child, key, row, &wanted)? {
            continue;
        }
        found.push((primary.to_vec(), stamp, row.to_vec()));
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

fn matches_values(
    txn: &txn::TxnSession,
    child: &Table,
    key: &ForeignKey,
    row: &[u8],
    wanted: &[Datum<'_>],
) -> Result<bool, SqlError> {
    let view = crate::row::RowView::new(row, child.shape());
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let bump = bumpalo::Bump::new();
    for (column, value) in key.columns.iter().zip(wanted) {
        let column = *column as usize;
        super::memory::encode_key(wide::fetch(txn, child, (column, view.get(column)?), &bump)?, &mut a)?;
        super::memory::encode_key(*value, &mut b)?;
    }
    Ok(a == b)
}

/// NO ACTION and RESTRICT: an error if there are children, unless another row has the parent's key again.
fn forbid(
    cx: &mut Executor<'_>,
    child: &Table,
    key: usize,
    old: &[Value],
    restrict: bool,
) -> Result<(), SqlError> {
    let key = &child.foreign_keys[key];
    if children(cx, child, key, old, 1)?.is_empty() {
        return Ok(());
    }
    if !restrict && require_parent(cx, child, key, old).is_ok() {
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
    let shown = shown_key(cx, parent, key.parent_columns.iter().copied(), &shown);
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

/// In repeatable read, after an action: children that came after the snapshot can't be acted on.
fn left_over(cx: &mut Executor<'_>, child: &Table, key: usize, old: &[Value]) -> Result<(), SqlError> {
    let key = &child.foreign_keys[key];
    if children(cx, child, key, old, 1)?.is_empty() || require_parent(cx, child, key, old).is_ok() {
        return Ok(());
    }
    Err(from_txn(txn::Error::Serialization))
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
    let reads = |column: usize| checks.iter().any(|check| wide::reads(&check.expr, first + column as u32));
    let whole = wide::fetched(cx.txn, child, row, reads, &bump)?;
    let before = std::iter::repeat_n(Datum::Null, *first as usize);
    let registers: Vec<Datum<'_>> = before.chain(whole.iter().copied()).collect();
    let mut context =
        EvalContext { registers: &registers, params: &[], arena: &bump, session: cx.environment };
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
    let default = crate::planner::default_value(cx.catalog, table, column)?;
    let scratch = Bump::new();
    let mut context = EvalContext { registers: &[], params: &[], arena: &scratch, session: cx.environment };
    Ok(default.eval(&mut context)?.copy_in(bump))
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
        false => crate::planner::row_checks(cx.catalog, child)?,
    };
    for (primary, mut stamp, mut bytes) in children(cx, child, definition, old, usize::MAX)? {
        loop {
            cx.check()?;
            let memory = cx.take_arena();
            let outcome = (|| {
                let row = old_row(child, &bytes, &memory)?;
                if action == ReferentialAction::Cascade && new.is_none() {
                    return remove_row(cx, child, (&primary, stamp, row));
                }
                let changed = memory.bump.alloc_slice_copy(row);
                for (at, column) in definition.columns.iter().enumerate() {
                    let column = *column as usize;
                    changed[column] = match (action, new) {
                        (ReferentialAction::Cascade, Some(new)) => {
                            let type_ = child.columns[column].type_;
                            length::apply(as_type(&new[at], type_)?, type_, false, &memory.bump)?
                        }
                        (ReferentialAction::SetDefault, _) => default_of(cx, child, column, &memory.bump)?,
                        _ => Datum::Null,
                    };
                }
                check_changed(cx, child, &checks, changed)?;
                change_row(cx, child, (&primary, stamp, row), changed)
            })();
            cx.give_arena(memory);
            if outcome? != Outcome::Changed {
                break;
            }
            let mut newest = Vec::new();
            let locked =
                cx.txn.lock_row(&table_tree(child), &primary, RowLock::Update, Wait::Block, &mut newest);
            match locked.map_err(from_txn)? {
                LockOutcome::Locked(now) => (stamp, bytes) = (now, newest),
                LockOutcome::Gone | LockOutcome::Skipped => break,
            }
        }
    }
    Ok(())
}
