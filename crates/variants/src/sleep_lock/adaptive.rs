//! The published sleeping lock: a waiter spins while the owner runs, then sleeps (K07, FreeBSD's
//! `mtx(9)`).
//!
//! The word holds the owner's number above the flag [`SLEEPERS`].
//!
//! 1. A thread changes 0 to its number and has the lock. It notes its processor beside the word.
//! 2. Otherwise it polls while the owner runs on its processor, at most [`POLLS`] times.
//! 3. If the owner has lost its processor, the waiter sets [`SLEEPERS`] and sleeps while the word
//!    is unchanged. A woken thread keeps the flag when it takes the lock, because others may sleep
//!    too.
//! 4. The release swaps 0 in and wakes one sleeper if the flag was set.
//!
//! What must hold: while a thread sleeps, the word carries [`SLEEPERS`], or a wake-up is on its
//! way. The run state is a hint (`running`): a wrong one costs a sleep or at most [`POLLS`] polls.
//!
//! Orderings: each change that takes the lock acquires, the swap that opens it releases.
//!
//! Cost in line transfers: 1 for an uncontended lock, and the store to the owner's own cell. A
//! waiter fetches the word once a change and the owner's cell once a poll that saw it change. A
//! hand-over between running threads costs 2 transfers and no system call.

use sync::atomic::{AtomicUsize, Ordering, spin_loop};
use sync::{CachePadded, Futex, profile};

use crate::caller::Caller;
use crate::running;
use crate::spin::Lock;

/// No owner.
const OPEN: u32 = 0;
/// Threads sleep, or have been woken and may leave others asleep.
const SLEEPERS: u32 = 1;
/// Most polls while the owner seems to run, some 40 us to 400 us by processor. It bounds the time
/// spent on an owner that a thread without locks has displaced.
const POLLS: u32 = if cfg!(loom) { 1 } else { 10_000 };

/// The lock that spins while its owner runs.
#[derive(Debug)]
pub struct AdaptiveLock {
    word: CachePadded<Word>,
}

#[derive(Debug)]
struct Word {
    futex: Futex,
    /// The processor on which the owner took the lock.
    processor: AtomicUsize,
}

impl Lock for AdaptiveLock {
    fn new(_: usize) -> Self {
        let word = Word { futex: Futex::new(OPEN), processor: AtomicUsize::new(0) };
        Self { word: CachePadded::new(word) }
    }

    #[inline]
    fn lock(&self, me: &mut Caller) {
        let processor = running::note(me.number());
        let word = self.word.futex.word();
        // Acquire: what the last holder wrote is seen. Relaxed on failure: looked at again.
        let taken = word.compare_exchange(OPEN, number(me), Ordering::Acquire, Ordering::Relaxed);
        if taken.is_err() {
            me.retried();
            profile::wait(&"adaptive lock", || self.lock_contended(me));
        }
        // Relaxed: a hint for waiters.
        self.word.processor.store(processor, Ordering::Relaxed);
    }

    #[inline]
    fn unlock(&self, _: &mut Caller) {
        // Release: the next holder sees what this one wrote.
        if self.word.futex.word().swap(OPEN, Ordering::Release) & SLEEPERS != 0 {
            self.word.futex.wake(1);
        }
    }
}

impl AdaptiveLock {
    #[cold]
    fn lock_contended(&self, me: &mut Caller) {
        let word = self.word.futex.word();
        let (mut own, mut polls) = (number(me), 0);
        loop {
            // Relaxed: the exchanges below acquire, and the futex compares again.
            let seen = word.load(Ordering::Relaxed);
            if seen == OPEN {
                // Acquire and Relaxed: as in `lock`.
                if word.compare_exchange(OPEN, own, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                    return;
                }
                me.retried();
            } else if polls < POLLS && self.owner_runs(seen) {
                polls += 1;
                spin_loop();
            } else if seen & SLEEPERS != 0
                // Relaxed: the flag publishes nothing else.
                || word
                    .compare_exchange(seen, seen | SLEEPERS, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                self.word.futex.wait(seen | SLEEPERS);
                running::note(me.number());
                (own, polls) = (number(me) | SLEEPERS, 0);
            } else {
                me.retried();
            }
        }
    }

    /// Whether the owner that `seen` names runs.
    #[inline]
    fn owner_runs(&self, seen: u32) -> bool {
        let owner = (seen >> 1) as usize - 1;
        // Relaxed: a hint.
        running::is_running(owner, self.word.processor.load(Ordering::Relaxed))
    }
}

/// A thread's number as the word holds it.
#[inline]
fn number(me: &Caller) -> u32 {
    (me.number() as u32 + 1) << 1
}
