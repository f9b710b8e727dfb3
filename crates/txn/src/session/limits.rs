//! A session's limits of waits for locks. They are settings of SQL, kept where a wait reads them.
//! They are written only when a setting changes, and only the session's own core reads them.

use std::time::Duration;

use sync::atomic::{AtomicU64, Ordering};

/// Limits of one session in nanoseconds; 0 means no limit.
#[derive(Default)]
pub struct WaitLimits {
    lock_timeout: AtomicU64,
    deadlock_timeout: AtomicU64,
}

impl WaitLimits {
    /// Sets `lock_timeout`: a longer wait fails. `None` waits for ever.
    pub fn set_lock_timeout(&self, limit: Option<Duration>) {
        // Relaxed, here and below: no other data depends on a limit.
        self.lock_timeout.store(nanoseconds(limit), Ordering::Relaxed);
    }

    /// See [`WaitLimits::set_lock_timeout`].
    pub(super) fn lock_timeout(&self) -> Option<Duration> {
        limit(self.lock_timeout.load(Ordering::Relaxed))
    }

    /// Sets `deadlock_timeout`: a wait searches for a deadlock once it has lasted that long. With
    /// `None` the engine chooses the time.
    pub fn set_deadlock_timeout(&self, limit: Option<Duration>) {
        self.deadlock_timeout.store(nanoseconds(limit), Ordering::Relaxed);
    }

    /// See [`WaitLimits::set_deadlock_timeout`].
    pub(super) fn deadlock_timeout(&self) -> Option<Duration> {
        limit(self.deadlock_timeout.load(Ordering::Relaxed))
    }
}

fn nanoseconds(limit: Option<Duration>) -> u64 {
    limit.map_or(0, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

fn limit(nanoseconds: u64) -> Option<Duration> {
    (nanoseconds != 0).then(|| Duration::from_nanos(nanoseconds))
}
