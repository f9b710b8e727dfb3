//! A futex for the machines that have no kernel: loom's and the model.
//!
//! One lock orders a sleeper's look at the word and a wake-up, as the kernel's hash bucket does. A
//! wake-up reaches threads that sleep already and is not kept for later ones.

use super::atomic::{AtomicU32, Ordering};
use super::{Condvar, Mutex};

/// The threads that sleep on one word.
#[derive(Debug)]
pub(crate) struct Sleepers {
    bucket: Mutex<()>,
    condition: Condvar,
}

impl Default for Sleepers {
    fn default() -> Self {
        Self { bucket: Mutex::new(()), condition: Condvar::new() }
    }
}

impl Sleepers {
    /// Puts this thread to sleep if the word has the expected value. Returns after a wake-up, or at
    /// once if the value differs.
    pub(crate) fn wait(&self, word: &AtomicU32, expected: u32) {
        let bucket = self.bucket.lock();
        // SeqCst: the kernel's look at the word is a full barrier.
        if word.load(Ordering::SeqCst) == expected {
            drop(self.condition.wait(bucket));
        }
    }

    /// Wakes at most `count` of the threads that sleep on the word.
    pub(crate) fn wake(&self, _: &AtomicU32, count: u32) {
        let bucket = self.bucket.lock();
        match count {
            u32::MAX => self.condition.notify_all(),
            count => (0..count).for_each(|_| self.condition.notify_one()),
        }
        drop(bucket);
    }
}
