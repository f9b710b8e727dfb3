//! The state that all workers of a runtime share: mailboxes, counts and flags.

use std::io;
use std::time::Duration;

use sync::PerCore;
use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::load::{self, Candidate, WHOLE};
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
    /// Sessions and fibers that waited for it at the beginning of each turn.
    pub(crate) waited: AtomicU64,
    /// Operations on files that it began.
    pub(crate) operations: AtomicU64,
    /// Sessions that it has given to other cores, and those that it has got from them.
    pub(crate) moved_out: AtomicU64,
    pub(crate) moved_in: AtomicU64,
    /// Time in which it had nothing to do, in nanoseconds, without the present such time.
    pub(crate) idle: AtomicU64,
    /// Since when it has nothing to do; 0 while it has.
    pub(crate) sleeps_since: AtomicU64,
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
    /// The NUMA node of each core.
    nodes: Box<[usize]>,
    /// One more than each core's load at the last look, with the sessions placed since; 0 before
    /// the first look. Written four times a second and when a client is let in, read then alone.
    loads: Box<[AtomicU64]>,
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
    /// The state of the workers of cores on these NUMA nodes, and of the reserve and the service
    /// worker. An idle core polls for at most `poll` before it sleeps.
    pub(crate) fn new(nodes: &[usize], poll: Duration) -> io::Result<Shared> {
        let workers = nodes.len() + WORKERS_BESIDE;
        Ok(Shared {
            mailboxes: (0..workers).map(|_| Mailbox::new()).collect::<io::Result<_>>()?,
            turns: PerCore::new(workers, |_| Turns::default()),
            held: PerCore::new(workers, |_| AtomicU64::new(0)),
            sessions: PerCore::new(workers, |_| AtomicUsize::new(0)),
            loads: nodes.iter().map(|_| AtomicU64::new(0)).collect(),
            nodes: nodes.into(),
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

    /// The NUMA node of each core.
    pub(crate) fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    /// Shows a core's load to those who place sessions.
    pub(crate) fn show_load(&self, core: usize, demand: u64) {
        // Relaxed: a figure that orders nothing.
        self.loads[core].store(demand + 1, Ordering::Relaxed);
    }

    /// Chooses a worker for a session and counts the session there: the reserve worker, or the core
    /// that [`load::choose`] names. Until the next look at the loads, the session counts as one
    /// that always runs.
    pub(crate) fn place(&self, reserve: bool) -> usize {
        // Relaxed: counts that place; an exact tie or a moment's error does no harm.
        let candidate = |core: usize| Candidate {
            node: self.nodes[core],
            is_held: self.held.get(core).load(Ordering::Relaxed) != 0,
            demand: self.loads[core].load(Ordering::Relaxed).saturating_sub(1),
            sessions: self.sessions.get(core).load(Ordering::Relaxed),
        };
        let chosen = || {
            let candidates: Vec<Candidate> = (0..self.core_count()).map(candidate).collect();
            let core = load::choose(&candidates).expect("there is a core");
            // Where nobody looks at the loads, none would take this back.
            if self.loads[core].load(Ordering::Relaxed) != 0 {
                self.loads[core].fetch_add(WHOLE, Ordering::Relaxed);
            }
            core
        };
        let worker = if reserve { self.reserve() } else { chosen() };
        self.sessions.get(worker).fetch_add(1, Ordering::Relaxed);
        worker
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
