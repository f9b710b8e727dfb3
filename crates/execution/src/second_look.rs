//! Row locks, and the second look at a row that another transaction changed during the wait for its
//! lock (PostgreSQL's EvalPlanQual).
//!
//! The second look locks the row's newest version and decodes it into the registers, in place of
//! the version that was read. Then it evaluates again everything that depends on the row
//! ([`SecondLook`]), over these registers. The registers of the other rows stay as they were
//! joined. What must hold: the plan of [`SecondLook`] writes its row into the register file it
//! receives, because the caller goes on with that file.

use txn::{LockOutcome, RowLock, Stamp, Wait};

use super::keys::table_tree;
use super::scan::identify;
use super::{Arena, Executor, File, Flow, Sink, from_txn, out_of_line, run};
use catalog::Table;
use query::plan::{LockTarget, Match, Plan, RowTarget, SecondLook};
use values::error::{SqlError, SqlState};
use values::types::Datum;

/// A row's key, version and bytes.
pub(super) type Identified<'x> = (&'x [u8], Stamp, &'x [u8]);

/// The row a target's registers identify.
pub(super) fn identified<'x>(
    target: &RowTarget,
    file: &File<'x>,
) -> Result<Option<Identified<'x>>, SqlError> {
    let at = target.identity;
    match (file[at.key as usize], file[at.stamp as usize], file[at.row as usize]) {
        (Datum::Bytea(key), Datum::Bytea(stamp), Datum::Bytea(row)) => {
            let stamp = Stamp::decode(stamp).ok_or_else(|| SqlError::internal("a row without version"))?;
            Ok(Some((key, stamp, row)))
        }
        // The row of an outer join's empty side.
        _ => Ok(None),
    }
}

/// The registers as they were before the first newer version was decoded, if anything reads them.
type Former<'x> = Option<&'x mut File<'x>>;

/// Locks the newest version of a target's row. A version newer than the one seen goes to the
/// registers. With `for_key`, the version seen stays there if no unique key has changed since.
/// Returns `None` when the row is gone, or is skipped because another transaction holds it.
fn lock_newest<'s, 'x>(
    cx: &mut Executor<'s>,
    (target, second_look): (&'s RowTarget, Option<&'s SecondLook>),
    (key, seen, for_key): (&'x [u8], Stamp, bool),
    (lock, wait): (RowLock, Wait),
    (file, former): (&mut File<'x>, &mut Former<'x>),
    arena: &'x Arena<'s>,
) -> Result<Option<Stamp>, SqlError> {
    let (mut buffer, mut moved_to) = (cx.take_bytes(), Vec::new());
    let tree = table_tree(&target.table);
    let outcome = cx.txn.lock_version(&tree, (key, seen), (lock, wait), &mut buffer, &mut moved_to);
    let newest = match outcome {
        Ok(LockOutcome::Locked(newest)) if newest != seen => {
            if for_key && moved_to.is_empty() && !cx.txn.keys_changed(newest, seen).map_err(from_txn)? {
                cx.give_bytes(buffer);
                return Ok(Some(seen));
            }
            if former.is_none() && second_look.is_some_and(|second_look| !second_look.matches.is_empty()) {
                *former = Some(arena.file(file));
            }
            let row: &'x [u8] = arena.bump.alloc_slice_copy(&buffer);
            out_of_line::decode_whole(cx, &target.table, &target.columns, row, file, arena)?;
            let key = if moved_to.is_empty() { key } else { arena.bump.alloc_slice_copy(&moved_to) };
            identify(target.identity, key, newest, row, file, arena);
            Some(newest)
        }
        Ok(LockOutcome::Locked(newest)) => Some(newest),
        Ok(LockOutcome::Gone | LockOutcome::Skipped) => None,
        Err(error) => return Err(lock_error(error, &target.table)),
    };
    cx.give_bytes(buffer);
    Ok(newest)
}

fn lock_error(error: txn::Error, table: &Table) -> SqlError {
    match error {
        txn::Error::LockNotAvailable => SqlError::new(
            SqlState::LOCK_NOT_AVAILABLE,
            format!("could not obtain lock on row in relation \"{}\"", table.name),
        ),
        other => from_txn(other),
    }
}

/// Whether the newer versions in the registers qualify. Computes again everything that depends on
/// them.
fn qualifies<'s, 'x>(
    cx: &mut Executor<'s>,
    second_look: Option<&'s SecondLook>,
    former: Former<'x>,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
) -> Result<bool, SqlError> {
    let Some(second_look) = second_look else { return Ok(true) };
    if let Some(former) = former {
        for part in &second_look.matches {
            let found = still_matches(cx, part, &second_look.fresh, (former, file), arena)?;
            file[part.output as usize] = Datum::Bool(found);
        }
    }
    match &second_look.plan {
        Some(plan) => gives_row(cx, plan, file, arena),
        None => Ok(true),
    }
}

/// Whether a plan gives a row.
fn gives_row<'s, 'x>(
    cx: &mut Executor<'s>,
    plan: &'s Plan,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
) -> Result<bool, SqlError> {
    let mut found = false;
    run(cx, plan, file, arena, &mut |_, _, _| {
        found = true;
        Ok(Flow::Stop)
    })?;
    Ok(found)
}

/// Whether a row of the subquery that matched the former versions matches the new ones, which are
/// in `file`.
fn still_matches<'s, 'x>(
    cx: &mut Executor<'s>,
    part: &'s Match,
    fresh: &'s [u32],
    (former, file): (&mut File<'x>, &File<'x>),
    arena: &'x Arena<'s>,
) -> Result<bool, SqlError> {
    let mut found = false;
    run(cx, &part.subquery, former, arena, &mut |cx, row, inner| {
        if let Some(comparison) = &part.comparison
            && !cx.test(comparison, row, inner)?
        {
            return Ok(Flow::More);
        }
        let row = inner.file(row);
        for register in fresh {
            row[*register as usize] = file[*register as usize].copy_in(&inner.bump)?;
        }
        found = match &part.plan {
            Some(plan) => gives_row(cx, plan, row, inner)?,
            None => true,
        };
        Ok(if found { Flow::Stop } else { Flow::More })
    })?;
    Ok(found)
}

/// Locks the newest version of a row that another transaction changed, and evaluates everything
/// again. Returns false when the row is gone, no longer qualifies, or was already changed by this
/// command, which joined it to several rows.
#[cold]
pub(super) fn look<'s, 'x>(
    cx: &mut Executor<'s>,
    (target, second_look): (&'s RowTarget, Option<&'s SecondLook>),
    (key, seen, lock): (&'x [u8], Stamp, RowLock),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
) -> Result<bool, SqlError> {
    let mut former = None;
    let wanted = (lock, Wait::Block);
    let locked =
        lock_newest(cx, (target, second_look), (key, seen, false), wanted, (file, &mut former), arena)?;
    let snapshot = cx.txn.snapshot();
    let changed = |newest: &Stamp| newest.txid == snapshot.txid && newest.command >= snapshot.command;
    Ok(locked.filter(|newest| !changed(newest)).is_some() && qualifies(cx, second_look, former, file, arena)?)
}

/// SELECT FOR UPDATE and its weaker kinds. Locks all rows of a joined row before it evaluates
/// anything again.
pub(super) fn lock_rows<'s, 'x>(
    cx: &mut Executor<'s>,
    (input, targets, second_look): (&'s Plan, &'s [LockTarget], Option<&'s SecondLook>),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    run(cx, input, file, arena, &mut |cx, file, arena| {
        let (mut changed, mut former) = (false, None);
        for LockTarget { target, lock, wait } in targets {
            let Some((key, seen, _)) = identified(target, file)? else { continue };
            // A lock of the key alone reads the version that the snapshot sees.
            let (row, wanted) = ((key, seen, *lock == RowLock::KeyShare), (*lock, *wait));
            match lock_newest(cx, (target, second_look), row, wanted, (file, &mut former), arena)? {
                Some(newest) => changed |= newest != seen,
                None => return Ok(Flow::More),
            }
        }
        if changed && !qualifies(cx, second_look, former, file, arena)? {
            return Ok(Flow::More);
        }
        sink(cx, file, arena)
    })
}
