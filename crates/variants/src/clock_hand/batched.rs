//! The published hand: a thread claims a batch of consecutive frames with one add and walks them
//! alone (G26).
//!
//! 1. A thread whose batch is walked adds the size of a batch to the hand. The frames from the sum
//!    before on are its next batch; it goes on at frame 0 behind the end.
//! 2. A thread whose batch reaches the end takes the lock and looks at the hand again. It subtracts
//!    the number of frames once and counts a complete pass.
//! 3. The page writer reads hand and passes under the lock, as in the stock state.
//!
//! A batch has 64 frames on several NUMA nodes and 1 on one node, and at most as many as the pool
//! ([`Batched::published`]).
//!
//! What must hold: a batch is no longer than the pool, so it reaches the end at most once. Each
//! claim that reaches the end wraps once, by a subtraction that commutes with other claims. So hand
//! plus frames times passes is the number of frames claimed, at every moment under the lock. Each
//! frame is claimed once a pass. A thread may walk its batch late: then its frames lose their usage
//! count late, never twice.
//!
//! A first form of the patch did not count a pass whose batch spans the end. Here a batch counts
//! the pass that it completes.
//!
//! Orderings: as in the stock state.
//!
//! Cost in line transfers: 1 a batch, 1/64 a frame; 1 more a victim for the count of allocations.

use sync::CachePadded;
use sync::atomic::Ordering;

use super::control::Control;
use super::{Hand, Start};
use crate::caller::Caller;

/// Frames of a batch on a machine with several NUMA nodes.
pub const BATCH: usize = 64;

/// A hand that moves by batches.
#[derive(Debug)]
pub struct Batched {
    frames: u64,
    batch: u64,
    control: CachePadded<Control>,
}

/// The rest of a thread's batch.
#[derive(Debug, Default)]
pub struct Walk {
    next: u64,
    left: u64,
}

impl Walk {
    /// Frames of the batch that the thread has not looked at.
    pub fn left(&self) -> usize {
        self.left as usize
    }
}

impl Batched {
    /// A hand over so many frames, at frame 0, with batches of this size.
    pub fn new(frames: usize, batch: usize) -> Self {
        assert!(frames > 0, "a hand needs frames to go round");
        Self {
            frames: frames as u64,
            batch: batch.clamp(1, frames) as u64,
            control: CachePadded::new(Control::new()),
        }
    }

    /// A hand as G26 sizes it for a machine with so many NUMA nodes.
    pub fn published(frames: usize, nodes: usize) -> Self {
        Self::new(frames, if nodes > 1 { BATCH } else { 1 })
    }

    /// Frames of a batch.
    pub fn batch(&self) -> usize {
        self.batch as usize
    }

    /// Counts the pass that the caller's claim completed.
    #[cold]
    fn wrap(&self, me: &mut Caller) {
        let Control { lock, passes, .. } = &*self.control;
        let _held = lock.lock(me, &"complete passes");
        // Relaxed, all: under the lock. Each claim that reaches the end subtracts once, so the hand
        // is beyond the end until the last of them has done so.
        debug_assert!(self.control.hand.load(Ordering::Relaxed) >= self.frames, "another thread wrapped");
        self.control.hand.fetch_sub(self.frames, Ordering::Relaxed);
        passes.store(passes.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[inline]
    fn claim(&self, me: &mut Caller) -> Walk {
        // Relaxed: the claim is the number itself.
        let begin = self.control.hand.fetch_add(self.batch, Ordering::Relaxed) % self.frames;
        if begin + self.batch >= self.frames {
            self.wrap(me);
        }
        Walk { next: begin, left: self.batch }
    }
}

impl Hand for Batched {
    type Walk = Walk;

    #[inline]
    fn next(&self, me: &mut Caller, walk: &mut Walk) -> usize {
        if walk.left == 0 {
            *walk = self.claim(me);
        }
        let frame = walk.next;
        walk.next = if frame + 1 == self.frames { 0 } else { frame + 1 };
        walk.left -= 1;
        frame as usize
    }

    #[inline]
    fn allocated(&self) {
        self.control.allocated();
    }

    fn start(&self, me: &mut Caller) -> Start {
        self.control.start(me, self.frames)
    }
}
