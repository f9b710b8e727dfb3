//! The fix: a snapshot is the number of the last commit, taken by one load.
//!
//! 1. A transaction draws its number with one add.
//! 2. A commit takes a spin lock for a few instructions. It stores its commit number, one more than
//!    the last, as the transaction's outcome, and then publishes it as the last.
//! 3. A snapshot loads the last commit number. It sees a transaction whose outcome is at most that
//!    number.
//!
//! What must hold: an outcome is stored before its number is published, and numbers are published
//! in order. So a reader finds every transaction committed that its snapshot includes. Outcomes lie
//! in a ring. A reader asks for a transaction before a later one takes its place there.
//!
//! Orderings: publishing releases the outcome, taking a snapshot acquires it.
//!
//! Cost in line transfers: 1 for a snapshot if a commit came since this core's last one, 0
//! otherwise. A commit costs 3: the lock, the outcome, and the last number, of which readers have
//! copies. A look at an outcome costs 1 for the first look since the commit.

use sync::CachePadded;
use sync::atomic::{AtomicU64, Ordering};

use super::Snapshots;
use crate::caller::Caller;
use crate::spin::Word;

/// Outcome of a transaction that runs.
const RUNNING: u64 = 0;

/// Transactions whose commits have numbers.
#[derive(Debug)]
pub struct NumberSnapshots {
    begun: CachePadded<AtomicU64>,
    committing: CachePadded<Word>,
    last: CachePadded<AtomicU64>,
    /// Commit numbers by transaction, modulo the ring's length.
    outcomes: Box<[AtomicU64]>,
}

impl NumberSnapshots {
    /// No transactions yet. The outcomes of the last `kept` are kept.
    pub fn new(kept: usize) -> Self {
        Self {
            begun: CachePadded::new(AtomicU64::new(0)),
            committing: CachePadded::default(),
            last: CachePadded::new(AtomicU64::new(0)),
            outcomes: (0..kept.max(1)).map(|_| AtomicU64::new(RUNNING)).collect(),
        }
    }

    #[inline]
    fn outcome(&self, transaction: u64) -> &AtomicU64 {
        &self.outcomes[transaction as usize % self.outcomes.len()]
    }
}

impl Snapshots for NumberSnapshots {
    type Snapshot = u64;

    fn begin(&self, _: &mut Caller) -> u64 {
        // Relaxed, both: the number is drawn once, and no snapshot includes it before its commit.
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        self.outcome(number).store(RUNNING, Ordering::Relaxed);
        number
    }

    fn commit(&self, me: &mut Caller, transaction: u64) {
        let _held = self.committing.lock(me, &"commits");
        // Relaxed, both: under the lock; published by the store below.
        let number = self.last.load(Ordering::Relaxed) + 1;
        self.outcome(transaction).store(number, Ordering::Relaxed);
        // Release: a snapshot that includes the number finds the outcome.
        self.last.store(number, Ordering::Release);
    }

    #[inline]
    fn take(&self, _: &mut Caller, snapshot: &mut u64) {
        // Acquire: the outcomes of all commits up to this one are seen.
        *snapshot = self.last.load(Ordering::Acquire);
    }

    #[inline]
    fn sees(&self, snapshot: &u64, transaction: u64) -> bool {
        // Relaxed: an outcome that the snapshot includes was acquired with it.
        (RUNNING + 1..=*snapshot).contains(&self.outcome(transaction).load(Ordering::Relaxed))
    }
}
