//! A word that threads sleep on: the primitive below locks that sleep.
//!
//! A thread changes the word to say that it is about to sleep, then calls [`Futex::wait`] with the
//! value it has seen. A thread that changes the word calls [`Futex::wake`] afterwards. The wait
//! compares and enqueues in one step against wake-ups, so no wake-up is lost in between.
//!
//! A whole thread sleeps, and every fiber of its core with it. So the engine waits by
//! [`crate::WaitQueue`]. A futex is for threads that are no cores and for the published locks that
//! the engine is compared with. No latch may be held in a wait.

use crate::atomic::AtomicU32;
use crate::held;
use crate::machine::Sleepers;

/// A 32-bit word with the threads that sleep on it.
#[derive(Debug, Default)]
pub struct Futex {
    word: AtomicU32,
    sleepers: Sleepers,
}

impl Futex {
    /// A futex whose word has this value.
    pub fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value), sleepers: Default::default() }
    }

    /// The word.
    #[inline]
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Sleeps if the word has this value. Returns after a wake-up, spuriously, or at once if the
    /// value differs. The caller loops around its condition.
    pub fn wait(&self, expected: u32) {
        held::assert_none();
        self.sleepers.wait(&self.word, expected);
    }

    /// Wakes at most `count` of the threads that sleep; `u32::MAX` wakes all. Costs a system call
    /// even if none sleeps.
    pub fn wake(&self, count: u32) {
        self.sleepers.wake(&self.word, count);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::atomic::Ordering;

    #[test]
    fn a_wait_for_another_value_returns_at_once() {
        Futex::new(1).wait(0);
    }

    #[test]
    fn a_wake_up_ends_the_sleep_of_all_waiters() {
        let futex = Futex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while futex.word().load(Ordering::Acquire) == 0 {
                        futex.wait(0);
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            futex.word().store(1, Ordering::Release);
            futex.wake(u32::MAX);
        });
    }
}
