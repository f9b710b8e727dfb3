//! A lock for short critical sections: a few dozen instructions, no I/O, no park.
//!
//! It counts as a latch. Waiters queue, and the first one alone polls the lock ([`Spinners`]).
//! After a bounded number of polls it gives its time slice to the kernel, because the holder may be
//! a preempted thread. The holder is no parked fiber, because no fiber parks with a latch.
//!
//! Each lock has a class, by which the profiler names it ([`crate::profile`]).

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

use crate::atomic::{AtomicBool, Ordering};
use crate::held;
use crate::machine::preemption_point;
use crate::profile::{self, Class, Hold, Kind, Site, Waiting};
use crate::spinners::{Spinners, poll};

/// Mutual exclusion by spinning.
#[derive(Debug)]
pub struct SpinLock<T> {
    class: Class,
    spinners: Spinners,
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives out one `&mut T` at a time, so sharing it between threads only moves `T`
// between them.
unsafe impl<T: Send> Sync for SpinLock<T> {}

/// Access to what a [`SpinLock`] protects.
#[derive(Debug)]
pub struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
    hold: Hold,
    // A guard belongs to the thread that took it: the count of held latches is per thread.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl<T> SpinLock<T> {
    /// An open lock of this class.
    #[cfg(not(loom))]
    pub const fn new(class: Class, value: T) -> Self {
        Self {
            class,
            spinners: Spinners::new(),
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// An open lock of this class.
    #[cfg(loom)]
    pub fn new(class: Class, value: T) -> Self {
        Self {
            class,
            spinners: Spinners::new(),
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        self.lock_by(Kind::Acquire)
    }

    /// As [`SpinLock::lock`], for a caller that gave the lock up in order to wait.
    #[inline]
    #[track_caller]
    pub(crate) fn lock_again(&self) -> SpinGuard<'_, T> {
        self.lock_by(Kind::Reacquire)
    }

    #[inline(always)]
    #[track_caller]
    fn lock_by(&self, kind: Kind) -> SpinGuard<'_, T> {
        if profile::is_on() {
            return self.lock_counted(kind, Location::caller());
        }
        if !self.take() {
            self.take_contended(|| {});
        }
        self.guard(Hold::NONE)
    }

    #[cold]
    #[inline(never)]
    fn lock_counted(&self, kind: Kind, at: &'static Location<'static>) -> SpinGuard<'_, T> {
        let site = &Site { class: self.class, kind, at };
        if self.take() {
            return self.guard(Hold::begin(self.key(), || *site));
        }
        let waiting = Waiting::begin(self.key());
        self.take_contended(|| profile::mark(self.key()));
        self.guard(waiting.hold(self.key(), site))
    }

    /// Takes the lock if it is free.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        let at = Location::caller();
        let site = move || Site { class: self.class, kind: Kind::Acquire, at };
        self.take().then(|| self.guard(Hold::begin(self.key(), site)))
    }

    #[inline(always)]
    #[cfg_attr(model, track_caller)] // the ledger of cache lines names the caller
    fn take(&self) -> bool {
        // Acquire: what the last holder wrote is seen. Relaxed on failure: nothing is read.
        let taken = self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if taken {
            held::acquire();
            preemption_point();
        }
        taken
    }

    /// Takes the lock in turn. Calls `held_by_another` at each look that finds it taken.
    #[cold]
    fn take_contended(&self, held_by_another: impl Fn()) {
        self.spinners.in_turn(|_| {
            poll(|| {
                // Relaxed: only a hint when to try; `take` acquires.
                if self.locked.load(Ordering::Relaxed) {
                    held_by_another();
                    return false;
                }
                self.take()
            });
        });
    }

    #[inline(always)]
    fn guard(&self, hold: Hold) -> SpinGuard<'_, T> {
        SpinGuard { lock: self, hold, _not_send: std::marker::PhantomData }
    }

    /// Its class.
    pub(crate) fn class(&self) -> Class {
        self.class
    }

    /// The lock's name in the profiler's marks: its address.
    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Access without locking, for the only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value, from the only owner.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so this thread holds the lock and no other reference is out.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists, so this thread holds the lock and no other reference is out.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.hold.end(self.lock.key());
        held::release();
        preemption_point();
        // Release: the next holder sees what this one wrote.
        self.lock.locked.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn excludes_and_counts_as_a_latch() {
        let lock = SpinLock::new(&"test", 0u64);
        let threads = crate::stress::threads() as u64;
        let sections: u64 = if cfg!(miri) { 20 } else { (80_000 / threads).max(20) };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..sections).for_each(|_| *lock.lock() += 1));
            }
        });
        let guard = lock.lock();
        assert_eq!(held::count(), 1);
        assert!(lock.try_lock().is_none());
        assert_eq!(*guard, threads * sections);
        drop(guard);
        assert_eq!(held::count(), 0);
    }
}
