//! Virtual threads.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::machine::here;

/// A thread, to be woken.
#[derive(Debug, Clone)]
pub(crate) struct Thread(usize);

impl Thread {
    /// Wakes the thread.
    pub(crate) fn unpark(&self) {
        here().wake(self.0);
    }
}

/// A thread that was started, to be joined or left.
pub(crate) struct JoinHandle {
    thread: Thread,
    result: Arc<Result>,
}

#[derive(Default)]
struct Result(Cell<Option<std::thread::Result<()>>>);

// SAFETY: all virtual threads run on one real thread.
unsafe impl Send for Result {}
// SAFETY: as above.
unsafe impl Sync for Result {}

impl std::fmt::Debug for JoinHandle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.thread.fmt(out)
    }
}

impl JoinHandle {
    /// The thread.
    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Waits until the thread has ended.
    ///
    /// # Errors
    /// Its panic.
    pub(crate) fn join(self) -> std::thread::Result<()> {
        while !here().join(self.thread.0) {
            here().park_until(None);
        }
        self.result.0.take().unwrap_or(Ok(()))
    }
}

/// Starts a thread with this name, and a stack of so many bytes (`None`: the machine's default).
pub(crate) fn spawn(
    name: &str,
    stack: Option<usize>,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle> {
    let result = Arc::new(Result::default());
    let ended = Arc::clone(&result);
    let body = move || ended.0.set(Some(catch_unwind(AssertUnwindSafe(body))));
    let number = here().spawn(name, stack.unwrap_or(4 << 20), Box::new(body))?;
    Ok(JoinHandle { thread: Thread(number), result })
}

/// Lets this thread sleep.
pub(crate) fn sleep(time: Duration) {
    here().sleep(time.as_nanos() as u64);
}

/// Lets this thread sleep until it is unparked.
pub(crate) fn park() {
    here().park_until(None);
}

/// Lets this thread sleep until it is unparked, for at most so long.
pub(crate) fn park_timeout(time: Duration) {
    here().park_until(Some(here().now().saturating_add(time.as_nanos() as u64)));
}

/// The kernel's number of this thread: none.
pub(crate) fn number() -> i32 {
    0
}

/// Lets the other threads run.
pub(crate) fn yield_now() {
    sync::Scheduler::spin(here());
}

/// Whether this thread is unwinding from a panic.
#[inline]
pub(crate) fn is_panicking() -> bool {
    std::thread::panicking()
}
