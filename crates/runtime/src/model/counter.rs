//! Counters of a thread: the model machine has none.

use std::io;

/// The kind of a counted event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Cycles,
    Instructions,
    CacheMisses,
    NodeLoads,
    TaskClock,
    ContextSwitches,
    Migrations,
    PageFaults,
}

/// A counter, of which there is none.
#[derive(Debug)]
pub(crate) enum Counter {}

impl Counter {
    /// # Errors
    /// Always.
    pub(crate) fn open(_: Event, _: i32, _: bool) -> io::Result<Counter> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// # Errors
    /// None.
    pub(crate) fn read(&self) -> io::Result<Option<u64>> {
        match *self {}
    }
}
