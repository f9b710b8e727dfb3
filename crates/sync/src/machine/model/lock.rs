//! Locks in which a virtual thread sleeps.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::task::Waker;

/// As `std::sync::Mutex`, without poison.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    taken: Cell<bool>,
    waiters: RefCell<VecDeque<Waker>>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock admits one virtual thread at a time, and all run on one real thread.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Mutex<T> {}

/// Holds a [`Mutex`].
#[derive(Debug)]
pub struct MutexGuard<'a, T>(&'a Mutex<T>);

impl<T> Mutex<T> {
    /// An open lock.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex {
            taken: Cell::new(false),
            waiters: RefCell::new(VecDeque::new()),
            value: UnsafeCell::new(value),
        }
    }

    /// Sleeps until the lock is free, and takes it.
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        super::ledger::write(&self.taken);
        while self.taken.replace(true) {
            self.waiters.borrow_mut().push_back(super::thread_waker());
            super::park_thread();
        }
        MutexGuard(self)
    }

    /// Access without locking, for the only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.0.taken.set(false);
        let waiter = self.0.waiters.borrow_mut().pop_front();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

/// Where virtual threads sleep until a state under a [`Mutex`] changes.
#[derive(Debug, Default)]
pub(crate) struct Condvar(RefCell<VecDeque<Waker>>);

// SAFETY: all virtual threads run on one real thread.
unsafe impl Send for Condvar {}
// SAFETY: as above.
unsafe impl Sync for Condvar {}

impl Condvar {
    /// A condition that nobody waits for.
    pub(crate) const fn new() -> Condvar {
        Condvar(RefCell::new(VecDeque::new()))
    }

    /// Gives the lock back, sleeps until notified or spuriously, and takes the lock again.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let mutex = guard.0;
        self.0.borrow_mut().push_back(super::thread_waker());
        drop(guard);
        super::park_thread();
        mutex.lock()
    }

    /// Wakes one of the threads that wait.
    pub(crate) fn notify_one(&self) {
        let waiter = self.0.borrow_mut().pop_front();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// Wakes all threads that wait.
    pub(crate) fn notify_all(&self) {
        let waiters = self.0.take();
        waiters.into_iter().for_each(Waker::wake);
    }
}
