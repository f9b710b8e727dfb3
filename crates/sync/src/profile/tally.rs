//! The counts of one place on one thread: a cache line that this thread alone writes.
//!
//! What must hold: a reader that wants an epoch gets counts of that epoch alone, all from after the
//! last reset. The writer clears the line before it counts in a new epoch: it takes the line's
//! epoch away, clears, and sets the new one. A reader looks at the epoch before and after.
//!
//! `tests/loom_tally.rs` runs this file under loom.

use crate::atomic::{AtomicU64, Ordering, fence};

/// An epoch in which nothing counts: that of a line not yet used, or being cleared.
const NONE: u64 = 0;

/// The counts of one place on one thread.
#[repr(align(64))]
#[derive(Debug)]
pub(crate) struct Tally {
    epoch: AtomicU64,
    count: AtomicU64,
    hold_total: AtomicU64,
    hold_max: AtomicU64,
    wait_total: AtomicU64,
    wait_max: AtomicU64,
    contended_hold: AtomicU64,
    contended_wait: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Tally>() == 64);

/// Adds to a count that this thread alone writes.
fn add(count: &AtomicU64, amount: u64) {
    // Relaxed: one writer, and a reader orders by the epoch.
    count.store(count.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

/// Raises a maximum that this thread alone writes.
fn raise(most: &AtomicU64, value: u64) {
    // Relaxed: as in `add`.
    if most.load(Ordering::Relaxed) < value {
        most.store(value, Ordering::Relaxed); // Relaxed: as above
    }
}

impl Tally {
    /// Nothing counted.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Tally {
        Tally {
            epoch: AtomicU64::new(NONE),
            count: AtomicU64::new(0),
            hold_total: AtomicU64::new(0),
            hold_max: AtomicU64::new(0),
            wait_total: AtomicU64::new(0),
            wait_max: AtomicU64::new(0),
            contended_hold: AtomicU64::new(0),
            contended_wait: AtomicU64::new(0),
        }
    }

    /// Nothing counted.
    #[cfg(loom)]
    pub(crate) fn new() -> Tally {
        let zero = || AtomicU64::new(0);
        Tally {
            epoch: AtomicU64::new(NONE),
            count: zero(),
            hold_total: zero(),
            hold_max: zero(),
            wait_total: zero(),
            wait_max: zero(),
            contended_hold: zero(),
            contended_wait: zero(),
        }
    }

    fn counts(&self) -> [&AtomicU64; 7] {
        [
            &self.count,
            &self.hold_total,
            &self.hold_max,
            &self.wait_total,
            &self.wait_max,
            &self.contended_hold,
            &self.contended_wait,
        ]
    }

    /// Makes the line one of this epoch. Called by its owner before it counts.
    #[inline]
    pub(crate) fn enter(&self, epoch: u64) {
        // Relaxed: only the owner changes it.
        if self.epoch.load(Ordering::Relaxed) != epoch {
            self.clear(epoch);
        }
    }

    #[cold]
    fn clear(&self, epoch: u64) {
        // Relaxed: ordered by the fence.
        self.epoch.store(NONE, Ordering::Relaxed);
        // Release: a reader that sees a cleared count sees that the old epoch is over.
        fence(Ordering::Release);
        for count in self.counts() {
            count.store(0, Ordering::Relaxed); // Relaxed: ordered by the store below
        }
        // Release: a reader that sees the epoch sees the cleared counts.
        self.epoch.store(epoch, Ordering::Release);
    }

    /// Counts an acquisition or an event.
    pub(crate) fn count(&self) {
        add(&self.count, 1);
    }

    /// Counts a hold that has ended.
    pub(crate) fn hold(&self, held: u64, contended: bool) {
        add(&self.hold_total, held);
        raise(&self.hold_max, held);
        if contended {
            add(&self.contended_hold, 1);
        }
    }

    /// Counts a wait that has ended.
    pub(crate) fn wait(&self, waited: u64) {
        add(&self.wait_total, waited);
        raise(&self.wait_max, waited);
        add(&self.contended_wait, 1);
    }

    /// The counts of this epoch, in the order of the fields; `None` where there are none.
    pub(crate) fn read(&self, epoch: u64) -> Option<[u64; 7]> {
        // Acquire: pairs with the end of `clear`.
        if self.epoch.load(Ordering::Acquire) != epoch {
            return None;
        }
        // Relaxed: ordered by the fence.
        let counts = self.counts().map(|count| count.load(Ordering::Relaxed));
        // Acquire: pairs with the fence of `clear`.
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        (self.epoch.load(Ordering::Relaxed) == epoch).then_some(counts)
    }
}
