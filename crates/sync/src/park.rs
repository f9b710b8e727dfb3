//! Parking: how a fiber or thread waits, and how it is woken.
//!
//! The runtime installs a hook on each of its workers, so that engine code parks its fiber; on any
//! other thread parking parks the thread. [`park`] may return without a wake-up: the caller loops
//! around its condition. A wake-up given before the park is kept: the park returns at once.

use std::cell::Cell;
use std::task::Waker;

use crate::{core_local, held, machine};

/// The hook by which a thread of the runtime parks its running fiber.
pub trait ParkHook: Sync {
    /// A waker for the running fiber.
    fn current(&self) -> Waker;
    /// Parks the running fiber until it is woken; may return spuriously.
    fn park(&self);
    /// Lets others run, without waiting for a wake-up.
    fn yield_now(&self);
    /// Runs `pause`, in which the thread sleeps because another one holds a spin lock.
    fn spin(&self, pause: fn());
}

core_local! {
    static HOOK: Cell<Option<&'static dyn ParkHook>> = const { Cell::new(None) };
}

/// Sets how this thread parks, once, by the runtime at the start of a worker.
pub fn install(hook: &'static dyn ParkHook) {
    HOOK.with(|own| own.set(Some(hook)));
}

/// A waker for the caller. It is valid as long as it is kept; at worst it wakes spuriously.
pub fn current() -> Waker {
    match HOOK.with(Cell::get) {
        Some(hook) => hook.current(),
        None => machine::thread_waker(),
    }
}

/// Parks until woken through a waker from [`current`], or spuriously. No latch may be held.
pub fn park() {
    held::assert_none();
    match HOOK.with(Cell::get) {
        Some(hook) => hook.park(),
        None => machine::park_thread(),
    }
}

/// Lets others on this core (or thread) run.
pub fn yield_now() {
    held::assert_none();
    match HOOK.with(Cell::get) {
        Some(hook) => hook.yield_now(),
        None => machine::yield_thread(),
    }
}

/// Gives the rest of the thread's time slice to the kernel, because another thread holds a spin
/// lock. The running fiber keeps its core, and may hold latches.
#[cold]
pub(crate) fn yield_thread() {
    match HOOK.with(Cell::get) {
        Some(hook) => hook.spin(machine::yield_thread),
        None => machine::yield_thread(),
    }
}
