//! The bound on the log that open transactions keep. The horizon's keeper enforces it.

use sync::OnceLock;
use sync::atomic::AtomicU64;

/// The bound on the log that open transactions keep, and the callback that enforces it.
pub(crate) struct RetainedLimit {
    /// Bytes of log that one transaction may keep.
    pub(crate) bytes: AtomicU64,
    /// Ends a session whose transaction keeps more.
    pub(crate) end_session: OnceLock<EndSession>,
}

/// Asks the session with this label to end; returns whether there is one.
type EndSession = Box<dyn Fn(u32) -> bool + Send + Sync>;

impl Default for RetainedLimit {
    fn default() -> Self {
        Self { bytes: AtomicU64::new(u64::MAX), end_session: OnceLock::new() }
    }
}
