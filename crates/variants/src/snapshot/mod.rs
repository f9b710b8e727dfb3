//! Row `snapshot` (P15): what a reader notes so that it sees one moment of the database.
//!
//! P15 found the copy of the list of running transactions to be the profile's next leader once pins
//! are cheap, and left it open. [`ListSnapshots`] is the stock state, PostgreSQL's
//! `GetSnapshotData`. [`NumberSnapshots`] is the fix, as in engines that number their commits: a
//! snapshot is one load.

mod list;
mod number;

pub use list::{List, ListSnapshots};
pub use number::NumberSnapshots;

use crate::caller::Caller;

/// Transactions and the snapshots of them. Each thread runs one transaction at a time.
pub trait Snapshots: Sync {
    /// The moment that a reader notes.
    type Snapshot: Default + Send;
    /// Begins a transaction of this thread. Returns its number; numbers rise from 1.
    fn begin(&self, me: &mut Caller) -> u64;
    /// Commits this thread's transaction.
    fn commit(&self, me: &mut Caller, transaction: u64);
    /// Takes a snapshot, over the one taken last.
    fn take(&self, me: &mut Caller, snapshot: &mut Self::Snapshot);
    /// Whether the snapshot includes a transaction: it was committed when the snapshot was taken.
    fn sees(&self, snapshot: &Self::Snapshot, transaction: u64) -> bool;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::test_threads::{ROUNDS, THREADS, at_once};

    /// Each transaction follows the newest one whose commit its thread knows of. A snapshot that
    /// sees it must see that one too, and never one that runs.
    fn sees_moments<S: Snapshots>(snapshots: &S) {
        // A transaction's predecessor, by number.
        let count = THREADS * ROUNDS as usize + 2;
        let follows: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let (newest, begun) = (AtomicU64::new(0), AtomicU64::new(0));
        at_once(|me| {
            let mut snapshot = S::Snapshot::default();
            for _ in 0..ROUNDS {
                let before = newest.load(Ordering::Acquire);
                let own = snapshots.begin(me);
                follows[own as usize].store(before, Ordering::Release);
                begun.fetch_max(own, Ordering::AcqRel);
                snapshots.take(me, &mut snapshot);
                assert!(!snapshots.sees(&snapshot, own), "a running transaction is not seen");
                let last = begun.load(Ordering::Acquire);
                for transaction in last.saturating_sub(3).max(1)..=last {
                    let earlier = follows[transaction as usize].load(Ordering::Acquire);
                    if earlier > 0 && snapshots.sees(&snapshot, transaction) {
                        assert!(snapshots.sees(&snapshot, earlier), "{transaction} without {earlier}");
                    }
                }
                snapshots.commit(me, own);
                snapshots.take(me, &mut snapshot);
                assert!(snapshots.sees(&snapshot, own), "a thread sees its own commit");
                newest.fetch_max(own, Ordering::AcqRel);
            }
        });
    }

    #[test]
    fn snapshots_of_more_threads_than_cores_show_moments() {
        sees_moments(&ListSnapshots::new(THREADS));
        sees_moments(&NumberSnapshots::new(1 << 20));
    }

    fn sees_committed<S: Snapshots>(snapshots: &S) {
        let (mut one, mut other) = (Caller::new(0), Caller::new(1));
        let (first, second) = (snapshots.begin(&mut one), snapshots.begin(&mut other));
        snapshots.commit(&mut other, second);
        let mut snapshot = S::Snapshot::default();
        snapshots.take(&mut one, &mut snapshot);
        snapshots.commit(&mut one, first);
        let third = snapshots.begin(&mut one);
        let seen = [first, second, third].map(|transaction| snapshots.sees(&snapshot, transaction));
        assert_eq!(seen, [false, true, false]);
    }

    #[test]
    fn a_snapshot_sees_what_was_committed_when_it_was_taken() {
        sees_committed(&ListSnapshots::new(2));
        let list = ListSnapshots::for_threads_to_come(1000);
        (0..2).for_each(|number| list.enter(&mut Caller::new(number)));
        sees_committed(&list);
        sees_committed(&NumberSnapshots::new(64));
    }
}
