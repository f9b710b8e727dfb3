//! Saying what takes time: waits for what can't be done without and can't fail (room on a full disk for taking changes
//! back), and how far a long start has come.
//!
//! Nobody may wonder why a rollback or a start doesn't end: what is waited for is said after a second, again every
//! minute, and when it is over.

use std::time::Duration;

use crate::Error;

/// Between two tries.
const RETRY: Duration = Duration::from_millis(100);
/// When it is said first, and how often again.
const FIRST: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_secs(60);

/// One wait. Costs nothing until it has to be waited.
#[derive(Debug)]
pub struct Patience {
    what: &'static str,
    begun: Option<u64>,
    /// When it is to be said next.
    due: u64,
    said: bool,
}

impl Patience {
    /// Will wait for `what`.
    pub fn new(what: &'static str) -> Patience {
        Patience { what, begun: None, due: 0, said: false }
    }

    /// It has failed with `error`: lets some time pass, and says so now and then.
    pub fn pause(&mut self, error: &Error) {
        let now = runtime::time::precise();
        let begun = *self.begun.get_or_insert_with(|| {
            self.due = now + FIRST.as_nanos() as u64;
            now
        });
        if now >= self.due {
            log::warn!(
                "waiting for {}, {} s so far: {error}; it goes on by itself when there is space",
                self.what,
                seconds(now - begun)
            );
            self.due = now + AGAIN.as_nanos() as u64;
            self.said = true;
        }
        runtime::fiber::sleep(RETRY);
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.filter(|_| self.said) {
            log::info!("there is {} again, after {} s", self.what, seconds(runtime::time::precise() - begun));
        }
    }
}

/// Says how far a long work has come, every two seconds from the second one on.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    due: u64,
}

/// Between two lines.
const EVERY: u64 = 2_000_000_000;

impl Progress {
    /// `what` begins.
    pub fn new(what: &'static str) -> Progress {
        Progress { what, due: runtime::time::precise() + EVERY }
    }

    /// So many bytes are done, of so many if that is known.
    pub fn at(&mut self, done: u64, total: Option<u64>) {
        let now = runtime::time::precise();
        if now < self.due {
            return;
        }
        self.due = now + EVERY;
        let done = done >> 20;
        match total {
            Some(total) => log::info!("{}: {done} of {} MiB", self.what, total >> 20),
            None => log::info!("{}: {done} MiB so far", self.what),
        }
    }
}

fn seconds(nanos: u64) -> u64 {
    nanos / 1_000_000_000
}
