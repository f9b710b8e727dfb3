//! A queue of waiters: first in, first out, handed over in constant time.
//!
//! A waiter enqueues a node that lies on its own stack, tests its condition again, and only then
//! parks. A thread that makes the condition true changes the state first and wakes afterwards. One
//! of the two always sees the other: enqueue, fence, look || change, fence, look for waiters.
//! Wakers are called after the queue's lock is released. The profiler counts each wait by the
//! queue's class.
//!
//! A waiter that leaves (condition true, or interrupted) takes its node out. If it had been chosen
//! by `wake_one` and leaves because of an interrupt, it passes the wake-up on.

use std::cell::{Cell, UnsafeCell};
use std::convert::Infallible;
use std::marker::PhantomPinned;
use std::pin::{Pin, pin};
use std::ptr;
use std::task::Waker;

use crate::atomic::{AtomicUsize, Ordering, fence};
use crate::park;
use crate::profile::{self, Class};
use crate::spin::{SpinGuard, SpinLock};

/// Waiters in order of arrival.
#[derive(Debug)]
pub struct WaitQueue {
    list: SpinLock<List>,
    /// Number of nodes in `list`, readable without its lock. Written only under it.
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct List {
    first: *const Node,
    last: *const Node,
}

// SAFETY: the pointers are followed only under the queue's lock, and a node leaves the list before
// it dies.
unsafe impl Send for List {}

impl List {
    const EMPTY: List = List { first: ptr::null(), last: ptr::null() };
}

/// A waiter's place in the queue. The cells are touched only under the queue's lock, except by the
/// owner before it is first enqueued.
struct Node {
    previous: Cell<*const Node>,
    next: Cell<*const Node>,
    waker: UnsafeCell<Option<Waker>>,
    /// In the list now.
    queued: Cell<bool>,
    _pinned: PhantomPinned,
}

/// Takes its node out of the queue when the wait ends in whatever way.
struct Waiter<'a> {
    queue: &'a WaitQueue,
    node: Pin<&'a Node>,
}

impl WaitQueue {
    /// An empty queue, in which waits are of this class.
    #[cfg(not(loom))]
    pub const fn new(class: Class) -> Self {
        Self { list: SpinLock::new(class, List::EMPTY), waiting: AtomicUsize::new(0) }
    }

    /// An empty queue, in which waits are of this class.
    #[cfg(loom)]
    pub fn new(class: Class) -> Self {
        Self { list: SpinLock::new(class, List::EMPTY), waiting: AtomicUsize::new(0) }
    }

    /// Waits until `condition` holds. It is called by the waiter alone, never under the queue's
    /// lock.
    #[track_caller]
    pub fn wait_until(&self, condition: impl FnMut() -> bool) {
        let waited: Result<(), Infallible> = self.wait_until_with(condition, || {
            park::park();
            Ok(())
        });
        match waited {
            Ok(()) => {}
        }
    }

    /// As [`Self::wait_until`], with the caller's way to park, which may give up with an error (an
    /// interrupt).
    #[track_caller]
    pub fn wait_until_with<E>(
        &self,
        mut condition: impl FnMut() -> bool,
        park: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        if condition() {
            return Ok(());
        }
        profile::wait(self.list.class(), || self.wait_in_line(condition, park))
    }

    fn wait_in_line<E>(
        &self,
        mut condition: impl FnMut() -> bool,
        mut park: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let node = pin!(Node {
            previous: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
            waker: UnsafeCell::new(None),
            queued: Cell::new(false),
            _pinned: PhantomPinned,
        });
        let waiter = Waiter { queue: self, node: node.into_ref() };
        waiter.enqueue(|| self.list.lock());
        loop {
            if condition() {
                return Ok(());
            }
            if let Err(error) = park() {
                if !waiter.leave() {
                    self.wake_one();
                }
                return Err(error);
            }
            if condition() {
                return Ok(());
            }
            waiter.enqueue(|| self.list.lock_again());
        }
    }

    /// Wakes the longest waiting. Call it after the state it waits for has been changed.
    pub fn wake_one(&self) -> bool {
        if !self.has_waiters() {
            return false;
        }
        let waker = self.pop(&mut self.list.lock());
        match waker {
            Some(waker) => {
                waker.wake();
                true
            }
            None => false,
        }
    }

    /// Wakes all who wait now. Call it after the state they wait for has been changed.
    pub fn wake_all(&self) {
        if !self.has_waiters() {
            return;
        }
        // Only as many as wait now: one that is woken and waits again must not keep this going.
        // Relaxed: a bound, exact enough because every waiter that came before the change is
        // counted.
        for _ in 0..self.waiting.load(Ordering::Relaxed) {
            let waker = self.pop(&mut self.list.lock());
            match waker {
                Some(waker) => waker.wake(),
                None => return,
            }
        }
    }

    /// Whether anybody waits; ordered after the caller's change of state.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        // SeqCst fence: pairs with the one in `enqueue`; either the waiter sees our change or we
        // see the waiter.
        fence(Ordering::SeqCst);
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Takes the first node out and gives its waker, to be called once the lock is released.
    fn pop(&self, list: &mut List) -> Option<Waker> {
        if list.first.is_null() {
            return None;
        }
        // SAFETY: nodes in the list are alive (a waiter takes its node out before it dies) and the
        // lock is held.
        let node = unsafe { &*list.first };
        self.unlink(list, node);
        // SAFETY: the lock is held, so nobody else touches the waker.
        unsafe { (*node.waker.get()).take() }
    }

    fn unlink(&self, list: &mut List, node: &Node) {
        let (previous, next) = (node.previous.get(), node.next.get());
        match previous.is_null() {
            true => list.first = next,
            // SAFETY: neighbours in the list are alive and the lock is held.
            false => unsafe { (*previous).next.set(next) },
        }
        match next.is_null() {
            true => list.last = previous,
            // SAFETY: as above.
            false => unsafe { (*next).previous.set(previous) },
        }
        node.queued.set(false);
        // Relaxed: changed under the lock only; the fences in `enqueue` and `has_waiters` order it.
        self.waiting.store(self.waiting.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }
}

impl Waiter<'_> {
    /// Puts the node at the end of the queue unless it is in it still (after a spurious wake-up).
    fn enqueue<'q>(&'q self, lock: impl FnOnce() -> SpinGuard<'q, List>) {
        let waker = park::current();
        {
            let mut list = lock();
            let node = self.node.get_ref();
            if !node.queued.get() {
                // SAFETY: the lock is held, so nobody else touches the waker.
                unsafe { *node.waker.get() = Some(waker) };
                node.previous.set(list.last);
                node.next.set(ptr::null());
                match list.last.is_null() {
                    true => list.first = node,
                    // SAFETY: nodes in the list are alive and the lock is held.
                    false => unsafe { (*list.last).next.set(node) },
                }
                list.last = node;
                node.queued.set(true);
                // Relaxed: changed under the lock only; the fence below orders it.
                self.queue.waiting.store(self.queue.waiting.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
        }
        // SeqCst fence: pairs with `has_waiters`.
        fence(Ordering::SeqCst);
    }

    /// Takes the node out; false when a waker had taken it out already.
    fn leave(&self) -> bool {
        let mut list = self.queue.list.lock();
        let queued = self.node.queued.get();
        if queued {
            self.queue.unlink(&mut list, self.node.get_ref());
        }
        queued
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::atomic::{AtomicBool, AtomicU64};

    #[test]
    fn hands_over_to_many_threads() {
        let threads = crate::stress::threads();
        let each = (2000 / threads).max(10);
        let queue = WaitQueue::new(&"test");
        let tokens = AtomicU64::new(0);
        let take = || tokens.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1)).is_ok();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..each {
                        queue.wait_until(take);
                    }
                });
            }
            for _ in 0..threads * each {
                tokens.fetch_add(1, Ordering::AcqRel);
                queue.wake_one();
            }
        });
        assert_eq!(tokens.load(Ordering::Acquire), 0);
        assert!(!queue.has_waiters());
    }

    #[test]
    fn an_interrupted_waiter_leaves_and_passes_its_wake_up_on() {
        let queue = WaitQueue::new(&"test");
        let open = AtomicBool::new(false);
        assert_eq!(queue.wait_until_with(|| false, || Err("stop")), Err("stop"));
        assert!(!queue.has_waiters());
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                while !queue.has_waiters() {
                    std::thread::yield_now();
                }
                queue.wait_until(|| open.load(Ordering::Acquire));
            });
            // The first waiter is chosen by wake_one while it gives up: the second must get the
            // wake-up.
            let gave_up = queue.wait_until_with(
                || false,
                || {
                    while queue.waiting.load(Ordering::Relaxed) < 2 {
                        std::thread::yield_now();
                    }
                    open.store(true, Ordering::Release);
                    queue.wake_one();
                    Err(())
                },
            );
            assert_eq!(gave_up, Err(()));
            second.join().unwrap();
        });
    }
}
