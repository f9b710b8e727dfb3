//! The process: how it ends, and what the machine tells of it.

use std::io;
use std::path::Path;

/// Ends the process with an exit status. No destructor runs: the virtual threads are suspended in
/// the middle of their work, and what they share would be dropped under them.
pub(crate) fn exit(status: i32) -> ! {
    // SAFETY: a plain system call without memory.
    unsafe { libc::_exit(status) }
}

/// Ends the process as a power failure would.
pub(crate) fn kill() -> ! {
    std::process::abort()
}

/// A variable of the environment: none is set.
pub(crate) fn variable(_: &str) -> Option<String> {
    None
}

/// The text of a file in which the system tells of itself: a machine of 16 GiB without control
/// groups.
pub(crate) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    match path.as_ref().to_str() {
        Some("/proc/meminfo") => Ok("MemTotal: 16777216 kB\n".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The numbers of pages that the process has: none.
pub(crate) struct Pages;

impl Pages {
    /// # Errors
    /// None.
    pub(crate) fn open() -> io::Result<Pages> {
        Ok(Pages)
    }

    /// The line of numbers: the machine does not tell.
    pub(crate) fn read(&self, _: &mut [u8]) -> usize {
        0
    }
}

/// Bytes of a page.
pub(crate) fn page_bytes() -> i64 {
    4096
}
