//! The first step: test before test-and-set.
//!
//! A waiter polls its own copy of the line and tries the atomic change only when the lock looks
//! open. PostgreSQL's spin lock on x86 does so from its second attempt on, and so does
//! `sync::SpinLock`. What must hold: as in test-and-set.
//!
//! Cost in line transfers: 1 for an uncontended lock. While the lock is held, waiters share the
//! line and move nothing. A release invalidates n copies, n waiters fetch the line again, and those
//! that saw it open try the change. That is about 2n transfers a hand-over, but the holder is left
//! alone.

use sync::CachePadded;
use sync::atomic::{AtomicBool, Ordering};

use super::Lock;
use crate::caller::{Caller, wait_until};

/// Test, then test-and-set.
#[derive(Debug)]
pub struct TestTestAndSet {
    locked: CachePadded<AtomicBool>,
}

impl Lock for TestTestAndSet {
    fn new(_: usize) -> Self {
        Self { locked: CachePadded::new(AtomicBool::new(false)) }
    }

    #[inline]
    fn lock(&self, me: &mut Caller) {
        // Acquire and Relaxed: as in test-and-set.
        while self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            me.retried();
            // Relaxed: a hint when to try; the exchange acquires.
            wait_until(|| !self.locked.load(Ordering::Relaxed));
        }
    }

    #[inline]
    fn unlock(&self, _: &mut Caller) {
        // Release: the next holder sees what this one wrote.
        self.locked.store(false, Ordering::Release);
    }
}
