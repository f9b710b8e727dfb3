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
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::test_threads::{at_once, rounds, threads};

    /// Each transaction follows the newest one whose commit its thread knows of. A snapshot that
    /// sees it must see that one too, and never one that runs.
    fn sees_moments<S: Snapshots>(snapshots: &S) {
        // A transaction's predecessor, by number.
        let count = threads() * rounds() as usize + 2;
        let follows: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
        let (newest, begun) = (AtomicU64::new(0), AtomicU64::new(0));
        at_once(|me| {
            let mut snapshot = S::Snapshot::default();
            for _ in 0..rounds() {
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
        sees_moments(&ListSnapshots::new(threads()));
        sees_moments(&NumberSnapshots::new(1 << 20));
    }

    /// A step of one of the threads.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        /// It commits if it has a transaction, and begins one otherwise.
        Go,
        /// It takes a snapshot over the one in this place.
        Take(usize),
    }

    /// Threads by number, 0 to 3, with their steps.
    fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
        let step = prop_oneof![3 => Just(Step::Go), 2 => (0usize..3).prop_map(Step::Take)];
        prop::collection::vec((0usize..4, step), 0..80)
    }

    /// Plays the steps, and keeps for each snapshot the set of transactions committed before it.
    fn shows_sets<S: Snapshots>(snapshots: &S, steps: &[(usize, Step)]) -> Result<(), TestCaseError> {
        let (mut running, mut begun) = ([None; 4], 0);
        let mut committed = BTreeSet::new();
        let mut taken: [(S::Snapshot, BTreeSet<u64>); 3] = Default::default();
        for &(thread, step) in steps {
            let me = &mut Caller::new(thread);
            match step {
                Step::Go => match running[thread].take() {
                    Some(own) => {
                        snapshots.commit(me, own);
                        committed.insert(own);
                    }
                    None => {
                        begun += 1;
                        prop_assert_eq!(snapshots.begin(me), begun, "numbers rise from 1");
                        running[thread] = Some(begun);
                    }
                },
                Step::Take(place) => {
                    snapshots.take(me, &mut taken[place].0);
                    taken[place].1.clone_from(&committed);
                }
            }
            for (snapshot, expected) in &taken {
                let seen: BTreeSet<u64> =
                    (1..=begun).filter(|transaction| snapshots.sees(snapshot, *transaction)).collect();
                prop_assert_eq!(&seen, expected);
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_snapshot_sees_the_set_of_commits_before_it_and_keeps_it(steps in steps()) {
            shows_sets(&ListSnapshots::new(4), &steps)?;
            shows_sets(&NumberSnapshots::new(100), &steps)?;
        }
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
