//! The threads that sleep until a buffer of their kind is free: FreeBSD's sleep queue.
//!
//! What must hold: a thread enters under the lock of its variant, together with its flag. So a
//! release that sees the flag finds the thread. A wake-up takes all threads of the kind out, as
//! `wakeup(9)` does, and posts to each once.

use sync::{CachePadded, SpinLock};

use crate::caller::Caller;
use crate::gate::Gate;

/// The threads that sleep, with the kind that each needs.
#[derive(Debug)]
pub(super) struct Sleepers {
    queue: SpinLock<Vec<(usize, usize)>>,
    gates: Box<[CachePadded<Gate>]>,
}

impl Sleepers {
    pub(super) fn new(threads: usize) -> Self {
        let gates = (0..threads).map(|_| CachePadded::default()).collect();
        Self { queue: SpinLock::new(&"sleepers", Vec::with_capacity(threads)), gates }
    }

    /// Enters this thread, which then calls [`Self::sleep`].
    pub(super) fn enter(&self, me: &mut Caller, kind: usize) {
        let entry = (me.number(), kind);
        me.locked(&self.queue).push(entry);
    }

    /// Sleeps until a wake-up has taken this thread out.
    pub(super) fn sleep(&self, me: &mut Caller) {
        self.gates[me.number()].wait();
    }

    /// Wakes all threads that need this kind.
    #[cold]
    pub(super) fn wake(&self, me: &mut Caller, kind: usize) {
        let mut woken = std::mem::take(&mut me.woken);
        me.locked(&self.queue).retain(|&(thread, needed)| {
            if needed == kind {
                woken.push(thread);
            }
            needed != kind
        });
        woken.drain(..).for_each(|thread| self.gates[thread].post());
        me.woken = woken;
    }
}
