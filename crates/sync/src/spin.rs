//! A lock for short critical sections: a few dozen instructions, no I/O, no park.
//!
//! It counts as a latch. A waiter spins a bounded number of times and then gives its time slice to
//! the kernel, because the holder may be a preempted thread. The holder is no parked fiber, because
//! no fiber parks with a latch.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use crate::atomic::{AtomicBool, Ordering, spin_loop};
use crate::held;
use crate::machine::{preemption_point, yield_thread};

const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// Mutual exclusion by spinning.
#[derive(Debug, Default)]
pub struct SpinLock<T> {
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
    // A guard belongs to the thread that took it: the count of held latches is per thread.
    _not_send: std::marker::PhantomData<*const ()>,
}

impl<T> SpinLock<T> {
    /// An open lock.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// An open lock.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Self { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.lock_contended(),
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        // Acquire: what the last holder wrote is seen. Relaxed on failure: nothing is read.
        self.locked.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).ok()?;
        held::acquire();
        preemption_point();
        Some(SpinGuard { lock: self, _not_send: std::marker::PhantomData })
    }

    #[cold]
    fn lock_contended(&self) -> SpinGuard<'_, T> {
        loop {
            for _ in 0..SPINS {
                // Relaxed: only a hint when to try; try_lock acquires.
                if !self.locked.load(Ordering::Relaxed)
                    && let Some(guard) = self.try_lock()
                {
                    return guard;
                }
                spin_loop();
            }
            yield_thread();
        }
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
        let lock = SpinLock::new(0u64);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..20_000).for_each(|_| *lock.lock() += 1));
            }
        });
        let guard = lock.lock();
        assert_eq!(held::count(), 1);
        assert!(lock.try_lock().is_none());
        assert_eq!(*guard, 60_000);
        drop(guard);
        assert_eq!(held::count(), 0);
    }
}
