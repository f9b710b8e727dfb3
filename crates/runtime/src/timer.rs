//! This core's timers.

use std::time::Duration;

/// A timer that was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerId(u64);

/// Calls `action` on this core after `time`, on the worker's loop: it must not park.
pub fn after(_time: Duration, _action: impl FnOnce() + 'static) -> TimerId {
    todo!()
}

/// Takes a timer back; nothing happens when it has gone off. Only on the core that set it.
pub fn cancel(_timer: TimerId) {
    todo!()
}
