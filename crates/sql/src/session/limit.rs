//! A statement's time limit, `statement_timeout`.
//!
//! What must hold: the limit begins with the first message about a statement, whether Query or
//! Parse, so reading and planning count. It ends when the statement is done or fails, or when its
//! query string or pipeline ends.

use std::sync::Arc;
use std::time::Duration;

use runtime::interrupt::{Interrupt, Reason};
use runtime::time;
use runtime::timer::{self, TimerId};

/// The limit of the statement that a session is about to run or runs, if one is set.
#[derive(Default)]
pub(super) struct StatementLimit(Option<Running>);

struct Running {
    timer: TimerId,
    /// In nanoseconds of [`time::now`].
    ends: u64,
}

impl StatementLimit {
    /// Starts it, unless it runs already.
    #[inline]
    pub(super) fn start(&mut self, limit: Option<Duration>, interrupt: &Arc<Interrupt>) {
        if let Some(limit) = limit {
            self.start_timer(limit, interrupt);
        }
    }

    #[cold]
    fn start_timer(&mut self, limit: Duration, interrupt: &Arc<Interrupt>) {
        if let Some(running) = &self.0 {
            // The timer may have fired while the session waited for its client, which clears the
            // interrupt. So it is raised again.
            if time::precise() >= running.ends {
                interrupt.raise(Reason::StatementTimeout);
            }
            return;
        }
        let ends = time::precise().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        let interrupt = Arc::clone(interrupt);
        let timer = timer::after(limit, move || interrupt.raise(Reason::StatementTimeout));
        self.0 = Some(Running { timer, ends });
    }

    /// Whether it runs.
    pub(super) fn is_running(&self) -> bool {
        self.0.is_some()
    }

    /// The statement is done, or its query string or pipeline has ended.
    #[inline]
    pub(super) fn end(&mut self, interrupt: &Interrupt) {
        if let Some(running) = self.0.take() {
            timer::cancel(running.timer);
            interrupt.clear(Reason::StatementTimeout);
        }
    }
}
