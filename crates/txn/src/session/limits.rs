//! A session's longest waits for locks: settings of SQL's, kept where a wait reads them. They are written only when a
//! setting changes; only the session's own core reads them.

use std::time::Duration;

use sync::atomic::{AtomicU64, Ordering};

/// A session's limits, in nanoseconds; 0 where there is none.
#[derive(Default)]
pub struct WaitLimits {
    lock_timeout: AtomicU64,
    deadlock_timeout: AtomicU64,
}

impl WaitLimits {
    /// `lock_timeout`: a wait that lasts longer fails; None waits for ever.
    pub fn set_lock_timeout(&self, limit: Option<Duration>) {
        self.lock_timeout.store(nanoseconds(limit), Ordering::Relaxed); // each limit stands for itself
    }

    /// See [`WaitLimits::set_lock_timeout`].
    pub(super) fn lock_timeout(&self) -> Option<Duration> {
        limit(self.lock_timeout.load(Ordering::Relaxed)) // as above
    }

    /// `deadlock_timeout`: a wait looks for a deadlock once it has lasted so long. With None it looks when the engine finds
    /// best.
    pub fn set_deadlock_timeout(&self, limit: Option<Duration>) {
        self.deadlock_timeout.store(nanoseconds(limit), Ordering::Relaxed); // as above
    }

    /// See [`WaitLimits::set_deadlock_timeout`].
    pub(super) fn deadlock_timeout(&self) -> Option<Duration> {
        limit(self.deadlock_timeout.load(Ordering::Relaxed)) // as above
    }
}

fn nanoseconds(limit: Option<Duration>) -> u64 {
    limit.map_or(0, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

fn limit(nanoseconds: u64) -> Option<Duration> {
    (nanoseconds != 0).then(|| Duration::from_nanos(nanoseconds))
}
