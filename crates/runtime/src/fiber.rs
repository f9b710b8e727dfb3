//! Fibers: what engine code runs on.

use std::time::Duration;

/// Runs `body` on a new fiber of this core.
pub fn spawn_local(_body: impl FnOnce() + 'static) {
    todo!()
}

/// Lets every other fiber of this core that can run do so first.
pub fn yield_now() {
    todo!()
}

/// Parks the fiber for a time; an interrupt does not end it early.
pub fn sleep(_time: Duration) {
    todo!()
}

/// Yields when the fiber's time slice (about 1 ms) is used up; cheap otherwise.
pub fn safe_point() {
    todo!()
}

/// Runs `body` on the worker's own big stack: for deep recursion (parser, planner). It must not park.
pub fn on_worker_stack<R>(_body: impl FnOnce() -> R + Send) -> R {
    todo!()
}
