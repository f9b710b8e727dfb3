//! The state that all workers of a runtime share: mailboxes, counts and flags.

use std::io;
use std::time::Duration;

use sync::PerCore;
use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::mailbox::Mailbox;

/// Workers that are no cores: the reserve worker and the service worker.
pub(crate) const WORKERS_BESIDE: usize = 2;

/// A worker's turns, as it shows them to others.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Turns of its loop, for the watchdog.
    pub(crate) count: AtomicU64,
    /// Fibers that had a job at the end of the last turn.
    pub(crate) fibers: AtomicUsize,
    /// Times that it slept until an event came.
    pub(crate) sleeps: AtomicU64,
    /// Events that epoll told of.
    pub(crate) events: AtomicU64,
    /// Sessions that it served, one by one; a session counts in each round.
    pub(crate) served: AtomicU64,
    /// Operations on files that it began.
    pub(crate) operations: AtomicU64,
}

impl Turns {
    /// Adds to a count of a worker. Only by that worker, so that no addition is lost.
    #[inline]
    pub(crate) fn add(count: &AtomicU64, more: usize) {
        // Relaxed: readers want no order.
        count.store(count.load(Ordering::Relaxed) + more as u64, Ordering::Relaxed);
    }
}

/// The state that all workers of a runtime share.
pub(crate) struct Shared {
    /// One for each core, and behind them those of the reserve worker and of the service worker.
    pub(crate) mailboxes: Box<[Mailbox]>,
    /// Written by each worker alone, once a turn.
    pub(crate) turns: PerCore<Turns>,
    /// The time since which one fiber has held each worker for longer than the watchdog's limit, or
    /// 0.
    pub(crate) held: PerCore<AtomicU64>,
    /// Sessions placed on each worker.
    pub(crate) sessions: PerCore<AtomicUsize>,
    /// Sessions end, and new ones are refused.
    pub(crate) draining: AtomicBool,
    /// Workers end once nothing runs on them.
    pub(crate) exiting: AtomicBool,
    pub(crate) exit_deadline: AtomicU64,
    /// Workers that have not ended: the last one lets the threads beside the cores end.
    pub(crate) working: AtomicUsize,
    /// How long an idle core polls at most.
    pub(crate) poll_nanos: u64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Shared").field("cores", &self.core_count()).finish_non_exhaustive()
    }
}

impl Shared {
    /// The state of `workers` workers, including the reserve and the service worker. An idle core
    /// polls for at most `poll` before it sleeps.
    pub(crate) fn new(workers: usize, poll: Duration) -> io::Result<Shared> {
        Ok(Shared {
            mailboxes: (0..workers).map(|_| Mailbox::new()).collect::<io::Result<_>>()?,
            turns: PerCore::new(workers, |_| Turns::default()),
            held: PerCore::new(workers, |_| AtomicU64::new(0)),
            sessions: PerCore::new(workers, |_| AtomicUsize::new(0)),
            draining: AtomicBool::new(false),
            exiting: AtomicBool::new(false),
            exit_deadline: AtomicU64::new(u64::MAX),
            working: AtomicUsize::new(workers),
            poll_nanos: poll.as_nanos() as u64,
        })
    }

    #[inline]
    pub(crate) fn mailbox(&self, core: usize) -> &Mailbox {
        &self.mailboxes[core]
    }

    pub(crate) fn core_count(&self) -> usize {
        self.mailboxes.len() - WORKERS_BESIDE
    }

    /// The worker for sessions that cannot wait until a core is free
    /// ([`crate::net::Next::EnterReserve`]): it is behind the cores and not pinned. The service
    /// worker does not serve them, so that nothing they do keeps clients out.
    pub(crate) fn reserve(&self) -> usize {
        self.core_count()
    }

    /// The worker that accepts connections and lets clients in: it is the last one and not pinned.
    /// A session that does not ask for another worker stays on it.
    pub(crate) fn service(&self) -> usize {
        self.mailboxes.len() - 1
    }

    /// Chooses a worker for a session and counts the session there: the reserve worker, or the core
    /// with the fewest sessions. A core that no statement holds takes precedence.
    pub(crate) fn place(&self, reserve: bool) -> usize {
        // Relaxed: counts that place; an exact tie or a moment's error does no harm.
        let held = |core: usize| self.held.get(core).load(Ordering::Relaxed) != 0;
        let count = |core: usize| self.sessions.get(core).load(Ordering::Relaxed);
        let cores = if reserve { self.reserve()..self.service() } else { 0..self.core_count() };
        let core = cores.min_by_key(|&core| (held(core), count(core))).expect("there is a core");
        self.sessions.get(core).fetch_add(1, Ordering::Relaxed);
        core
    }

    /// A worker as the log names it.
    pub(crate) fn name(&self, worker: usize) -> String {
        match worker {
            worker if worker < self.core_count() => format!("core {worker}"),
            worker if worker == self.reserve() => "the reserve worker".to_owned(),
            _ => "the service worker".to_owned(),
        }
    }

    /// Sessions on all workers.
    pub(crate) fn session_count(&self) -> usize {
        // Relaxed: a count orders nothing else.
        self.sessions.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }
}
