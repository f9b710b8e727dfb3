//! Time: a monotonic clock cached once per turn of the core's loop, the precise clock, and the calendar's.

use std::time::Duration;

use crate::{os, worker};

/// Monotonic nanoseconds as of this turn of the core's loop; precise on a thread that is no worker.
#[inline]
pub fn now() -> u64 {
    worker::current().map_or_else(precise, |worker| worker.now.get())
}

/// Monotonic nanoseconds now.
pub fn precise() -> u64 {
    os::clock::monotonic()
}

/// Microseconds since 1970-01-01 00:00 UTC, now.
pub fn wall() -> i64 {
    (os::clock::calendar() / 1000) as i64
}

/// Lets this thread sleep: for threads that are no workers ([`crate::fiber::sleep`] is for fibers).
pub fn sleep_thread(time: Duration) {
    debug_assert!(worker::current().is_none(), "a core doesn't sleep while it has fibers");
    os::thread::sleep(time);
}
