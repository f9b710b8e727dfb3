//! Signals from within the allocator to the watch's thread: flags, and the thread to unpark.
//!
//! A sender sets a flag first and unparks the thread afterwards. The thread takes a flag back
//! before it acts, so it misses no later signal.

use sync::OnceLock;
use sync::atomic::{AtomicBool, Ordering};

use crate::os::thread::Thread;

/// The thread to unpark.
static THREAD: OnceLock<Thread> = OnceLock::new();
pub(super) static SHORT: Signal = Signal(AtomicBool::new(false));
pub(super) static FREED: Signal = Signal(AtomicBool::new(false));
pub(super) static RELEASED: Signal = Signal(AtomicBool::new(false));
pub(super) static MUCH: Signal = Signal(AtomicBool::new(false));

/// One reason for the thread to act.
pub(super) struct Signal(AtomicBool);

impl Signal {
    /// Takes the signal back; whether it was there.
    pub(super) fn take(&self) -> bool {
        // AcqRel: a `send` that finds the flag taken back here also finds the thread, which was set
        // before.
        self.0.swap(false, Ordering::AcqRel)
    }

    /// Whether the signal is there.
    pub(super) fn is_set(&self) -> bool {
        // Acquire: a sender that sets it later unparks the thread.
        self.0.load(Ordering::Acquire)
    }

    fn send(&self) {
        // AcqRel: as in `take`.
        if !self.0.swap(true, Ordering::AcqRel)
            && let Some(thread) = THREAD.get()
        {
            thread.unpark();
        }
    }
}

/// The thread runs: it sees the signals sent before.
pub(super) fn begin(thread: Thread) {
    THREAD.get_or_init(|| thread).unpark();
}

/// Whether the thread runs.
pub(super) fn is_watched() -> bool {
    THREAD.get().is_some()
}

/// More than half of the limit is taken, and a lease was taken or given back. Called inside the
/// allocator.
pub(super) fn much() {
    // Each lease asks while much is taken, so only the first one writes the shared flag. A lease
    // that reads an old value asks for nothing; the next lease asks again.
    if !MUCH.is_set() {
        MUCH.send();
    }
}

/// Memory is short. Called inside the allocator.
pub(super) fn pressure() {
    SHORT.send();
}

/// Much was freed. Called inside the allocator.
pub(super) fn freed() {
    FREED.send();
}

/// A large block was freed. Called inside the allocator.
pub(super) fn released() {
    RELEASED.send();
}
