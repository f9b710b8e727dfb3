//! Lines in the log that say how far a long start has come.

/// The time between two lines, in nanoseconds.
const EVERY: u64 = 2_000_000_000;

/// Logs the progress of one task, every 2 s from the second second on.
#[derive(Debug)]
pub(super) struct Progress {
    task: &'static str,
    /// When the next line is due, in nanoseconds of [`runtime::time::precise`].
    due: u64,
}

impl Progress {
    /// The progress of a task that begins now.
    pub(super) fn new(task: &'static str) -> Progress {
        Progress { task, due: runtime::time::precise() + EVERY }
    }

    /// Logs that `done` bytes of `total` are done, if a line is due.
    pub(super) fn at(&mut self, done: u64, total: Option<u64>) {
        let now = runtime::time::precise();
        if now < self.due {
            return;
        }
        self.due = now + EVERY;
        let done = done >> 20;
        match total {
            Some(total) => log::info!("{}: {done} of {} MiB", self.task, total >> 20),
            None => log::info!("{}: {done} MiB so far", self.task),
        }
    }
}
