//! The stock sleeping lock: a futex with three states (Drepper, "Futexes Are Tricky", 2011, section
//! 6, the third mutex).
//!
//! 1. A thread changes [`OPEN`] to [`TAKEN`] and has the lock.
//! 2. Otherwise it swaps [`CROWDED`] in. If that replaced [`OPEN`], it has the lock. Otherwise it
//!    sleeps while the word is [`CROWDED`], and swaps again when it is woken.
//! 3. The release swaps [`OPEN`] in and wakes one sleeper if the word was [`CROWDED`].
//!
//! What must hold: while a thread sleeps, the word is [`CROWDED`], or a wake-up is on its way. A
//! woken thread swaps [`CROWDED`] in, because it does not know whether others sleep too. So the
//! last of them costs one needless wake-up.
//!
//! Orderings: each change that takes the lock acquires, the swap that opens it releases.
//!
//! Cost in line transfers: 1 for an uncontended lock that another core used last. Contended, 2 for
//! each attempt, and 2 system calls a hand-over with a switch of threads between them.

use sync::atomic::Ordering;
use sync::{CachePadded, Futex, profile};

use crate::caller::Caller;
use crate::spin::Lock;

/// No holder.
const OPEN: u32 = 0;
/// A holder, and nobody sleeps.
const TAKEN: u32 = 1;
/// A holder, and others may sleep.
const CROWDED: u32 = 2;

/// The three-state futex lock.
#[derive(Debug)]
pub struct FutexLock {
    futex: CachePadded<Futex>,
}

impl Lock for FutexLock {
    fn new(_: usize) -> Self {
        Self { futex: CachePadded::new(Futex::new(OPEN)) }
    }

    #[inline]
    fn lock(&self, me: &mut Caller) {
        let word = self.futex.word();
        // Acquire: what the last holder wrote is seen. Relaxed on failure: the swap below decides.
        if word.compare_exchange(OPEN, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return;
        }
        me.retried();
        profile::wait(&"futex lock", || {
            // Acquire: as above.
            while word.swap(CROWDED, Ordering::Acquire) != OPEN {
                me.retried();
                self.futex.wait(CROWDED);
            }
        });
    }

    #[inline]
    fn unlock(&self, _: &mut Caller) {
        // Release: the next holder sees what this one wrote.
        if self.futex.word().swap(OPEN, Ordering::Release) == CROWDED {
            self.futex.wake(1);
        }
    }
}
