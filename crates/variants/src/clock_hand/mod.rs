//! Row `clock-hand` (G26): the shared hand of a buffer pool's clock sweep.
//!
//! Every search for a victim moves the hand. [`OneByOne`] is the stock state, PostgreSQL's
//! `ClockSweepTick`: one atomic add a frame on one line. G26 gives 20 ns for it on one socket and
//! 100 to 200 ns across sockets. [`Batched`] is the published one: a thread claims 64 consecutive
//! frames with one add and walks them alone.
//!
//! What must hold, as G26 states it:
//! 1. Each frame is visited exactly once a pass.
//! 2. A visit takes one off the frame's usage count; a frame falls only at usage 0.
//! 3. So a page survives at most 6 visits after its last use, 5 uses and the one that evicts it.
//! 4. Hand and complete passes are consistent for the page writer ([`Hand::start`]).
//! 5. Each allocation is counted once.

mod batched;
mod control;
mod one_by_one;

pub use batched::{BATCH, Batched, Walk};
pub use one_by_one::OneByOne;

use sync::CachePadded;
use sync::atomic::{AtomicU8, Ordering};

use crate::caller::Caller;

/// The highest usage count, as in PostgreSQL.
pub const USAGE_MAX: u8 = 5;

/// A hand that goes round the frames for ever.
pub trait Hand: Sync {
    /// The part of a batch that a thread keeps between two steps.
    type Walk: Default + Send;
    /// The frame that the thread looks at next.
    fn next(&self, me: &mut Caller, walk: &mut Self::Walk) -> usize;
    /// Counts an allocation.
    fn allocated(&self);
    /// Where the page writer begins, with the allocations since it asked last.
    fn start(&self, me: &mut Caller) -> Start;
}

/// The sweep's position, for the page writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// The next frame to be claimed.
    pub hand: usize,
    /// How often all frames have been claimed.
    pub passes: u64,
    /// Allocations since the last call.
    pub allocations: u64,
}

/// The usage counts of a pool's frames, each in a header on a line of its own.
#[derive(Debug)]
pub struct Frames {
    usage: Box<[CachePadded<AtomicU8>]>,
}

impl Frames {
    /// Frames with these usage counts.
    pub fn new(usage: impl IntoIterator<Item = u8>) -> Self {
        Self { usage: usage.into_iter().map(|usage| CachePadded::new(AtomicU8::new(usage))).collect() }
    }

    /// Records a use of a frame's page.
    #[inline]
    pub fn touch(&self, frame: usize) {
        // Relaxed, here and below: a count publishes nothing.
        let usage = self.usage[frame].load(Ordering::Relaxed);
        if usage < USAGE_MAX {
            self.usage[frame].store(usage + 1, Ordering::Relaxed);
        }
    }

    /// A sweep's visit: takes one off the usage count. True if it was 0: then the frame has fallen,
    /// and holds a new page with one use.
    #[inline]
    pub fn visit(&self, me: &mut Caller, frame: usize) -> bool {
        let count = &self.usage[frame];
        let mut usage = count.load(Ordering::Relaxed);
        loop {
            let left = usage.checked_sub(1).unwrap_or(1);
            match count.compare_exchange_weak(usage, left, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return usage == 0,
                Err(found) => {
                    me.retried();
                    usage = found;
                }
            }
        }
    }

    /// Searches for a victim.
    #[inline]
    pub fn victim<H: Hand>(&self, hand: &H, me: &mut Caller, walk: &mut H::Walk) -> usize {
        loop {
            let frame = hand.next(me, walk);
            if self.visit(me, frame) {
                hand.allocated();
                return frame;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
