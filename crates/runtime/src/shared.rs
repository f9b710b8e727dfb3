//! The state that all workers of a runtime share: mailboxes, counts and flags.

use std::io;
use std::time::Duration;

use sync::PerCore;
use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::load::{self, Candidate};
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
    /// Time in which it had nothing to do.
    pub(crate) idle: Idle,
}

impl Turns {
    /// Adds to a count of a worker. Only by that worker, so that no addition is lost.
    #[inline]
    pub(crate) fn add(count: &AtomicU64, more: usize) {
        // Relaxed: readers want no order.
        count.store(count.load(Ordering::Relaxed) + more as u64, Ordering::Relaxed);
    }
}

/// The time in which a worker had nothing to do. It is one word, so that a reader always sees a
/// sleep as either under way or counted.
///
/// Bit 0 is set during a sleep. The other bits are the nanoseconds of all sleeps before, modulo
/// 2^63, from which a sleep under way subtracts the time of its beginning.
#[derive(Debug, Default)]
pub(crate) struct Idle(AtomicU64);

impl Idle {
    /// A sleep begins at this time. Only by the worker, as [`Idle::end`].
    #[inline]
    pub(crate) fn begin(&self, now: u64) {
        // Relaxed, here and below: a figure for a reader.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_sub(now << 1) | 1, Ordering::Relaxed);
    }

    /// The sleep is over.
    #[inline]
    pub(crate) fn end(&self, now: u64) {
        self.0.store((self.0.load(Ordering::Relaxed) & !1).wrapping_add(now << 1), Ordering::Relaxed);
    }

    /// Nanoseconds of all sleeps until this time. It may be a moment before the last one's
    /// beginning.
    pub(crate) fn total(&self, now: u64) -> u64 {
        let word = self.0.load(Ordering::Relaxed);
        let since = if word & 1 == 1 { now << 1 } else { 0 };
        u64::try_from((word & !1).wrapping_add(since).cast_signed() >> 1).unwrap_or(0)
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
    /// Sessions that have come to each worker since the start, by placement or by a move.
    came: PerCore<AtomicUsize>,
    /// The NUMA node of each core.
    nodes: Box<[usize]>,
    /// Each core's load and sessions at the last look; 0 before the first one. Written four times a
    /// second, read when a client is let in.
    looks: Box<[Look]>,
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

/// A core's load, its sessions, and all that had come to it, as a look found them.
#[derive(Default)]
struct Look {
    demand: AtomicU64,
    sessions: AtomicUsize,
    came: AtomicUsize,
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
            came: PerCore::new(workers, |_| AtomicUsize::new(0)),
            looks: nodes.iter().map(|_| Look::default()).collect(),
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
        // Relaxed: figures that order nothing, of which one may be a moment older than the other.
        self.looks[core].demand.store(demand, Ordering::Relaxed);
        let sessions = self.sessions.get(core).load(Ordering::Relaxed); // Relaxed: as above
        self.looks[core].sessions.store(sessions, Ordering::Relaxed); // Relaxed: as above
        let came = self.came.get(core).load(Ordering::Relaxed); // Relaxed: as above
        self.looks[core].came.store(came, Ordering::Relaxed); // Relaxed: as above
    }

    /// A core's load for those who place sessions ([`load::expected`]).
    fn expected_load(&self, core: usize) -> u64 {
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed); // Relaxed: as in `show_load`
        let Look { demand, sessions, came } = &self.looks[core];
        let since = of(self.came.get(core)).saturating_sub(of(came));
        // Relaxed: as above.
        load::expected(demand.load(Ordering::Relaxed), of(sessions), since, of(self.sessions.get(core)))
    }

    /// Counts a session that comes to a worker.
    pub(crate) fn note_came(&self, worker: usize) {
        // Relaxed, both: counts that order nothing else.
        self.came.get(worker).fetch_add(1, Ordering::Relaxed);
        self.sessions.get(worker).fetch_add(1, Ordering::Relaxed);
    }

    /// Chooses a worker for a session and counts the session there: the reserve worker, or the core
    /// that [`load::choose`] names.
    pub(crate) fn place(&self, reserve: bool) -> usize {
        // Relaxed: counts that place; an exact tie or a moment's error does no harm.
        let candidate = |core: usize| Candidate {
            node: self.nodes[core],
            is_held: self.held.get(core).load(Ordering::Relaxed) != 0,
            demand: self.expected_load(core),
            sessions: self.sessions.get(core).load(Ordering::Relaxed),
        };
        let chosen = || {
            let candidates: Vec<Candidate> = (0..self.core_count()).map(candidate).collect();
            load::choose(&candidates).expect("there is a core")
        };
        let worker = if reserve { self.reserve() } else { chosen() };
        self.note_came(worker);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::WHOLE;

    #[test]
    fn sessions_that_have_come_since_the_last_look_are_load_while_they_stay() {
        let shared = Shared::new(&[0, 0], Duration::ZERO).unwrap();
        (0..2).for_each(|core| shared.show_load(core, 0));
        for _ in 0..5 {
            assert_eq!(shared.place(false), 0);
            shared.sessions.get(0).fetch_sub(1, Ordering::Relaxed);
        }
        assert_eq!([(); 4].map(|()| shared.place(false)), [0, 1, 0, 1]);
        // The second core has much to do, until its sessions leave.
        shared.show_load(0, 0);
        shared.show_load(1, 4 * WHOLE);
        assert_eq!([(); 3].map(|()| shared.place(false)), [0, 0, 0]);
        shared.sessions.get(1).fetch_sub(2, Ordering::Relaxed);
        assert_eq!(shared.place(false), 1);
    }

    #[test]
    fn a_sleep_counts_while_it_is_under_way_and_once_it_is_over() {
        let idle = Idle::default();
        assert_eq!(idle.total(1_000), 0);
        idle.begin(1_000);
        // A reader's clock may be read before the worker's.
        assert_eq!([990, 1_000, 1_300].map(|now| idle.total(now)), [0, 0, 300]);
        idle.end(1_500);
        assert_eq!([1_400, 9_000].map(|now| idle.total(now)), [500, 500]);
        idle.begin(2_000);
        assert_eq!([1_900, 2_000, 2_001].map(|now| idle.total(now)), [400, 500, 501]);
        idle.end(2_000);
        assert_eq!(idle.total(u64::MAX), 500);
    }
}
