//! Row `spin` (P15, B14): locks whose waiters poll.
//!
//! P15 found 32% of CPU time in PostgreSQL's spin lock. B14's tail falls as one over the number of
//! clients, since all waiters storm a released test-and-set lock. [`TestAndSet`] is the stock
//! state. [`TestTestAndSet`], [`Ticket`] without and with proportional backoff are the steps.
//! [`Mcs`] is the published one (Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization
//! on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991).
//!
//! A waiter gives its time slice away after 100 polls. The holder, or the head of the queue, may be
//! a preempted thread. The lock profiler counts waits, by the place that takes the lock. A lock
//! that is free costs nothing for it.

mod mcs;
mod tas;
mod ticket;
mod ttas;

pub use mcs::Mcs;
pub use tas::TestAndSet;
pub use ticket::Ticket;
pub use ttas::TestTestAndSet;
pub(crate) use ttas::{Held, Word};

use crate::caller::Caller;

/// Mutual exclusion of a section of code: the mechanism of the rows `spin` and `sleep-lock`.
pub trait Exclusion: Sync {
    /// Runs `body` while no other thread runs one under the same lock.
    #[track_caller]
    fn with<R>(&self, me: &mut Caller, body: impl FnOnce() -> R) -> R;
}

/// A lock with two ends.
pub trait Lock: Sync + Sized {
    /// An open lock for threads numbered below `threads`.
    fn new(threads: usize) -> Self;
    /// Waits for the lock and takes it.
    #[track_caller]
    fn lock(&self, me: &mut Caller);
    /// Gives the lock back. Only for the holder.
    fn unlock(&self, me: &mut Caller);
}

impl<L: Lock> Exclusion for L {
    #[inline]
    fn with<R>(&self, me: &mut Caller, body: impl FnOnce() -> R) -> R {
        self.lock(me);
        let unlock = Finally(|| self.unlock(me));
        let result = body();
        drop(unlock);
        result
    }
}

/// Runs a closure when it is dropped, so that a panic in a section gives the lock back.
pub(crate) struct Finally<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for Finally<F> {
    #[inline]
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(all(test, not(loom)))]
pub(crate) mod tests {
    use sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::test_threads::{ROUNDS, THREADS, at_once};

    /// Checks that a lock excludes: threads add by a load and a store, and no addition is lost.
    pub(crate) fn excludes(lock: &impl Exclusion, rounds: u64) {
        let sum = AtomicU64::new(0);
        at_once(|me| {
            for _ in 0..rounds {
                lock.with(me, || {
                    // Relaxed: ordered by the lock under test.
                    let seen = sum.load(Ordering::Relaxed);
                    sum.store(seen + 1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(sum.into_inner(), THREADS as u64 * rounds);
    }

    #[test]
    fn each_spin_lock_excludes_more_threads_than_cores() {
        excludes(&TestAndSet::new(THREADS), ROUNDS);
        excludes(&TestTestAndSet::new(THREADS), ROUNDS);
        excludes(&Ticket::<0>::new(THREADS), ROUNDS);
        excludes(&Ticket::<30>::new(THREADS), ROUNDS);
        excludes(&Mcs::new(THREADS), ROUNDS);
    }

    #[test]
    fn a_panic_in_a_section_gives_the_lock_back() {
        let lock = Mcs::new(1);
        let panic = std::panic::AssertUnwindSafe(|| lock.with(&mut Caller::new(0), || panic!("expected")));
        std::panic::catch_unwind(panic).unwrap_err();
        assert_eq!(lock.with(&mut Caller::new(0), || 7), 7);
    }
}
