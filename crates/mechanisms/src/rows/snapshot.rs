//! Row `snapshot`: readers take snapshots while one operation in eight is a transaction.
//!
//! P15 left the fix open. Engines that number their commits load one word, the step of this row.
//! The engine's own snapshots load as much, announce themselves, and decide by its table of
//! outcomes. Its log is missing here: a spin lock gives commits their order, as in the step.

use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use txn::{Snapshot, apart};
use variants::caller::Caller;
use variants::snapshot::{ListSnapshots, NumberSnapshots, Snapshots};

use super::{Arm, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// One operation in so many is a transaction.
const WRITE: u64 = 8;
/// Steps between two operations, some 150 ns.
const OUTSIDE: u32 = 75;
/// Outcomes kept: those of about a second.
const KEPT: usize = 1 << 20;

/// The row.
pub(super) const ROW: Row = Row {
    id: "snapshot",
    report: "P15",
    about: "snapshots: a copy of the list of running transactions under a lock, against one load",
    operation: "take a snapshot and look at the newest commit; 1 in 8 begins, takes one and commits",
    needs: None,
    code: "crates/variants/src/snapshot",
    arms: &[
        Arm { name: "list", part: Part::Stock, start: |threads| moments(ListSnapshots::new(threads)) },
        Arm { name: "one load", part: Part::Step, start: |_| moments(NumberSnapshots::new(KEPT)) },
        Arm { name: "Snapshot", part: Part::Allcore, start: |threads| moments(Own::new(threads)?) },
    ],
};

/// The engine's, with a session for each thread.
struct Own(apart::Snapshots);

impl Own {
    fn new(threads: usize) -> Result<Self, String> {
        apart::Snapshots::new(threads).map(Self).map_err(|error| format!("no table of outcomes: {error}"))
    }
}

impl Snapshots for Own {
    type Snapshot = Option<Snapshot>;

    fn begin(&self, me: &mut Caller) -> u64 {
        self.0.begin(me.number()).expect("a round has fewer transactions than the table")
    }

    fn commit(&self, _: &mut Caller, transaction: u64) {
        self.0.commit(transaction);
    }

    #[inline]
    fn take(&self, me: &mut Caller, snapshot: &mut Self::Snapshot) {
        *snapshot = Some(self.0.take(me.number()));
    }

    #[inline]
    fn sees(&self, snapshot: &Self::Snapshot, transaction: u64) -> bool {
        snapshot.as_ref().is_some_and(|snapshot| self.0.sees(snapshot, transaction))
    }
}

fn moments(snapshots: impl Snapshots + 'static) -> Started {
    Ok(Box::new(Moments { snapshots, newest: Default::default(), is_wrong: AtomicBool::new(false) }))
}

#[derive(Debug)]
struct Moments<S> {
    snapshots: S,
    /// A transaction that has committed.
    newest: CachePadded<AtomicU64>,
    is_wrong: AtomicBool,
}

impl<S: Snapshots> Subject for Moments<S> {
    fn work(&self, worker: &mut Worker<'_>) {
        let (mut snapshot, mut count) = (S::Snapshot::default(), 0u64);
        worker.repeat(|me| {
            count += 1;
            let right = if count.is_multiple_of(WRITE) {
                let own = self.snapshots.begin(me);
                self.snapshots.take(me, &mut snapshot);
                let right = !self.snapshots.sees(&snapshot, own);
                self.snapshots.commit(me, own);
                // Release: a thread that knows of the commit takes its snapshot behind it.
                self.newest.store(own, Ordering::Release);
                right
            } else {
                // Acquire: as above.
                let newest = self.newest.load(Ordering::Acquire);
                self.snapshots.take(me, &mut snapshot);
                let is_seen = newest == 0 || self.snapshots.sees(&snapshot, newest);
                // A thread that lost its processor for long asks for an outcome kept no more.
                // Relaxed: a bound.
                is_seen || self.newest.load(Ordering::Relaxed) > newest + KEPT as u64 / 2
            };
            if !right {
                // Relaxed: read after the threads' end.
                self.is_wrong.store(true, Ordering::Relaxed);
            }
            compute(OUTSIDE);
        });
    }

    fn check(&self, _: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        match self.is_wrong.load(Ordering::Relaxed) {
            true => Err("a snapshot lacks a commit before it, or has a transaction that runs".into()),
            false => Ok(()),
        }
    }
}
