//! The model machine: virtual cores and threads in one thread of the operating system.
//!
//! Every access to shared memory goes through the [`Scheduler`] that runs the simulation. The
//! scheduler charges the access to the virtual thread's clock and may let another one run first.
//! The operation itself happens when the scheduler comes back. A thread that would sleep in `std`
//! parks here, so nothing ever blocks the one real thread. What must hold:
//!
//! 1. Only one virtual thread runs at a time, and it changes only inside a [`Scheduler`] call. So
//!    the plain cells below need no synchronization.
//! 2. Outside a simulation an access is only the operation, and a thread that would have to wait
//!    panics: nobody could wake it.

pub mod atomic;
pub mod channel;
pub mod ledger;
mod local;
mod lock;
mod once;

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Wake, Waker};

pub use local::CoreLocal;
pub(crate) use lock::Condvar;
pub use lock::{Mutex, MutexGuard};
pub use once::{LazyLock, Once, OnceLock};

/// The simulation that schedules the virtual threads. [`set_scheduler`] installs it.
pub trait Scheduler {
    /// The running virtual thread is about to touch shared memory; another may run first.
    fn access(&self);
    /// The running virtual thread is where the loss of its processor may uncover a race; others may
    /// run for long.
    fn preemption_point(&self);
    /// The running virtual thread spins: others run before it looks again.
    fn spin(&self);
    /// Lets the running virtual thread sleep until [`Scheduler::unpark`]; may return spuriously.
    fn park(&self);
    /// Wakes a virtual thread. A wake-up that comes before the park is kept.
    fn unpark(&self, thread: usize);
    /// The number of the running virtual thread; numbers begin at 1 and are not used again.
    fn current(&self) -> usize;
}

thread_local! {
    static SCHEDULER: Cell<Option<&'static dyn Scheduler>> = const { Cell::new(None) };
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// The scheduler of this thread's simulation from now on, or none.
pub fn set_scheduler(scheduler: Option<&'static dyn Scheduler>) {
    SCHEDULER.set(scheduler);
}

/// Charges an access to shared memory, and lets others run before it.
#[inline]
pub(crate) fn access() {
    if let Some(scheduler) = SCHEDULER.get() {
        scheduler.access();
    }
}

/// A place where the loss of the processor may uncover a race: others may run for long.
#[inline]
pub fn preemption_point() {
    if let Some(scheduler) = SCHEDULER.get() {
        scheduler.preemption_point();
    }
}

/// A read of memory that others may be changing: they may do so before it.
#[inline]
#[track_caller]
pub(crate) fn racy_access<T>(at: *const T) {
    ledger::read(at);
}

/// The running virtual thread; 0 outside a simulation.
#[inline]
pub(crate) fn current() -> usize {
    SCHEDULER.get().map_or(0, Scheduler::current)
}

/// Each virtual thread has a processor of its own.
pub fn current_processor() -> usize {
    current()
}

fn scheduler() -> &'static dyn Scheduler {
    SCHEDULER.get().expect("only a virtual thread of a simulation waits on the model machine")
}

/// Lets the other virtual threads run.
pub fn spin_loop() {
    scheduler().spin();
}

/// Lets the other virtual threads run.
pub fn yield_thread() {
    scheduler().spin();
}

/// Puts this virtual thread to sleep until its waker is called, or spuriously.
pub(crate) fn park_thread() {
    scheduler().park();
}

/// A waker for this virtual thread.
pub(crate) fn thread_waker() -> Waker {
    Waker::from(Arc::new(ThreadWaker(current())))
}

struct ThreadWaker(usize);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(scheduler) = SCHEDULER.get() {
            scheduler.unpark(self.0);
        }
    }
}

/// The next number of a sequence that begins at 0.
pub(crate) fn next_number() -> usize {
    NUMBER.replace(NUMBER.get() + 1)
}
