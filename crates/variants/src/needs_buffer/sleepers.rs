//! The threads that sleep until a buffer of their kind is free: FreeBSD's sleep queue.
//!
//! 1. A thread enters the queue under its spin lock, with the kind that it needs, and sleeps.
//! 2. A wake-up takes all threads of the kind out, as `wakeup(9)` does, and posts to each once.
//!
//! What must hold: a thread enters under the lock of its variant, together with its flag. So a
//! release that sees the flag finds the thread.
//!
//! Cost in line transfers: 2 to enter, the spin lock with the ends of the queue and the last
//! thread's node. A wake-up costs 1 for the spin lock, 1 for each thread in the queue, and 1 more
//! for each that it wakes. Almost no release comes here.

use sync::CachePadded;

use crate::caller::Caller;
use crate::spin::Word;
use crate::waiters::{Choice, Queue, Waiters};

/// The threads that sleep, with the kind that each needs.
#[derive(Debug)]
pub(super) struct Sleepers {
    list: CachePadded<List>,
    waiters: Waiters,
}

#[derive(Debug, Default)]
struct List {
    lock: Word,
    queue: Queue,
}

impl Sleepers {
    pub(super) fn new(threads: usize) -> Self {
        Self { list: CachePadded::default(), waiters: Waiters::new(threads) }
    }

    /// Enters this thread, which then calls [`Self::sleep`].
    pub(super) fn enter(&self, me: &mut Caller, kind: usize) {
        let List { lock, queue } = &*self.list;
        let _held = lock.lock(me, &"sleep queue");
        self.waiters.enter(queue, me, kind);
    }

    /// Sleeps until a wake-up has taken this thread out.
    pub(super) fn sleep(&self, me: &Caller) {
        self.waiters.sleep(me, &"needed buffer");
    }

    /// Wakes all threads that need this kind.
    #[cold]
    pub(super) fn wake(&self, me: &mut Caller, kind: usize) {
        let List { lock, queue } = &*self.list;
        let held = lock.lock(me, &"sleep queue");
        let chain =
            self.waiters.take(queue, |needed| if needed == kind { Choice::Take } else { Choice::Pass });
        drop(held);
        self.waiters.wake(chain);
    }
}
