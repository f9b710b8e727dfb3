//! The published state: the flags change by atomics, under a lock that releases share (B14, FreeBSD
//! 10 with `nblock` as a reader-writer lock).
//!
//! 1. A release takes the lock shared and looks for its kind's flag. If the flag is set, it clears
//!    it by an atomic change. The release that has cleared it wakes the sleepers of the kind.
//! 2. A thread that finds nothing free takes the lock exclusively and looks again. If there is
//!    still nothing, it sets the flag, enters the sleepers, gives the lock back and sleeps.
//!
//! What must hold: the buffer is freed before the lock is shared. A release that shares the lock
//! before a sleeper has it is ordered before the sleeper's second look, which finds the buffer. One
//! that comes later sees the flag. Two releases that both see a flag clear it once.
//!
//! The lock is [`TurnstileLatch`], FreeBSD's `rwlock(9)`.
//!
//! Cost in line transfers: 2 for each release, one atomic change to share the lock and one to give
//! it back. No release waits for another one. The flags stay in every core's cache until a thread
//! goes to sleep.

use sync::CachePadded;
use sync::atomic::{AtomicU32, Ordering};

use super::Needs;
use super::sleepers::Sleepers;
use crate::caller::Caller;
use crate::latch::{HeldLatch, Latch, TurnstileLatch};

/// Flags changed by atomics.
#[derive(Debug)]
pub struct SharedNeeds {
    latch: TurnstileLatch,
    flags: CachePadded<AtomicU32>,
    sleepers: Sleepers,
}

impl SharedNeeds {
    /// No waiters yet, for threads numbered below `threads`.
    pub fn new(threads: usize) -> Self {
        let flags = CachePadded::new(AtomicU32::new(0));
        Self { latch: TurnstileLatch::new(threads), flags, sleepers: Sleepers::new(threads) }
    }
}

impl Needs for SharedNeeds {
    #[inline]
    fn freed(&self, me: &mut Caller, kind: usize) {
        let flag = 1 << kind;
        let is_needed = self.latch.read(me, || {
            // Relaxed, here and below: a sleeper sets the flag under the exclusive lock, which
            // orders it with this look. Between releases the change itself decides.
            self.flags.load(Ordering::Relaxed) & flag != 0
                && self.flags.fetch_and(!flag, Ordering::Relaxed) & flag != 0
        });
        if is_needed {
            self.sleepers.wake(me, kind);
        }
    }

    fn wait<R>(&self, me: &mut Caller, kind: usize, mut take: impl FnMut() -> Option<R>) -> R {
        loop {
            if let Some(taken) = take() {
                return taken;
            }
            self.latch.lock(me);
            if let Some(taken) = take() {
                self.latch.unlock(me);
                return taken;
            }
            self.flags.fetch_or(1 << kind, Ordering::Relaxed);
            self.sleepers.enter(me, kind);
            self.latch.unlock(me);
            self.sleepers.sleep(me);
        }
    }
}
