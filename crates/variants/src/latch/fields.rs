//! The stock latch: fields under a spin lock (P15; PostgreSQL 9.4, `LWLockAcquireCommon` and
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
//! Orderings: the fields are relaxed, because the spin lock orders them. It also orders what a
//! holder of the latch wrote before what the next one reads.
//!
//! Cost in line transfers: 1 for each uncontended acquisition and 1 for each release, for shared
//! ones too. Spin lock and fields are on one line, as in PostgreSQL. Contended, the spin lock's
//! (`spin::TestTestAndSet`), and waiters' polls take the line from its holder. A holder that loses
//! its processor stops all readers.

use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::{HeldLatch, Mode};
use crate::caller::Caller;
use crate::spin::Word;
use crate::waiters::{Chain, Choice, Queue, Waiters};

/// LWLock as in PostgreSQL 9.4.
#[derive(Debug)]
pub struct FieldsLatch {
    fields: CachePadded<Fields>,
    waiters: Waiters,
}

#[derive(Debug)]
struct Fields {
    mutex: Word,
    /// Whether a release may wake waiters.
    release_ok: AtomicBool,
    exclusive: AtomicBool,
    shared: AtomicU32,
    queue: Queue,
}

/// Spin lock and fields are on one line.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Fields>() <= 64);

impl Fields {
    /// Takes the latch if the mode fits. Under the spin lock.
    fn take(&self, mode: Mode) -> bool {
        let exclusive = self.exclusive.load(Ordering::Relaxed);
        let shared = self.shared.load(Ordering::Relaxed);
        match mode {
            Mode::Shared if !exclusive => self.shared.store(shared + 1, Ordering::Relaxed),
            Mode::Exclusive if !exclusive && shared == 0 => self.exclusive.store(true, Ordering::Relaxed),
            _ => return false,
        }
        true
    }

    /// Gives the latch back. Whether it is free then. Under the spin lock.
    fn give(&self, mode: Mode) -> bool {
        match mode {
            Mode::Exclusive => {
                self.exclusive.store(false, Ordering::Relaxed);
                true
            }
            Mode::Shared => {
                let left = self.shared.load(Ordering::Relaxed) - 1;
                self.shared.store(left, Ordering::Relaxed);
                left == 0
            }
        }
    }
}

impl FieldsLatch {
    fn acquire(&self, me: &mut Caller, mode: Mode) {
        let mut woken = false;
        loop {
            let held = self.fields.mutex.lock(me, &"LWLock's fields");
            if woken {
                self.fields.release_ok.store(true, Ordering::Relaxed);
            }
            if self.fields.take(mode) {
                return;
            }
            self.waiters.enter(&self.fields.queue, me, mode as usize);
            drop(held);
            me.retried();
            self.waiters.sleep(me, &"LWLock");
            woken = true;
        }
    }

    fn release(&self, me: &mut Caller, mode: Mode) {
        let held = self.fields.mutex.lock(me, &"LWLock's fields");
        let wakes = self.fields.give(mode)
            && !self.fields.queue.is_empty()
            && self.fields.release_ok.load(Ordering::Relaxed);
        if !wakes {
            return;
        }
        self.fields.release_ok.store(false, Ordering::Relaxed);
        let chain = self.pop();
        drop(held);
        self.waiters.wake(chain);
    }

    /// Takes from the queue those that a release wakes.
    fn pop(&self) -> Chain {
        let mut before = None;
        self.waiters.take(&self.fields.queue, |wants| {
            let fits = before.is_none_or(|before| before == SHARED && wants == SHARED);
            before = Some(wants);
            if fits { Choice::Take } else { Choice::Stop }
        })
    }
}

/// A reader, as the queue has it.
const SHARED: usize = Mode::Shared as usize;

impl HeldLatch for FieldsLatch {
    fn new(threads: usize) -> Self {
        let fields = Fields {
            mutex: Word::default(),
            release_ok: AtomicBool::new(true),
            exclusive: AtomicBool::new(false),
            shared: AtomicU32::new(0),
            queue: Queue::default(),
        };
        Self { fields: CachePadded::new(fields), waiters: Waiters::new(threads) }
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
        let _held = self.fields.mutex.lock(me, &"LWLock's fields");
        self.fields.shared.load(Ordering::Relaxed)
    }
}
