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

use std::collections::VecDeque;

use sync::atomic::{AtomicU32, Ordering};
use sync::{CachePadded, SpinLock};

use super::{HeldLatch, Mode, Waiter};
use crate::caller::Caller;
use crate::gate::Gate;

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
    queue: CachePadded<SpinLock<VecDeque<Waiter>>>,
    gates: Box<[CachePadded<Gate>]>,
    _attempt: std::marker::PhantomData<fn() -> A>,
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
            self.gates[me.number()].wait();
            // Relaxed: the flag publishes nothing else.
            self.state.fetch_or(RELEASE_OK, Ordering::Relaxed);
            if self.attempt(me, mode) {
                return;
            }
        }
    }

    fn enter(&self, me: &mut Caller, mode: Mode) {
        let mut queue = me.locked(&self.queue);
        // Relaxed: the second attempt and the release are ordered with it by the word itself.
        self.state.fetch_or(HAS_WAITERS, Ordering::Relaxed);
        queue.push_back(Waiter { thread: me.number(), mode });
    }

    /// Leaves the queue with the latch in hand.
    fn leave(&self, me: &mut Caller) {
        let mut queue = me.locked(&self.queue);
        if let Some(place) = queue.iter().position(|waiter| waiter.thread == me.number()) {
            queue.remove(place);
            if queue.is_empty() {
                // Relaxed: changed under the queue's lock.
                self.state.fetch_and(!HAS_WAITERS, Ordering::Relaxed);
            }
            return;
        }
        drop(queue);
        // Relaxed: as in `wait`. The post of the thread that took this one out is on its way.
        self.state.fetch_or(RELEASE_OK, Ordering::Relaxed);
        self.gates[me.number()].wait();
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
        let mut woken = std::mem::take(&mut me.woken);
        let mut queue = me.locked(&self.queue);
        match queue.front().map(|first| first.mode) {
            Some(Mode::Exclusive) => woken.extend(queue.pop_front().map(|first| first.thread)),
            Some(Mode::Shared) => queue.retain(|waiter| {
                let is_reader = waiter.mode == Mode::Shared;
                if is_reader {
                    woken.push(waiter.thread);
                }
                !is_reader
            }),
            None => {}
        }
        let gone = if queue.is_empty() { HAS_WAITERS } else { 0 };
        // Relaxed, both: changed under the queue's lock.
        if woken.is_empty() {
            self.state.fetch_and(!gone, Ordering::Relaxed);
        } else {
            self.state.fetch_and(!(gone | RELEASE_OK), Ordering::Relaxed);
        }
        drop(queue);
        woken.drain(..).for_each(|thread| self.gates[thread].post());
        me.woken = woken;
    }
}

impl<A: Attempt> HeldLatch for LwLock<A> {
    fn new(threads: usize) -> Self {
        Self {
            state: CachePadded::new(AtomicU32::new(RELEASE_OK)),
            queue: CachePadded::new(SpinLock::new(&"queue", VecDeque::with_capacity(threads))),
            gates: (0..threads).map(|_| CachePadded::default()).collect(),
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
