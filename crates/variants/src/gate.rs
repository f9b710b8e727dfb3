//! A place where one thread sleeps until another one posts: a binary semaphore.
//!
//! PostgreSQL's backends sleep on a semaphore each, FreeBSD's threads in their turnstile. A queue
//! takes a thread out once and then posts once, and the thread waits once for each time it was
//! taken out. So a count of one is enough. What must hold: only the gate's own thread waits.
//!
//! Cost: a post moves the gate's line to the poster, and the wait moves it back: 2 transfers. A
//! system call on each side only if the thread sleeps already.

use sync::Futex;
use sync::atomic::Ordering;

/// Nothing has happened.
const EMPTY: u32 = 0;
/// Posted, and not yet seen by the owner.
const POSTED: u32 = 1;
/// The owner sleeps or is about to.
const ASLEEP: u32 = 2;

/// The gate of one thread.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    futex: Futex,
}

impl Gate {
    /// Waits for one post.
    pub(crate) fn wait(&self) {
        let word = self.futex.word();
        // Acquire: what the poster did before is seen. Acquire on failure: a post was there.
        if word.compare_exchange(EMPTY, ASLEEP, Ordering::Acquire, Ordering::Acquire).is_ok() {
            // Acquire: as above.
            while word.load(Ordering::Acquire) != POSTED {
                self.futex.wait(ASLEEP);
            }
        }
        // Relaxed: the next poster finds this thread in a queue whose lock orders the two.
        word.store(EMPTY, Ordering::Relaxed);
    }

    /// Lets the owner go on.
    pub(crate) fn post(&self) {
        // Release: the owner sees what this thread did before.
        if self.futex.word().swap(POSTED, Ordering::Release) == ASLEEP {
            self.futex.wake(1);
        }
    }
}
