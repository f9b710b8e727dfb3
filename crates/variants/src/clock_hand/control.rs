//! The hand's counters, as both of G26's hands keep them: the hand, and complete passes under a
//! lock.

use sync::atomic::{AtomicU64, Ordering};

use super::Start;
use crate::caller::Caller;
use crate::spin::Word;

/// The counters, on one cache line as in the report.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) hand: AtomicU64,
    allocations: AtomicU64,
    pub(super) lock: Word,
    pub(super) passes: AtomicU64,
}

impl Control {
    /// A hand at frame 0.
    pub(super) fn new() -> Self {
        Self {
            hand: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
            lock: Word::default(),
            passes: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(super) fn allocated(&self) {
        // Relaxed: a count.
        self.allocations.fetch_add(1, Ordering::Relaxed);
    }

    /// The hand's place among so many frames, with its passes and allocations.
    pub(super) fn start(&self, me: &mut Caller, frames: u64) -> Start {
        let _held = self.lock.lock(me, &"complete passes");
        // Relaxed, all: under the lock.
        let hand = self.hand.load(Ordering::Relaxed);
        let allocations = self.allocations.swap(0, Ordering::Relaxed);
        let passes = self.passes.load(Ordering::Relaxed) + hand / frames;
        Start { hand: (hand % frames) as usize, passes, allocations }
    }
}
