//! The stock snapshot: a copy of the list of running transactions under a shared lock (PostgreSQL
//! 9.5, `GetSnapshotData` and `ProcArrayEndTransaction`).
//!
//! 1. A transaction draws its number and enters it at its thread's place, under the exclusive lock.
//! 2. A commit clears the place under the exclusive lock, and raises the highest number that has
//!    ended.
//! 3. A snapshot copies every place under the shared lock, and notes the highest number that has
//!    ended. It sees a transaction up to that number that is not in the copy.
//!
//! What must hold: places and the highest number change under the exclusive lock, so a copy is of
//! one moment. The lock is [`ExchangeLatch`], LWLock of the same version. PostgreSQL also draws
//! numbers under another lock; one lock is milder.
//!
//! Cost in line transfers: 2 for the lock, and 1 for each place that has changed since this core's
//! last snapshot. There is a load for each place up to the highest that a thread has. A commit
//! costs 2 for the lock and waits for all snapshots under way.

use sync::CachePadded;
use sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::Snapshots;
use crate::caller::Caller;
use crate::latch::{ExchangeLatch, HeldLatch, Latch};

/// No transaction.
const NONE: u64 = 0;

/// Transactions by thread.
#[derive(Debug)]
pub struct ListSnapshots {
    lock: ExchangeLatch,
    places: Box<[CachePadded<AtomicU64>]>,
    numbers: CachePadded<Numbers>,
}

#[derive(Debug)]
struct Numbers {
    /// Places that a snapshot looks at.
    used: AtomicUsize,
    begun: AtomicU64,
    /// The highest number that has ended.
    ended: AtomicU64,
}

/// A copy of the list of running transactions.
#[derive(Debug, Default)]
pub struct List {
    ended: u64,
    running: Vec<u64>,
}

impl ListSnapshots {
    /// No transactions yet, for threads numbered below `threads`, which are all there.
    pub fn new(threads: usize) -> Self {
        Self::with_places(threads, threads)
    }

    /// No transactions yet, for threads numbered below `threads`, of which none is there.
    pub fn for_threads_to_come(threads: usize) -> Self {
        Self::with_places(threads, 0)
    }

    fn with_places(threads: usize, used: usize) -> Self {
        let (used, begun, ended) = (AtomicUsize::new(used), AtomicU64::new(0), AtomicU64::new(0));
        Self {
            lock: ExchangeLatch::new(threads),
            places: (0..threads).map(|_| CachePadded::new(AtomicU64::new(NONE))).collect(),
            numbers: CachePadded::new(Numbers { used, begun, ended }),
        }
    }

    /// Enters a thread that has come. Snapshots look at the places of all threads numbered up to
    /// the highest that ever came.
    pub fn enter(&self, me: &mut Caller) {
        let used = me.number() + 1;
        // Relaxed: ordered by the lock.
        self.lock.write(me, || self.numbers.used.fetch_max(used, Ordering::Relaxed));
    }
}

impl Snapshots for ListSnapshots {
    type Snapshot = List;

    fn begin(&self, me: &mut Caller) -> u64 {
        let place = &self.places[me.number()];
        self.lock.write(me, || {
            // Relaxed, here and below: ordered by the lock.
            let number = self.numbers.begun.load(Ordering::Relaxed) + 1;
            self.numbers.begun.store(number, Ordering::Relaxed);
            place.store(number, Ordering::Relaxed);
            number
        })
    }

    fn commit(&self, me: &mut Caller, transaction: u64) {
        let place = &self.places[me.number()];
        self.lock.write(me, || {
            place.store(NONE, Ordering::Relaxed);
            let ended = self.numbers.ended.load(Ordering::Relaxed);
            self.numbers.ended.store(ended.max(transaction), Ordering::Relaxed);
        });
    }

    #[inline]
    fn take(&self, me: &mut Caller, snapshot: &mut List) {
        self.lock.read(me, || {
            snapshot.ended = self.numbers.ended.load(Ordering::Relaxed);
            snapshot.running.clear();
            let used = self.numbers.used.load(Ordering::Relaxed);
            let running = self.places[..used].iter().map(|place| place.load(Ordering::Relaxed));
            snapshot.running.extend(running.filter(|number| *number != NONE));
        });
    }

    #[inline]
    fn sees(&self, snapshot: &List, transaction: u64) -> bool {
        transaction <= snapshot.ended && !snapshot.running.contains(&transaction)
    }
}
