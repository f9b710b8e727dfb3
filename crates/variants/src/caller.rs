//! A thread as the variants see it: its number, and the atomic changes that it had to repeat.
//!
//! Numbers run from 0 and are below the `threads` that a variant is made for. They choose the
//! thread's place in queues, so two threads must not share one.

use sync::atomic::{spin_loop, yield_thread};

/// Polls of a word before a waiter gives its time slice to the kernel. In user space the holder may
/// be a preempted thread, for which no number of polls is enough. All variants have the same bound,
/// which is also that of `sync::SpinLock`.
const POLLS: u32 = if cfg!(loom) { 1 } else { 100 };

/// A thread that uses variants.
#[derive(Debug)]
pub struct Caller {
    number: usize,
    retries: u64,
}

impl Caller {
    /// The thread with this number.
    pub fn new(number: usize) -> Self {
        Self { number, retries: 0 }
    }

    /// The thread's number.
    #[inline]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Atomic changes that failed and were tried again, since the last [`Self::restart`].
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// Counts from zero again.
    pub fn restart(&mut self) {
        self.retries = 0;
    }

    /// Counts an atomic change that failed.
    #[inline]
    pub fn retried(&mut self) {
        self.retries += 1;
    }
}

/// Polls until `ready`, giving the time slice away after each [`POLLS`] polls.
#[inline]
pub fn wait_until(mut ready: impl FnMut() -> bool) {
    let mut backoff = Backoff::default();
    while !ready() {
        backoff.pause();
    }
}

/// The polls of one wait.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    polls: u32,
}

impl Backoff {
    /// One pause of the processor; the kernel's at every 100th.
    #[inline]
    pub(crate) fn pause(&mut self) {
        self.polls += 1;
        if self.polls.is_multiple_of(POLLS) {
            yield_thread();
        } else {
            spin_loop();
        }
    }
}
