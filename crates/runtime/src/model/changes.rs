//! Changes of descriptors, and the virtual threads that wait for any of them.

use std::cell::RefCell;

use super::machine::here;

thread_local! {
    /// Threads that wait until something changes.
    static WAITING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The running thread is woken at the next change; it parks next.
pub(super) fn wait() {
    let thread = here().current();
    WAITING.with_borrow_mut(|waiting| {
        if !waiting.contains(&thread) {
            waiting.push(thread);
        }
    });
}

/// The running thread waits no longer.
pub(super) fn stop_waiting() {
    let thread = here().current();
    WAITING.with_borrow_mut(|waiting| waiting.retain(|waits| *waits != thread));
}

/// Something changed at a descriptor: wakes the threads that wait.
pub(super) fn tell() {
    WAITING.take().into_iter().for_each(|thread| here().wake(thread));
}
