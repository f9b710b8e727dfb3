//! The process on the model machine: its end, its environment, and its size in memory.

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

/// The content of a file under /proc or /sys: a machine with 16 GiB of memory and no control
/// groups.
pub(crate) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    match path.as_ref().to_str() {
        Some("/proc/meminfo") => Ok("MemTotal: 16777216 kB\n".to_owned()),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Stands for /proc/self/statm, which the model machine lacks.
pub(crate) struct Pages;

impl Pages {
    /// # Errors
    /// None.
    pub(crate) fn open() -> io::Result<Pages> {
        Ok(Pages)
    }

    /// Reads no bytes: the resident size is unknown.
    pub(crate) fn read(&self, _: &mut [u8]) -> usize {
        0
    }
}

/// Ticks of a second of processor time.
pub(crate) fn ticks_a_second() -> u64 {
    100
}

/// Bytes of a page.
pub(crate) fn page_bytes() -> i64 {
    4096
}
