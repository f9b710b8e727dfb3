//! Fail-stop: the engine ends its own process.
//!
//! The engine ends where going on would break a promise or wait for ever: the next start recovers
//! from the log. It writes one line that begins with `PANIC` and exits with the status of its
//! [`Cause`], as docs/operations.md lists them. The engine has no other exit. Several threads can
//! meet the same end: of two log writes in flight, both fail when the disk does. The first one
//! writes its line, and its cause is the status.
//!
//! Rust's standard library aborts the process (SIGABRT) when the allocator has no memory for a
//! value. A line of the engine's own could need memory there. It also aborts when a panic meets
//! another one while it unwinds.

use std::fmt;
use std::time::Duration;

use sync::atomic::{AtomicBool, Ordering};

use crate::{last_words, os};

/// How long a thread that comes later leaves the end to the first one. The first one can fail
/// within its last words, and then comes here itself.
const FIRST_ENDS_WITHIN: Duration = Duration::from_secs(5);

static ENDING: AtomicBool = AtomicBool::new(false);

/// Why the process cannot go on. Its number is the exit status, as `sysexits.h` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The disk does not take or give back what the engine must write or read (`EX_IOERR`).
    Disk = 74,
    /// The operating system refuses what the engine cannot do without (`EX_OSERR`).
    System = 71,
    /// A fault of the engine: state that nobody may see or that would block others for ever
    /// (`EX_SOFTWARE`).
    Engine = 70,
}

/// Ends the process. `why` names what happened, in one line.
#[cold]
pub fn fail_stop(cause: Cause, why: fmt::Arguments<'_>) -> ! {
    // One thread of the model machine runs at a time, and ends the process at once.
    // Relaxed: the exchange alone decides which is the first, and nothing else is read by it.
    if !cfg!(model) && ENDING.swap(true, Ordering::Relaxed) {
        os::thread::sleep(FIRST_ENDS_WITHIN);
    }
    last_words(format_args!("PANIC: {why}; the process ends, the next start recovers from the log"));
    os::process::exit(cause as i32)
}

/// A section that must not panic: others would wait for its end for ever. [`fail_stop`] ends the
/// process when a panic drops this; a section that ends well calls [`Critical::end`].
#[derive(Debug)]
#[must_use]
pub struct Critical(&'static str);

impl Critical {
    /// Begins a section. `what` says, for the log, what panicked.
    #[inline]
    pub fn begin(what: &'static str) -> Critical {
        Critical(what)
    }

    /// Ends the section.
    #[inline]
    pub fn end(self) {
        std::mem::forget(self);
    }
}

impl Drop for Critical {
    fn drop(&mut self) {
        fail_stop(Cause::Engine, format_args!("{}", self.0))
    }
}
