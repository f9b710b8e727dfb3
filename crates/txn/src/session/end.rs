//! How transactions end: commit, rollback, savepoints, and sessions that are dropped in the middle.
//!
//! Commit:
//!
//! 1. Make sure of log room: the last step that can fail.
//! 2. Append the commit record. Its number goes into the status table before the log counts the
//!    record as filled.
//! 3. Give the row locks up and wake the sessions that wait for this transaction (early lock
//!    release). They depend on this commit now, and their own commits come later in the log.
//! 4. Wait until the record is on disk (unless asynchronous), publish the commit, give the table
//!    locks up.
//!
//! Rollback walks the transaction's undo records, newest first, and puts each entry back by a
//! logged compensation. Then it appends the abort record, and only then do others see the
//! transaction as over.
//!
//! A rollback yields as it goes and cannot be interrupted. It does not give up while the engine is
//! open. It may use the reserve that is held back for it in the log and on disk. When the reserve
//! is used up, it waits for space and logs the wait. An entry that can never be put back ends the
//! process, and recovery puts it back.
//!
//! A dropped session's own core, or recovery, takes its leftovers back; nothing else does.

use std::sync::Arc;
use std::time::Duration;

use runtime::interrupt::{Interrupted, Reason};
use runtime::{Cause, fail_stop, fiber, interrupt, stop};
use storage::error::IoContext;
use storage::retry::Backoff;
use storage::{Lsn, Store};

use super::{Inner, Savepoint, SavepointId};
use crate::log_undo::Before;
use crate::status::Status;
use crate::undo::{self, Record};
use crate::version::UndoPointer;
use crate::{Error, Snapshot, restore};

/// Bytes of log room for a commit or abort record.
const END_BYTES: usize = 64;
/// Locks and savepoints for which memory is kept between transactions.
const KEPT: usize = 256;
/// Cost of giving up one lock, in the units of safe points.
const RELEASE_WORK: usize = 64;
/// How often a step of a rollback is tried again after an I/O error or a lack of frames.
const RETRIES: u32 = 200;
const RETRY_AFTER: Duration = Duration::from_millis(50);

impl Inner {
    pub(super) fn commit(&self, sync: bool) -> Result<(), Error> {
        let committed = match self.txid.get() {
            0 => {
                // Without a transaction number there are row locks only, and nobody waits for the
                // transaction's end.
                self.release_rows_after(0);
                Ok(())
            }
            txid if self.last_lsn.get() == Lsn::ZERO => {
                self.finish_without_changes(txid);
                Ok(())
            }
            txid => self.commit_changes(txid, sync),
        };
        // It failed before anything was appended: the transaction is still open and can be rolled
        // back.
        committed?;
        let durable = if sync && self.has_seen_more() { self.wait_seen() } else { Ok(()) };
        self.unlock_tables();
        self.reset();
        durable
    }

    pub(super) fn make_room_to_commit(&self) -> Result<(), Error> {
        self.engine.store().wal().ensure(END_BYTES)?;
        stop::fault("txn.commit.room").during("making room for a commit")?;
        Ok(())
    }

    fn commit_changes(&self, txid: u64, sync: bool) -> Result<(), Error> {
        let wal = self.engine.store().wal();
        self.make_room_to_commit()?;
        stop::point("txn.commit.before_append");
        let lsn = wal.append_commit(txid, self.last_lsn.get(), |lsn| {
            self.engine.status.set(txid, Status::Committed(lsn));
        });
        stop::point("txn.commit.appended");
        self.slot().end_logging();
        self.depend_on_commit(lsn);
        self.release_rows();
        if sync {
            // Masked: the commit stands, whatever the client asks for meanwhile.
            interrupt::mask(|| wal.wait_durable(lsn))?;
            stop::point("txn.commit.before_publish");
            self.engine.publish(wal.durable());
        } else {
            // Waits for other cores' unfinished copies into the log: a session that hears of this
            // commit must find it in new snapshots.
            self.engine.publish_filled(lsn);
            wal.request_flush();
        }
        Ok(())
    }

    /// Ends a transaction that has a number and changed nothing.
    fn finish_without_changes(&self, txid: u64) {
        self.engine.status.set(txid, Status::Aborted(Lsn::ZERO));
        self.slot().end_logging();
        self.release_rows();
    }

    /// Waits until everything this session has seen is on disk.
    #[cold]
    pub(super) fn wait_seen(&self) -> Result<(), Error> {
        let wal = self.engine.store().wal();
        let seen = self.seen.get();
        if seen > wal.durable() {
            interrupt::mask(|| wal.wait_durable(seen))?;
            self.engine.publish(wal.durable());
        }
        Ok(())
    }

    /// Gives the row locks up, and wakes the sessions that wait for this transaction.
    fn release_rows(&self) {
        self.release_rows_after(0);
        self.engine.slots.wake_end_waiters(self.number.get());
    }

    fn release_rows_after(&self, keep: usize) {
        let mut held = self.held.borrow_mut();
        for (tag, mode) in held.drain(keep..) {
            if self.ends_hold(&tag, mode) {
                let modes = (self.number.get(), 1 << mode);
                self.engine.locks.release_modes(tag.as_ref(), modes, self.known(), &self.engine.slots);
                // Releasing a million locks takes 0.1 s.
                runtime::work::yield_after(RELEASE_WORK);
            }
        }
        if keep == 0 {
            held.shrink_to(KEPT);
        }
    }

    /// Clears the transaction's state.
    pub(super) fn reset(&self) {
        self.open.set(false);
        self.txid.set(0);
        self.slot().set_txid(0);
        #[cfg(variants)]
        self.engine.slots.listed.end(self.number.get(), &self.listed);
        self.last_undo.set(UndoPointer::NONE);
        self.last_lsn.set(Lsn::ZERO);
        let mut savepoints = self.savepoints.borrow_mut();
        savepoints.clear();
        savepoints.shrink_to(KEPT);
        drop(savepoints);
        self.pins.borrow_mut().clear();
        self.has_snapshot.set(false);
        self.snapshot.set(Snapshot::NONE);
        self.slot().floor.clear();
    }

    pub(super) fn rollback(&self) -> Result<(), Error> {
        self.rollback_but(&[])
    }

    /// Rolls back everything but the changes to these trees, which are dropped with the
    /// transaction. `dropped` is sorted.
    pub(super) fn rollback_but(&self, dropped: &[u32]) -> Result<(), Error> {
        let txid = self.txid.get();
        if txid != 0 && self.last_lsn.get() == Lsn::ZERO {
            self.finish_without_changes(txid);
        } else if txid != 0 {
            interrupt::mask(|| {
                self.undo_until(UndoPointer::NONE, dropped, || false)?;
                self.append_abort(txid)
            })?;
        }
        self.release_rows();
        self.unlock_tables();
        self.reset();
        Ok(())
    }

    /// Takes changes back until `is_enough`. Returns whether more are left.
    pub(super) fn begin_rollback(&self, is_enough: impl Fn() -> bool) -> Result<bool, Error> {
        if self.txid.get() != 0 && self.last_lsn.get() != Lsn::ZERO {
            interrupt::mask(|| self.undo_until(UndoPointer::NONE, &[], is_enough))?;
        }
        Ok(self.last_undo.get() != UndoPointer::NONE)
    }

    fn append_abort(&self, txid: u64) -> Result<(), Error> {
        let wal = self.engine.store().wal();
        self.persist("making room for the end of a rollback", || wal.ensure_reserved(END_BYTES))?;
        let lsn = wal.append_abort(txid, self.last_lsn.get());
        // Stored after the record's number could be in a snapshot. Such a snapshot sees a running
        // transaction whose changes are all taken back, which has the same effect.
        self.engine.status.set(txid, Status::Aborted(lsn));
        self.slot().end_logging();
        wal.request_flush();
        Ok(())
    }

    /// Puts back what the transaction did since `target` to trees that are not dropped, or until
    /// `is_enough`. Fails only if the engine is closed: recovery then does the rest.
    fn undo_until(
        &self,
        target: UndoPointer,
        dropped: &[u32],
        is_enough: impl Fn() -> bool,
    ) -> Result<(), Error> {
        let (mut bytes, mut value) = (self.scratch.take(), Vec::new());
        while self.last_undo.get() != target && !is_enough() {
            stop::point("txn.rollback.step");
            let store = self.engine.store();
            self.persist("reading undo", || undo::read(store, self.last_undo.get(), &mut bytes))?;
            let record = Record::parse(&bytes).filter(|record| record.txid == self.txid.get());
            let Some(record) = record else { fatal(format_args!("an undo record is damaged")) };
            if dropped.binary_search(&record.tree.id).is_err() {
                self.persist("taking a change back", || self.put_back(store, &record, &mut value))?;
            }
            self.last_undo.set(record.previous);
            fiber::safe_point();
        }
        self.scratch.replace(bytes);
        Ok(())
    }

    fn put_back(
        &self,
        store: &Store,
        record: &Record<'_>,
        value: &mut Vec<u8>,
    ) -> Result<(), storage::Error> {
        let before = record.version.map_or(Before::Nothing, Before::Whole);
        let ends = (self.last_lsn.get(), record.previous_lsn);
        let last = restore::restore(store, &record.tree, record.key, before, record.txid, ends, value)?;
        self.last_lsn.set(last);
        Ok(())
    }

    pub(super) fn savepoint(&self) -> SavepointId {
        let id = SavepointId(self.savepoints_made.get());
        self.savepoints_made.set(id.0 + 1);
        if self.savepoints.borrow().is_empty() {
            self.raised.borrow_mut().clear();
        }
        let savepoint = Savepoint {
            id,
            undo: self.last_undo.get(),
            rows: self.held.borrow().len(),
            tables: self.tables.borrow().len(),
            raised: self.raised.borrow().len(),
        };
        self.savepoints.borrow_mut().push(savepoint);
        id
    }

    fn find_savepoint(&self, id: SavepointId) -> Result<(usize, Savepoint), Error> {
        let savepoints = self.savepoints.borrow();
        let at = savepoints.iter().rposition(|savepoint| savepoint.id == id).ok_or(Error::NoSuchSavepoint)?;
        Ok((at, savepoints[at]))
    }

    pub(super) fn rollback_to(&self, id: SavepointId) -> Result<(), Error> {
        let (at, savepoint) = self.find_savepoint(id)?;
        self.savepoints.borrow_mut().truncate(at + 1);
        let changed = self.last_undo.get() != savepoint.undo;
        if changed {
            interrupt::mask(|| self.undo_until(savepoint.undo, &[], || false))?;
        }
        self.release_rows_after(savepoint.rows);
        if changed {
            // Rows that others wait for may be free again, so the waiters look anew.
            self.engine.slots.wake_end_waiters(self.number.get());
        }
        let raised = self.raised.borrow_mut().split_off(savepoint.raised);
        raised.into_iter().for_each(|(table, lock)| self.unlock_mode(table, lock));
        self.unlock_tables_after(savepoint.tables);
        Ok(())
    }

    pub(super) fn release(&self, id: SavepointId) -> Result<(), Error> {
        let (at, _) = self.find_savepoint(id)?;
        self.savepoints.borrow_mut().truncate(at);
        Ok(())
    }

    /// Takes back what a dropped session leaves. The session may have been dropped on its own core
    /// or another, on a worker of another folder's runtime, or on no worker. The work happens on
    /// its own core or not at all. Once that core's worker has ended, the session is only freed,
    /// and recovery takes the transaction back.
    pub(super) fn abandon(self) {
        let runtime = Arc::clone(self.engine.store().runtime());
        if runtime.core_here() != Some(self.home.get()) {
            return runtime.spawn(self.home.get(), move || self.leave());
        }
        let idle = self.txid.get() == 0 && self.held.borrow().is_empty() && self.tables.borrow().is_empty();
        match idle {
            true => self.leave(),
            // On a fiber of its own: the code that drops a session may not park.
            false => fiber::spawn_local(move || self.leave()),
        }
    }

    /// Takes the transaction back and gives the slot up. Parks, unless there is nothing to take
    /// back. If the engine is closed, the slot stays taken, so that no other session meets the
    /// transaction left in it.
    pub(super) fn leave(self) {
        if self.rollback().is_ok() {
            self.unlock_all_advisory();
            self.engine.slots.free(self.number.get());
            self.say_farewell();
        }
    }

    fn say_farewell(&self) {
        if let Some(farewell) = self.farewell.take() {
            farewell();
        }
    }

    /// Repeats work that must be done. It retries a lack of space without limit, and other failures
    /// a limited number of times. It stops when the engine is closed: nothing more may be written,
    /// and frames would never come free.
    fn persist(&self, what: &str, mut work: impl FnMut() -> Result<(), storage::Error>) -> Result<(), Error> {
        let mut backoff = Backoff::new("disk space to take changes back");
        let mut retries = RETRIES;
        loop {
            if self.engine.is_closed() {
                return Err(Error::Interrupted(Interrupted(Reason::Shutdown)));
            }
            match work() {
                Ok(()) => return Ok(()),
                Err(error @ storage::Error::DiskFull(_)) => backoff.pause(&error),
                Err(error @ (storage::Error::Corrupt { .. } | storage::Error::Format(_))) => {
                    fatal(format_args!("{what}: {error}"));
                }
                Err(error) if retries == 0 => fatal(format_args!("{what}: {error}")),
                Err(_) => {
                    retries -= 1;
                    fiber::sleep(RETRY_AFTER);
                }
            }
        }
    }
}

/// Ends the process: a rollback that cannot go on leaves rows that nobody may touch. Recovery puts
/// them back.
fn fatal(why: std::fmt::Arguments<'_>) -> ! {
    fail_stop(Cause::Disk, format_args!("changes cannot be taken back ({why})"))
}
