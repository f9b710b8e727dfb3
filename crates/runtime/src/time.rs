//! Time: a monotonic clock cached once per turn of the core's loop, the precise clock, and the calendar's.

use std::time::Duration;

use crate::worker;

/// Monotonic nanoseconds as of this turn of the core's loop; precise on a thread that is no worker.
#[inline]
pub fn now() -> u64 {
    worker::current().map_or_else(precise, |worker| worker.now.get())
}

/// Monotonic nanoseconds now.
pub fn precise() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Microseconds since 1970-01-01 00:00 UTC, now. No system call (the kernel's vdso).
pub fn wall() -> i64 {
    (clock(libc::CLOCK_REALTIME) / 1000) as i64
}

/// Lets this thread sleep: for threads that are no workers ([`crate::fiber::sleep`] is for fibers).
pub fn sleep_thread(time: Duration) {
    debug_assert!(worker::current().is_none(), "a core doesn't sleep while it has fibers");
    std::thread::sleep(time);
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; both clocks exist on every Linux.
    let failed = unsafe { libc::clock_gettime(which, &mut time) };
    assert!(failed == 0, "clock_gettime failed");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
