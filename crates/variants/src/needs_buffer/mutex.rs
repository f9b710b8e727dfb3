//! The stock state: one mutex guards the flags, and every release takes it (FreeBSD 10, `bdwakeup`,
//! `bufspacewakeup` and `bufcountwakeup` under `nblock`).
//!
//! 1. A release takes the mutex, looks for its kind's flag and clears it. It gives the mutex back,
//!    and wakes the sleepers of the kind if the flag was set.
//! 2. A thread that finds nothing free takes the mutex and looks again. If there is still nothing,
//!    it sets the flag, enters the sleepers, gives the mutex back and sleeps.
//!
//! What must hold: the buffer is freed before the mutex is taken. So a release either comes first,
//! and the second look finds the buffer, or it comes later and sees the flag.
//!
//! The mutex is [`AdaptiveLock`], FreeBSD's `mtx(9)` of that time.
//!
//! Cost in line transfers: 2 for each release, waited for or not. They are the mutex and the flags.
//! All releases of all cores queue for it.

use sync::CachePadded;
use sync::atomic::{AtomicU32, Ordering};

use super::Needs;
use super::sleepers::Sleepers;
use crate::caller::Caller;
use crate::sleep_lock::AdaptiveLock;
use crate::spin::{Exclusion, Lock};

/// Flags under a mutex.
#[derive(Debug)]
pub struct MutexNeeds {
    mutex: AdaptiveLock,
    flags: CachePadded<AtomicU32>,
    sleepers: Sleepers,
}

impl MutexNeeds {
    /// No waiters yet, for threads numbered below `threads`.
    pub fn new(threads: usize) -> Self {
        let flags = CachePadded::new(AtomicU32::new(0));
        Self { mutex: AdaptiveLock::new(threads), flags, sleepers: Sleepers::new(threads) }
    }
}

impl Needs for MutexNeeds {
    #[inline]
    fn freed(&self, me: &mut Caller, kind: usize) {
        let flag = 1 << kind;
        let is_needed = self.mutex.with(me, || {
            // Relaxed, here and below: ordered by the mutex.
            let flags = self.flags.load(Ordering::Relaxed);
            if flags & flag != 0 {
                self.flags.store(flags & !flag, Ordering::Relaxed);
            }
            flags & flag != 0
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
            self.mutex.lock(me);
            if let Some(taken) = take() {
                self.mutex.unlock(me);
                return taken;
            }
            let flags = self.flags.load(Ordering::Relaxed);
            self.flags.store(flags | 1 << kind, Ordering::Relaxed);
            self.sleepers.enter(me, kind);
            self.mutex.unlock(me);
            self.sleepers.sleep(me);
        }
    }
}
