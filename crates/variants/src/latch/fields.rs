//! The stock latch: fields under a spin lock (PostgreSQL 9.4, `LWLockAcquireCommon` and
//! `LWLockRelease`).
//!
//! 1. A thread takes the spin lock. If its mode fits, it changes the fields and releases the spin
//!    lock. Otherwise it enters the queue, releases the spin lock, and sleeps on its gate.
//! 2. A woken thread begins anew. It allows further wake-ups first (`release_ok`).
//! 3. A release takes the spin lock and changes the fields. If the latch is free and wake-ups are
//!    allowed, it takes waiters from the front of the queue. These are one writer, or all readers
//!    before the next writer. It wakes them without the spin lock. No release wakes more until one
//!    of them has run, because they may find the latch taken by another thread.
//!
//! What must hold: fields change under the spin lock only. The release that finds the latch free
//! wakes a thread of the queue, unless one that was woken before is still on its way.
//!
//! PostgreSQL's spin lock sleeps for 1 ms and more after 100 polls. This one gives its time slice
//! away, which is milder with more threads than cores.
//!
//! Cost in line transfers: 2 for each acquisition and each release, for shared ones too: the spin
//! lock's line, taken exclusively. Its holder's loss of the processor stops all readers.

use std::collections::VecDeque;

use sync::{CachePadded, SpinLock};

use super::{HeldLatch, Mode, Waiter};
use crate::caller::Caller;
use crate::gate::Gate;

/// LWLock as in PostgreSQL 9.4.
#[derive(Debug)]
pub struct FieldsLatch {
    fields: CachePadded<SpinLock<Fields>>,
    gates: Box<[CachePadded<Gate>]>,
}

#[derive(Debug)]
struct Fields {
    exclusive: bool,
    shared: u32,
    /// Whether a release may wake waiters.
    release_ok: bool,
    queue: VecDeque<Waiter>,
}

impl Fields {
    fn is_free(&self) -> bool {
        !self.exclusive && self.shared == 0
    }

    /// Takes the latch if the mode fits.
    fn take(&mut self, mode: Mode) -> bool {
        match mode {
            Mode::Shared if !self.exclusive => self.shared += 1,
            Mode::Exclusive if self.is_free() => self.exclusive = true,
            _ => return false,
        }
        true
    }

    /// Takes from the queue those that a release wakes.
    fn pop(&mut self, woken: &mut Vec<usize>) {
        let Some(first) = self.queue.pop_front() else { return };
        woken.push(first.thread);
        while first.mode == Mode::Shared
            && let Some(next) = self.queue.pop_front_if(|next| next.mode == Mode::Shared)
        {
            woken.push(next.thread);
        }
        self.release_ok = false;
    }
}

impl FieldsLatch {
    fn acquire(&self, me: &mut Caller, mode: Mode) {
        let mut woken = false;
        loop {
            let mut fields = me.locked(&self.fields);
            fields.release_ok |= woken;
            if fields.take(mode) {
                return;
            }
            fields.queue.push_back(Waiter { thread: me.number(), mode });
            drop(fields);
            me.retried();
            self.gates[me.number()].wait();
            woken = true;
        }
    }

    fn release(&self, me: &mut Caller, mode: Mode) {
        let mut woken = std::mem::take(&mut me.woken);
        let mut fields = me.locked(&self.fields);
        match mode {
            Mode::Shared => fields.shared -= 1,
            Mode::Exclusive => fields.exclusive = false,
        }
        if fields.release_ok && fields.is_free() {
            fields.pop(&mut woken);
        }
        drop(fields);
        woken.drain(..).for_each(|thread| self.gates[thread].post());
        me.woken = woken;
    }
}

impl HeldLatch for FieldsLatch {
    fn new(threads: usize) -> Self {
        let queue = VecDeque::with_capacity(threads);
        let fields = Fields { exclusive: false, shared: 0, release_ok: true, queue };
        Self {
            fields: CachePadded::new(SpinLock::new(&"fields", fields)),
            gates: (0..threads).map(|_| CachePadded::default()).collect(),
        }
    }

    fn lock_shared(&self, me: &mut Caller) {
        self.acquire(me, Mode::Shared);
    }

    fn unlock_shared(&self, me: &mut Caller) {
        self.release(me, Mode::Shared);
    }

    fn lock(&self, me: &mut Caller) {
        self.acquire(me, Mode::Exclusive);
    }

    fn unlock(&self, me: &mut Caller) {
        self.release(me, Mode::Exclusive);
    }

    fn shares(&self, me: &mut Caller) -> u32 {
        me.locked(&self.fields).shared
    }
}
