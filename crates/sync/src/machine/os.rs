//! The operating system's machine: `std`'s atomics, locks and threads.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // an interface to the machine

mod futex;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

pub(crate) use futex::Sleepers;

/// The processor's atomics.
///
/// Aliases and not re-exports, so that the lint which forbids `std`'s own names can tell the two
/// apart.
pub mod atomic {
    pub use std::sync::atomic::Ordering;

    /// An atomic `bool`.
    pub type AtomicBool = std::sync::atomic::AtomicBool;
    /// An atomic `i64`.
    pub type AtomicI64 = std::sync::atomic::AtomicI64;
    /// An atomic `u8`.
    pub type AtomicU8 = std::sync::atomic::AtomicU8;
    /// An atomic `u32`.
    pub type AtomicU32 = std::sync::atomic::AtomicU32;
    /// An atomic `u64`.
    pub type AtomicU64 = std::sync::atomic::AtomicU64;
    /// An atomic `usize`.
    pub type AtomicUsize = std::sync::atomic::AtomicUsize;
    /// An atomic pointer.
    pub type AtomicPtr<T> = std::sync::atomic::AtomicPtr<T>;

    /// Orders the accesses before it and those behind it.
    #[inline(always)]
    pub fn fence(ordering: Ordering) {
        std::sync::atomic::fence(ordering);
    }
}

/// Holds a [`Mutex`].
pub type MutexGuard<'a, T> = std::sync::MutexGuard<'a, T>;

/// A lock in which a thread may sleep: for threads beside the cores, or for sections that are
/// hardly ever contended. A panic under the lock leaves it usable, with the state as the panic left
/// it.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// An open lock.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Sleeps until the lock is free, and takes it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Access without locking, for the only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Where threads sleep until a state under a [`Mutex`] changes.
#[derive(Debug, Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl Condvar {
    /// A condition that nobody waits for.
    pub(crate) const fn new() -> Condvar {
        Condvar(std::sync::Condvar::new())
    }

    /// Gives the lock back, sleeps until notified or spuriously, and takes the lock again.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
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

/// Declares state of which each core has its own, written as `std::thread_local!` is. A thread that
/// is no core has its own, too.
///
/// The engine uses this and never `thread_local!`: on the model machine one thread plays many
/// cores.
#[macro_export]
macro_rules! core_local {
    ($($declaration:tt)*) => { ::std::thread_local! { $($declaration)* } };
}

/// A place where the loss of the processor may uncover a race: the kernel needs none.
#[inline(always)]
pub fn preemption_point() {}

/// Called before each read of memory that other threads may change. Does nothing here; on the model
/// machine it may switch threads.
#[inline(always)]
pub(crate) fn racy_access<T>(_: *const T) {}

/// Tells the processor that this thread spins.
#[inline]
pub fn spin_loop() {
    std::hint::spin_loop();
}

/// Gives the rest of the thread's time slice to the kernel: for the end of a bounded spin.
#[inline]
pub fn yield_thread() {
    std::thread::yield_now();
}

/// The number of the processor that runs this thread, which may have changed on return. Costs a few
/// nanoseconds and no system call: the kernel keeps the number in the thread's own memory.
#[inline]
pub fn current_processor() -> usize {
    // SAFETY: the call takes no argument and writes nothing of ours.
    let processor = unsafe { libc::sched_getcpu() };
    // A kernel without the call gives -1: all threads then seem to share one processor.
    usize::try_from(processor).unwrap_or(0)
}

/// Puts this thread to sleep until its waker is called, or spuriously.
pub(crate) fn park_thread() {
    std::thread::park();
}

/// A waker for this thread, made once: foreign threads that call into the runtime ask for it at
/// every call.
pub(crate) fn thread_waker() -> Waker {
    crate::core_local! {
        static WAKER: Waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    }
    WAKER.with(Waker::clone)
}

struct ThreadWaker(std::thread::Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The next number of a sequence that begins at 0.
pub(crate) fn next_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: only the number itself matters.
    NEXT.fetch_add(1, Ordering::Relaxed)
}
