//! PostgreSQL's LWLock since 9.5: one state word, and a queue for threads that must wait.
//!
//! The word counts readers in its low 24 bits and has three flags: [`EXCLUSIVE`], [`HAS_WAITERS`],
//! [`RELEASE_OK`]. How a thread changes the word is the difference between the variants
//! ([`Attempt`]); the queue is the same.
//!
//! 1. A thread attempts to take the latch. If that fails, it enters the queue, sets
//!    [`HAS_WAITERS`], and attempts again. If it then has the latch, it leaves the queue. If a
//!    release has taken it out meanwhile, it allows wake-ups again and takes the post that is on
//!    its way. If the second attempt fails too, it sleeps on its gate. Woken, it allows further
//!    wake-ups and begins anew.
//! 2. A release subtracts its share. The latch may then be free, have waiters and allow wake-ups.
//!    If so, the release takes out the first waiter and, if that is a reader, all readers. It
//!    forbids further wake-ups until one of them has run.
//!
//! What must hold: [`HAS_WAITERS`] is set while the queue has threads. No wake-up is lost: entering
//! the queue and a release both change the same word. A release that comes first makes the second
//! attempt succeed; one that comes later sees the flag.
//!
//! Orderings: a change that takes the latch acquires; one that gives it back releases. The queue
//! has a spin lock of its own.
//!
//! Cost in line transfers: the variant's for the word. Each step of a wait costs more:
//!
//! - Entering costs 1 for the queue's lock with its ends, 1 for the last thread's node, and 1 for
//!   the flag of waiters. The second attempt costs what the first one did.
//! - A woken thread takes its node back for 1, and the word for 1. Then it attempts again.
//! - A wake-up costs 1 for the queue's lock, 1 for the word, and 1 for the node of each thread.

use sync::CachePadded;
use sync::atomic::{AtomicU32, Ordering};

use super::{HeldLatch, Mode};
use crate::caller::Caller;
use crate::spin::Word;
use crate::waiters::{Choice, Queue, Waiters};

/// A reader.
pub(super) const SHARED: u32 = 1;
/// A writer holds the latch.
pub(super) const EXCLUSIVE: u32 = 1 << 24;
/// The latch is held.
pub(super) const HELD: u32 = (1 << 25) - 1;
/// Threads are in the queue.
const HAS_WAITERS: u32 = 1 << 30;
/// A release may wake waiters.
const RELEASE_OK: u32 = 1 << 29;

/// How a thread changes the state word.
pub trait Attempt {
    /// Takes a share if no writer holds the latch.
    fn share(state: &AtomicU32, me: &mut Caller) -> Outcome;
    /// Takes the latch if no other thread holds it.
    fn take(state: &AtomicU32, me: &mut Caller) -> Outcome;
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The thread has the latch.
    Taken,
    /// Another thread holds it.
    Refused,
    /// Another thread held it, and this word was left when the attempt was undone. The caller owes
    /// what a release owes.
    Undone(u32),
}

/// The latch.
#[derive(Debug)]
pub struct LwLock<A> {
    state: CachePadded<AtomicU32>,
    list: CachePadded<List>,
    waiters: Waiters,
    _attempt: std::marker::PhantomData<fn() -> A>,
}

/// The threads that must wait.
#[derive(Debug, Default)]
struct List {
    mutex: Word,
    queue: Queue,
}

impl<A: Attempt> LwLock<A> {
    fn attempt(&self, me: &mut Caller, mode: Mode) -> bool {
        let outcome = match mode {
            Mode::Shared => A::share(&self.state, me),
            Mode::Exclusive => A::take(&self.state, me),
        };
        if let Outcome::Undone(left) = outcome {
            self.released(me, left);
        }
        outcome == Outcome::Taken
    }

    #[inline]
    fn acquire(&self, me: &mut Caller, mode: Mode) {
        if !self.attempt(me, mode) {
            self.wait(me, mode);
        }
    }

    #[cold]
    fn wait(&self, me: &mut Caller, mode: Mode) {
        loop {
            me.retried();
            self.enter(me, mode);
            if self.attempt(me, mode) {
                return self.leave(me);
            }
            self.waiters.sleep(me, &"LWLock");
            // Relaxed: the flag publishes nothing else.
            self.state.fetch_or(RELEASE_OK, Ordering::Relaxed);
            if self.attempt(me, mode) {
                return;
            }
        }
    }

    fn enter(&self, me: &mut Caller, mode: Mode) {
        let List { mutex, queue } = &*self.list;
        let _held = mutex.lock(me, &"LWLock's queue");
        // Relaxed: the second attempt and the release are ordered with it by the word itself.
        self.state.fetch_or(HAS_WAITERS, Ordering::Relaxed);
        self.waiters.enter(queue, me, mode as usize);
    }

    /// Leaves the queue with the latch in hand.
    fn leave(&self, me: &mut Caller) {
        let List { mutex, queue } = &*self.list;
        let held = mutex.lock(me, &"LWLock's queue");
        if self.waiters.leave(queue, me) {
            if queue.is_empty() {
                // Relaxed: changed under the queue's lock.
                self.state.fetch_and(!HAS_WAITERS, Ordering::Relaxed);
            }
            return;
        }
        drop(held);
        // Relaxed: as in `wait`. The post of the thread that took this one out is on its way.
        self.state.fetch_or(RELEASE_OK, Ordering::Relaxed);
        self.waiters.sleep(me, &"LWLock");
    }

    #[inline]
    fn release(&self, me: &mut Caller, share: u32) {
        // Release: the next holder sees what this one wrote.
        let left = self.state.fetch_sub(share, Ordering::Release) - share;
        self.released(me, left);
    }

    /// Does what a release owes: `left` is the word that it left.
    #[inline]
    fn released(&self, me: &mut Caller, left: u32) {
        if left & (HELD | HAS_WAITERS | RELEASE_OK) == HAS_WAITERS | RELEASE_OK {
            self.wake(me);
        }
    }

    #[cold]
    fn wake(&self, me: &mut Caller) {
        let List { mutex, queue } = &*self.list;
        let held = mutex.lock(me, &"LWLock's queue");
        let mut first = None;
        let chain = self.waiters.take(queue, |wants| {
            const READER: usize = Mode::Shared as usize;
            match (first, wants) {
                (None, _) | (Some(READER), READER) => {
                    first.get_or_insert(wants);
                    Choice::Take
                }
                (Some(READER), _) => Choice::Pass,
                (Some(_), _) => Choice::Stop,
            }
        });
        let gone = if queue.is_empty() { HAS_WAITERS } else { 0 };
        // Relaxed, both: changed under the queue's lock.
        if chain.is_empty() {
            self.state.fetch_and(!gone, Ordering::Relaxed);
        } else {
            self.state.fetch_and(!(gone | RELEASE_OK), Ordering::Relaxed);
        }
        drop(held);
        self.waiters.wake(chain);
    }
}

impl<A: Attempt> HeldLatch for LwLock<A> {
    fn new(threads: usize) -> Self {
        Self {
            state: CachePadded::new(AtomicU32::new(RELEASE_OK)),
            list: CachePadded::default(),
            waiters: Waiters::new(threads),
            _attempt: std::marker::PhantomData,
        }
    }

    #[inline]
    fn lock_shared(&self, me: &mut Caller) {
        self.acquire(me, Mode::Shared);
    }

    #[inline]
    fn unlock_shared(&self, me: &mut Caller) {
        self.release(me, SHARED);
    }

    #[inline]
    fn lock(&self, me: &mut Caller) {
        self.acquire(me, Mode::Exclusive);
    }

    #[inline]
    fn unlock(&self, me: &mut Caller) {
        self.release(me, EXCLUSIVE);
    }

    fn shares(&self, _: &mut Caller) -> u32 {
        // Relaxed: a count.
        self.state.load(Ordering::Relaxed) & (HELD & !EXCLUSIVE)
    }
}
