//! The stock hand: one atomic add a frame (PostgreSQL 9.5 to 18, `ClockSweepTick` and
//! `StrategySyncStart`).
//!
//! 1. A thread adds 1 to the hand. The sum before, modulo the number of frames, is its frame.
//! 2. A thread that gets frame 0 beyond the end takes the lock. It exchanges the hand for the hand
//!    modulo the number of frames, until that succeeds, and counts the complete pass.
//! 3. The page writer reads hand and passes under the lock. A hand beyond the end counts as passes
//!    that are not wrapped yet.
//!
//! What must hold: the hand modulo the number of frames moves by one a claim, so each frame is
//! claimed once a pass. Wrapping takes whole passes from the hand and counts as many. PostgreSQL
//! counts one a wrap, and so loses one if all frames are claimed before the wrap.
//!
//! Orderings: all relaxed, because a claim is the number itself; hand and passes are ordered by the
//! lock.
//!
//! Cost in line transfers: 1 a frame, on a line that all threads share. The count of allocations
//! lies on the same line: 1 more a victim.

use sync::CachePadded;
use sync::atomic::Ordering;

use super::control::Control;
use super::{Hand, Start};
use crate::caller::Caller;

/// A hand that moves frame by frame.
#[derive(Debug)]
pub struct OneByOne {
    frames: u64,
    control: CachePadded<Control>,
}

impl OneByOne {
    /// A hand over so many frames, at frame 0.
    pub fn new(frames: usize) -> Self {
        assert!(frames > 0, "a hand needs frames to go round");
        Self { frames: frames as u64, control: CachePadded::new(Control::new()) }
    }

    /// Wraps a hand that was `seen` just now.
    #[cold]
    fn wrap(&self, me: &mut Caller, mut seen: u64) {
        let Control { lock, passes, .. } = &*self.control;
        let _held = lock.lock(me, &"complete passes");
        // Relaxed, here and below: under the lock.
        while let Err(found) =
            self.control.hand.compare_exchange(seen, seen % self.frames, Ordering::Relaxed, Ordering::Relaxed)
        {
            me.retried();
            seen = found;
        }
        passes.store(passes.load(Ordering::Relaxed) + seen / self.frames, Ordering::Relaxed);
    }
}

impl Hand for OneByOne {
    type Walk = ();

    #[inline]
    fn next(&self, me: &mut Caller, (): &mut ()) -> usize {
        // Relaxed: the claim is the number itself.
        let claimed = self.control.hand.fetch_add(1, Ordering::Relaxed);
        if claimed < self.frames {
            return claimed as usize;
        }
        let frame = claimed % self.frames;
        if frame == 0 {
            self.wrap(me, claimed + 1);
        }
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
