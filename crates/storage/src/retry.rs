//! Retry loops for work that must succeed, such as a rollback that needs space on a full disk.
//!
//! The operator learns why such a loop lasts. The log names the missing resource after 1 s, then
//! once a minute, and once more when the loop is over.

use std::time::Duration;

use crate::Error;

/// The pause between two tries.
const RETRY: Duration = Duration::from_millis(100);
/// How long a loop lasts before the first line in the log.
const FIRST_LINE: Duration = Duration::from_secs(1);
/// The time between two further lines.
const NEXT_LINE: Duration = Duration::from_secs(60);

/// The backoff of one retry loop. It costs nothing until the first pause.
#[derive(Debug)]
pub struct Backoff {
    resource: &'static str,
    /// When the loop paused first, in nanoseconds of [`runtime::time::precise`].
    begun: Option<u64>,
    /// When the next line is due.
    due: u64,
    is_logged: bool,
}

impl Backoff {
    /// The backoff of a loop that needs `resource`, which the log's lines name.
    pub fn new(resource: &'static str) -> Backoff {
        Backoff { resource, begun: None, due: 0, is_logged: false }
    }

    /// Sleeps 100 ms after a try failed with `error`. Logs the wait when a line is due.
    pub fn pause(&mut self, error: &Error) {
        let now = runtime::time::precise();
        let begun = *self.begun.get_or_insert_with(|| {
            self.due = now + FIRST_LINE.as_nanos() as u64;
            now
        });
        if now >= self.due {
            log::warn!(
                "waiting for {}, {} s so far: {error}; it goes on by itself when there is space",
                self.resource,
                seconds(now - begun)
            );
            self.due = now + NEXT_LINE.as_nanos() as u64;
            self.is_logged = true;
        }
        runtime::fiber::sleep(RETRY);
    }
}

impl Drop for Backoff {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.filter(|_| self.is_logged) {
            let waited = seconds(runtime::time::precise() - begun);
            log::info!("there is {} again, after {waited} s", self.resource);
        }
    }
}

fn seconds(nanos: u64) -> u64 {
    nanos / 1_000_000_000
}
