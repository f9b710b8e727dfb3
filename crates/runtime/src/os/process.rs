//! How the process ends, other than by returning from `main`.

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
