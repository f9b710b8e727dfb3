//! Threads of the operating system.

use std::io;
use std::thread::Builder;
use std::time::Duration;

use super::processor;

/// A thread that was started, to be joined or left.
pub(crate) type JoinHandle = std::thread::JoinHandle<()>;
/// A thread, to be woken.
pub(crate) type Thread = std::thread::Thread;

/// Starts a thread with this name, and a stack of so many bytes (`None`: the system's default). The
/// thread may run on all processors of the process: the kernel would have it inherit the one that a
/// worker is pinned to.
pub(crate) fn spawn(
    name: &str,
    stack: Option<usize>,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle> {
    let builder = Builder::new().name(name.to_owned());
    let body = move || {
        processor::unpin();
        body();
    };
    match stack {
        Some(bytes) => builder.stack_size(bytes),
        None => builder,
    }
    .spawn(body)
}

/// Lets this thread sleep.
pub(crate) fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// Lets this thread sleep until it is unparked.
pub(crate) fn park() {
    std::thread::park();
}

/// Lets this thread sleep until it is unparked, for at most so long.
pub(crate) fn park_timeout(time: Duration) {
    std::thread::park_timeout(time);
}

/// The kernel's number of this thread.
pub(crate) fn number() -> i32 {
    // SAFETY: a plain system call.
    unsafe { libc::gettid() }
}

/// Gives the rest of this thread's time slice to the kernel.
pub(crate) fn yield_now() {
    std::thread::yield_now();
}

/// Whether this thread is unwinding from a panic.
#[inline]
pub(crate) fn is_panicking() -> bool {
    std::thread::panicking()
}
