//! A semaphore in one word: the count below, the number of waiters above (glibc's `sem_t` packs
//! them alike).
//!
//! 1. A wait takes 1 off the count if it is above 0.
//! 2. Otherwise it adds 1 waiter and sleeps while the word is unchanged. When it wakes and finds a
//!    count above 0, it takes 1 off both in one change.
//! 3. A post adds 1 to the count. If the word had waiters, it wakes one.
//!
//! What must hold: a waiter is counted from before its sleep until it has taken its 1. So a post
//! that finds no waiters has none to wake, and one that comes before the sleep has changed the
//! word. A woken waiter whose 1 another thread has taken sleeps again: that thread's post wakes it.
//!
//! Orderings: the change that takes 1 acquires, the post releases.
//!
//! Cost in line transfers: 1 for each call that another core's call precedes. Contended, 2 system
//! calls for each pair.

use sync::atomic::Ordering;
use sync::{CachePadded, Futex, profile};

use super::Semaphores;
use crate::caller::Caller;

/// The bits of the count.
const COUNT: u32 = 0xffff;
/// One waiter.
const WAITER: u32 = COUNT + 1;

/// Semaphores over futexes, each on a line of its own.
#[derive(Debug)]
pub struct FutexSemaphores(pub(super) Box<[CachePadded<Futex>]>);

impl FutexSemaphores {
    /// This number of semaphores, each with this count, for at most 65,535 posts and waiters each.
    pub fn new(semaphores: usize, count: u16) -> Self {
        let futex = |_| CachePadded::new(Futex::new(u32::from(count)));
        Self((0..semaphores).map(futex).collect())
    }
}

impl Semaphores for FutexSemaphores {
    fn wait(&self, me: &mut Caller, which: usize) {
        let futex = &self.0[which];
        let word = futex.word();
        // Relaxed, here and below: the exchange decides, and the futex compares again.
        let mut seen = word.load(Ordering::Relaxed);
        let mut waits = 0;
        loop {
            let (change, is_taken) = match seen & COUNT {
                0 if waits == WAITER => {
                    profile::wait(&"semaphore", || futex.wait(seen));
                    seen = word.load(Ordering::Relaxed);
                    continue;
                }
                0 => (seen + WAITER, false),
                _ => (seen - 1 - waits, true),
            };
            // Acquire: what the poster did before is seen. Relaxed on failure: as above.
            match word.compare_exchange(seen, change, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) if is_taken => return,
                Ok(_) => (seen, waits) = (change, WAITER),
                Err(found) => {
                    me.retried();
                    seen = found;
                }
            }
        }
    }

    #[inline]
    fn post(&self, which: usize) {
        let futex = &self.0[which];
        // Release: the waiter sees what this thread did before.
        if futex.word().fetch_add(1, Ordering::Release) >= WAITER {
            futex.wake(1);
        }
    }
}
