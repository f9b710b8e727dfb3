//! A session's snapshot, the snapshots of its portals, and the commits on which it depends.
//!
//! What must hold:
//!
//! 1. Nothing suspends between the load of a snapshot's numbers and its announcement
//!    ([`crate::announce`]).
//! 2. The announcement is the oldest snapshot in use, that of the statement and those of portals.
//!    It is withdrawn only when there is none.
//! 3. A new snapshot includes every commit that the session has seen or heard of. So a session that
//!    gets a lock sees the work of its former holder.
//! 4. Each statement has a higher command number than the one before, and sees the changes of lower
//!    numbers.
//! 5. `seen` never goes back. The session shows nothing before the log is on disk up to there.

use storage::Lsn;

use super::{Inner, Isolation};
use crate::Snapshot;
use crate::status::Status;
use crate::version::MAX_COMMAND;

impl Inner {
    pub(super) fn statement_start(&self) {
        debug_assert!(self.open.get(), "a statement runs in a transaction");
        self.next_command();
        if self.isolation.get() == Isolation::ReadCommitted || !self.has_snapshot.get() {
            self.take_snapshot();
        }
    }

    /// Takes and announces a new snapshot. Nothing here suspends between the load of the commit
    /// number and the announcement ([`crate::announce`]). Nothing suspends before the load of the
    /// horizon either, so the horizon does not pass the snapshot.
    pub(super) fn take_snapshot(&self) {
        let known = self.known();
        if known > self.engine.published() {
            self.wait_filled(known);
        }
        #[cfg(variants)]
        self.engine.slots.listed.copy(self.number.get(), &self.listed);
        let csn = self.engine.published().max(known);
        self.has_snapshot.set(true);
        let snapshot = Snapshot {
            csn,
            // No more than the snapshot includes, since the log's end moves before it is published.
            // A commit in between is newer than the snapshot, and the session may come to depend on
            // it.
            durable: self.engine.store().wal().durable().min(csn),
            horizon: self.engine.horizon(),
            txid: self.txid.get(),
            command: self.command.get(),
        };
        self.snapshot.set(snapshot);
        self.announce();
    }

    /// Announces the oldest snapshot in use, or withdraws the announcement.
    pub(super) fn announce(&self) {
        let own = self.has_snapshot.get().then(|| self.snapshot.get().csn);
        let pins = self.pins.borrow();
        match pins.iter().copied().chain(own).min() {
            Some(oldest) => self.slot().floor.announce(oldest.0),
            None => self.slot().floor.clear(),
        }
    }

    pub(super) fn statement_end(&self) {
        if self.isolation.get() == Isolation::ReadCommitted && self.has_snapshot.replace(false) {
            self.announce();
        }
    }

    pub(super) fn next_command(&self) {
        let command = self.command.get();
        debug_assert!(command < MAX_COMMAND);
        self.command.set((command + 1).min(MAX_COMMAND));
        let mut snapshot = self.snapshot.get();
        snapshot.command = self.command.get();
        self.snapshot.set(snapshot);
    }

    pub(super) fn pin(&self) -> Snapshot {
        let snapshot = self.snapshot.get();
        self.pins.borrow_mut().push(snapshot.csn);
        self.announce();
        snapshot
    }

    pub(super) fn unpin(&self, snapshot: &Snapshot) {
        let mut pins = self.pins.borrow_mut();
        if let Some(at) = pins.iter().rposition(|&csn| csn == snapshot.csn) {
            pins.swap_remove(at);
        }
        drop(pins);
        self.announce();
    }

    pub(super) fn swap_snapshot(&self, snapshot: Snapshot) -> Snapshot {
        let before = self.snapshot.replace(snapshot);
        self.has_snapshot.set(true);
        self.announce();
        before
    }

    /// Whether `writer` committed after the snapshot.
    pub(super) fn committed_later(&self, writer: u64) -> bool {
        let snapshot = self.snapshot.get();
        writer >= snapshot.horizon
            && matches!(self.engine.status.get(writer), Status::Committed(lsn) if lsn > snapshot.csn)
    }

    /// Makes the session depend on `writer`'s commit, which may not be on disk.
    pub(super) fn depend_on(&self, writer: u64) {
        let snapshot = self.snapshot.get();
        if writer >= snapshot.horizon
            && let Status::Committed(lsn) = self.engine.status.get(writer)
            && lsn > snapshot.durable
        {
            self.depend_on_commit(lsn);
        }
    }

    /// Whether the session may have seen more than what is on disk, without a look at what others
    /// write.
    #[inline]
    pub(super) fn has_seen_more(&self) -> bool {
        self.seen.get() > self.snapshot.get().durable
    }

    /// Notes a commit that the former holder of a lock knew.
    #[inline]
    pub(super) fn hear(&self, lsn: Lsn) {
        if lsn > self.heard.get() {
            self.heard.set(lsn);
        }
    }

    #[inline]
    pub(super) fn depend_on_commit(&self, lsn: Lsn) {
        if lsn > self.seen.get() {
            self.seen.set(lsn);
        }
    }
}
