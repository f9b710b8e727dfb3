//! The first step: test before test-and-set (P15). PostgreSQL's spin lock on x86 is this one
//! (`TAS_SPIN`), and FreeBSD's `mtx` of the spinning kind.
//!
//! 1. A thread changes the word from 0 to 1 by an atomic change.
//! 2. If that fails, it polls its own copy of the line until the lock looks open, and tries again.
//!    It gives its time slice away after each 100 polls.
//! 3. The release stores 0.
//!
//! [`Word`] is the lock for structures that keep it on the line of what it guards, as the headers
//! of PostgreSQL's buffers and latches do.
//!
//! What must hold: as in test-and-set.
//!
//! Cost in line transfers: 1 for an uncontended lock. While the lock is held, waiters share the
//! line and move nothing. A release invalidates n copies, n waiters fetch the line again, and those
//! that saw it open try the change. That is about 2n transfers a hand-over, but the holder is left
//! alone. With [`Word`] the holder is not: each change of what lies beside it takes the line back.

use sync::CachePadded;
use sync::atomic::{AtomicBool, Ordering};
use sync::profile::{self, Class};

use super::Lock;
use crate::caller::{Caller, wait_until};

/// Test, then test-and-set.
#[derive(Debug)]
pub struct TestTestAndSet {
    word: CachePadded<Word>,
}

impl Lock for TestTestAndSet {
    fn new(_: usize) -> Self {
        Self { word: CachePadded::default() }
    }

    #[inline]
    fn lock(&self, me: &mut Caller) {
        self.word.take(me, &"test-first lock");
    }

    #[inline]
    fn unlock(&self, _: &mut Caller) {
        self.word.give();
    }
}

/// The lock without a line of its own.
#[derive(Debug, Default)]
pub(crate) struct Word(AtomicBool);

/// A [`Word`] that its thread has locked.
#[derive(Debug)]
#[must_use]
pub(crate) struct Held<'a>(&'a Word);

impl Word {
    /// Waits for the lock. The profile names the wait by `class`.
    #[inline]
    #[track_caller]
    pub(crate) fn lock(&self, me: &mut Caller, class: Class) -> Held<'_> {
        self.take(me, class);
        Held(self)
    }

    #[inline]
    #[track_caller]
    fn take(&self, me: &mut Caller, class: Class) {
        if !self.try_take() {
            profile::wait(class, || self.take_contended(me));
        }
    }

    #[inline]
    fn try_take(&self) -> bool {
        // Acquire and Relaxed: as in test-and-set.
        self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn take_contended(&self, me: &mut Caller) {
        loop {
            me.retried();
            // Relaxed: a hint when to try; the exchange acquires.
            wait_until(|| !self.0.load(Ordering::Relaxed));
            if self.try_take() {
                return;
            }
        }
    }

    #[inline]
    fn give(&self) {
        // Release: the next holder sees what this one wrote.
        self.0.store(false, Ordering::Release);
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.give();
    }
}
