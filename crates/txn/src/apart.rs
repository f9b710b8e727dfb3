//! Snapshots apart from a store, so that `mechanisms` measures the engine's own types and no copies
//! of them.
//!
//! Transaction numbers, the table of outcomes, announcements and the decision about a writer are
//! the engine's. Two parts of it are missing here. There is no log: a spin lock gives commits their
//! order and their numbers. And the horizon stands still, so each look at a writer reads its
//! outcome. What must hold: one thread at a time uses a session's number, which is its core's, too.

use storage::Lsn;
use sync::atomic::{AtomicU64, Ordering};
use sync::{CachePadded, SpinLock};

use crate::Error;
use crate::announce::SessionFloor;
use crate::snapshot::Snapshot;
use crate::status::{Status, StatusTable};
use crate::txid::Txids;
use crate::version::{Stamp, UndoPointer};
use crate::visibility::{self, Writer};

/// Transactions of some sessions, and their snapshots.
pub struct Snapshots {
    status: StatusTable,
    txids: Txids,
    floors: Box<[CachePadded<SessionFloor>]>,
    horizon: CachePadded<AtomicU64>,
    published: CachePadded<AtomicU64>,
    /// The last commit's number, in place of the log's end.
    log: CachePadded<SpinLock<u64>>,
}

impl Snapshots {
    /// No transactions yet, for so many sessions.
    ///
    /// # Errors
    /// The system has no address space for outcomes.
    pub fn new(sessions: usize) -> Result<Self, Error> {
        let txids = Txids::new(1, sessions);
        Ok(Self {
            status: StatusTable::new()?,
            floors: (0..sessions).map(|_| CachePadded::new(SessionFloor::new())).collect(),
            horizon: CachePadded::new(AtomicU64::new(txids.end())),
            txids,
            published: CachePadded::default(),
            log: CachePadded::new(SpinLock::new(&"log of snapshots", 0)),
        })
    }

    /// Begins a transaction of a session. Returns its number.
    ///
    /// # Errors
    /// The table of outcomes is full: a billion transactions have begun.
    pub fn begin(&self, session: usize) -> Result<u64, Error> {
        // Relaxed: nothing moves the horizon.
        let txid = self.txids.assign(session, self.horizon.load(Ordering::Relaxed))?;
        self.status.set(txid, Status::Running(session as u32));
        Ok(txid)
    }

    /// Commits a transaction.
    pub fn commit(&self, txid: u64) {
        let mut last = self.log.lock();
        *last += 1;
        self.status.set(txid, Status::Committed(Lsn(*last)));
        // Release: readers of the position see the outcomes stored before.
        self.published.store(*last, Ordering::Release);
    }

    /// Takes and announces a session's snapshot, which is over when it takes the next one.
    #[inline]
    pub fn take(&self, session: usize) -> Snapshot {
        // Acquire, both: as the engine loads them.
        let csn = Lsn(self.published.load(Ordering::Acquire));
        let horizon = self.horizon.load(Ordering::Acquire);
        self.floors[session].announce(csn.0);
        Snapshot { csn, durable: csn, horizon, ..Snapshot::NONE }
    }

    /// Whether a snapshot includes a transaction.
    #[inline]
    pub fn sees(&self, snapshot: &Snapshot, txid: u64) -> bool {
        let stamp = Stamp { txid, undo: UndoPointer::NONE, command: 0, keys: false, deleted: false };
        let mut depends = Lsn::ZERO;
        visibility::writer(&stamp, snapshot, &self.status, &mut depends) == Writer::Seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_includes_the_commits_before_it() {
        let snapshots = Snapshots::new(2).unwrap();
        let [first, second] = [0, 1].map(|session| snapshots.begin(session).unwrap());
        snapshots.commit(second);
        let snapshot = snapshots.take(0);
        snapshots.commit(first);
        let third = snapshots.begin(0).unwrap();
        let seen = [first, second, third].map(|txid| snapshots.sees(&snapshot, txid));
        assert_eq!(seen, [false, true, false]);
        assert!(snapshots.sees(&snapshots.take(1), first));
    }
}
