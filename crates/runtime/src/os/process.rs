//! The process: how it ends other than by returning from `main`, and what the system tells of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::thread;

/// Ends the process with an exit status. No destructor runs but those of `atexit`.
pub(crate) fn exit(status: i32) -> ! {
    std::process::exit(status)
}

/// Kills the process with SIGKILL, as a power failure would end it.
pub(crate) fn kill() -> ! {
    // SAFETY: plain system calls without memory.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    // The signal is on its way; nothing of this thread may run on.
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

/// A variable of the environment; none where it is not set or no text.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The text of a file in which the system tells of itself, as `/proc/meminfo`.
pub(crate) fn text(path: impl AsRef<std::path::Path>) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// The numbers of pages that the process has.
pub(crate) struct Pages(File);

impl Pages {
    /// # Errors
    /// Where the system does not tell.
    pub(crate) fn open() -> io::Result<Pages> {
        File::open("/proc/self/statm").map(Pages)
    }

    /// The line of numbers as the kernel writes it; how many bytes it has. None where the kernel
    /// does not tell.
    pub(crate) fn read(&self, line: &mut [u8]) -> usize {
        self.0.read_at(line, 0).unwrap_or(0)
    }
}

/// Ticks of a second in which the kernel tells processor time.
pub(crate) fn ticks_a_second() -> u64 {
    // SAFETY: a plain call.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100)
}

/// Bytes of a page.
pub(crate) fn page_bytes() -> i64 {
    // SAFETY: a plain call.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }
}
