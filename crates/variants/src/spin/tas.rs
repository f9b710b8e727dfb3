//! The stock spin lock: test-and-set, with `sched_yield` after a bounded spin (P15, B14). It is the
//! lock that Mellor-Crummey and Scott measure first (1991, section 2.1).
//!
//! 1. A thread changes the word from 0 to 1 by an atomic change.
//! 2. A waiter repeats the change until it succeeds. After 100 attempts it gives its time slice
//!    away and begins again.
//! 3. The release stores 0.
//!
//! What must hold: the thread that changes 0 to 1 is the only holder until its store.
//!
//! Orderings: the change acquires and the store releases, so a holder sees what the last one wrote.
//!
//! Cost in line transfers: 1 for an uncontended lock that another core used last. With n waiters
//! each attempt takes the line exclusively, also from the holder. The release then queues behind up
//! to n attempts, so a hand-over costs up to n transfers. The lock's speed falls as 1/n.

use sync::atomic::{AtomicBool, Ordering};
use sync::{CachePadded, profile};

use super::Lock;
use crate::caller::{Backoff, Caller};

/// Test-and-set.
#[derive(Debug)]
pub struct TestAndSet {
    locked: CachePadded<AtomicBool>,
}

impl TestAndSet {
    #[inline]
    fn take(&self) -> bool {
        // Acquire: what the last holder wrote is seen. Relaxed on failure: nothing is read. A
        // compare-and-exchange costs what a swap costs, since a failed one takes the line as well.
        self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

impl Lock for TestAndSet {
    fn new(_: usize) -> Self {
        Self { locked: CachePadded::new(AtomicBool::new(false)) }
    }

    #[inline]
    fn lock(&self, me: &mut Caller) {
        if self.take() {
            return;
        }
        me.retried();
        let mut backoff = Backoff::default();
        profile::wait(&"test-and-set lock", || {
            loop {
                backoff.pause();
                if self.take() {
                    return;
                }
                me.retried();
            }
        });
    }

    #[inline]
    fn unlock(&self, _: &mut Caller) {
        // Release: the next holder sees what this one wrote.
        self.locked.store(false, Ordering::Release);
    }
}
