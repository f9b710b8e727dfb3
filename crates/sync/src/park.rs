//! Parking: how whoever runs here waits, and how it is woken.
//!
//! The runtime installs a hook on each of its workers, so that engine code parks its fiber; on any other thread parking
//! parks the thread. [`park`] may return without a wake-up: the caller loops around its condition. A wake-up given
//! before the park is kept: the park returns at once.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Wake, Waker};

#[cfg(loom)]
use loom::{thread, thread_local};
#[cfg(not(loom))]
use std::thread;

use crate::held;

/// How a thread of the runtime parks what runs on it.
pub trait ParkHook: Sync {
    /// A waker for what is running (fiber).
    fn current(&self) -> Waker;
    /// Parks what is running until it is woken, or spuriously.
    fn park(&self);
    /// Lets others run, without waiting for a wake-up.
    fn yield_now(&self);
}

thread_local! {
    static HOOK: Cell<Option<&'static dyn ParkHook>> = Cell::new(None);
}

/// Sets how this thread parks, once, by the runtime at the start of a worker.
pub fn install(hook: &'static dyn ParkHook) {
    HOOK.with(|own| own.set(Some(hook)));
}

/// A waker for whoever calls: valid for as long as it is kept, waking at worst spuriously.
pub fn current() -> Waker {
    match HOOK.with(Cell::get) {
        Some(hook) => hook.current(),
        None => thread_waker(),
    }
}

/// Parks until woken through a waker from [`current`], or spuriously. No latch may be held.
pub fn park() {
    held::assert_none();
    match HOOK.with(Cell::get) {
        Some(hook) => hook.park(),
        None => thread::park(),
    }
}

/// Lets others on this core (or thread) run.
pub fn yield_now() {
    held::assert_none();
    match HOOK.with(Cell::get) {
        Some(hook) => hook.yield_now(),
        None => thread::yield_now(),
    }
}

/// A waker for this thread, made once: foreign threads that call into the runtime ask for it at every call.
#[cfg(not(loom))]
fn thread_waker() -> Waker {
    thread_local! {
        static WAKER: Waker = Waker::from(Arc::new(ThreadWaker(thread::current())));
    }
    WAKER.with(Waker::clone)
}

#[cfg(loom)]
fn thread_waker() -> Waker {
    Waker::from(Arc::new(ThreadWaker(thread::current())))
}

struct ThreadWaker(thread::Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
