//! Time: a monotonic clock cached once per turn of the core's loop, the precise clock, and the
//! calendar's.

use std::cell::Cell;
use std::time::Duration;

use sync::core_local;

use crate::os;

core_local! {
    /// Monotonic nanoseconds as of this turn of the core's loop; 0 on a thread that is no worker.
    static TURN: Cell<u64> = const { Cell::new(0) };
}

/// Monotonic nanoseconds as of this turn of the core's loop; precise on a thread that is no worker.
#[inline]
pub fn now() -> u64 {
    match TURN.get() {
        0 => precise(),
        turn => turn,
    }
}

/// Sets the time of this core's turn; 0 when the thread is a worker no more.
#[inline]
pub(crate) fn set_turn(now: u64) {
    TURN.set(now);
}

/// Reads the clock for this core's turn.
pub(crate) fn begin_turn() -> u64 {
    let now = precise();
    TURN.set(now);
    now
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
    debug_assert!(TURN.get() == 0, "a core doesn't sleep while it has fibers");
    os::thread::sleep(time);
}
