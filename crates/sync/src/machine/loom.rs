//! Loom's machine: it explores the interleavings of a few threads.
//!
//! It carries what the structures of this crate need; the crates above are not built for loom,
//! their models include single files.

use std::sync::{Arc, PoisonError};
use std::task::{Wake, Waker};

/// Loom's atomics.
pub mod atomic {
    pub use loom::sync::atomic::{
        AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
}

pub use loom::sync::MutexGuard;

/// A lock in which a thread may sleep.
#[derive(Debug, Default)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An open lock.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(loom::sync::Mutex::new(value))
    }

    /// Sleeps until the lock is free, and takes it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where threads sleep until a state under a [`Mutex`] changes.
#[derive(Debug, Default)]
pub(crate) struct Condvar(loom::sync::Condvar);

impl Condvar {
    /// A condition that nobody waits for.
    pub(crate) fn new() -> Condvar {
        Condvar(loom::sync::Condvar::new())
    }

    /// Gives the lock back, sleeps until notified, and takes the lock again.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes one of the threads that wait.
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all threads that wait.
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Declares state of which each of loom's threads has its own.
#[macro_export]
macro_rules! core_local {
    ($(#[$about:meta])* static $name:ident: $type:ty = const { $value:expr };) => {
        ::loom::thread_local! { $(#[$about])* static $name: $type = $value; }
    };
}

/// A place where the loss of the processor may uncover a race: loom explores all orders anyway.
#[inline(always)]
pub fn preemption_point() {}

/// A read of memory that others may be changing: loom does not explore it.
pub(crate) fn racy_access<T>(_: *const T) {}

/// Lets loom run another thread.
pub fn spin_loop() {
    loom::thread::yield_now();
}

/// Lets loom run another thread.
pub fn yield_thread() {
    loom::thread::yield_now();
}

/// Loom's threads share one processor.
pub fn current_processor() -> usize {
    0
}

/// Puts this thread to sleep until its waker is called.
pub(crate) fn park_thread() {
    loom::thread::park();
}

/// A waker for this thread.
pub(crate) fn thread_waker() -> Waker {
    Waker::from(Arc::new(ThreadWaker(loom::thread::current())))
}

struct ThreadWaker(loom::thread::Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Loom's threads share their number: loom has no statics, and the number only spreads load.
pub(crate) fn next_number() -> usize {
    0
}
