//! The workers' sessions, fibers and turns, and the processor time they took.
//!
//! A worker stores its counts where no other core writes. A reader loads them, and asks the kernel
//! for the times and the [`counters`](crate::counters).

use std::time::Duration;

use sync::atomic::Ordering;

use crate::counters::Counts;
use crate::stat::Stat;
use crate::{Runtime, fiber};

/// A worker as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerUse {
    /// Its name.
    pub name: String,
    /// The number of its core; none for a worker that is no core.
    pub core: Option<usize>,
    /// The NUMA node to which it is pinned.
    pub node: Option<usize>,
    /// Sessions placed on it.
    pub sessions: usize,
    /// Fibers that had a job at the end of its last turn.
    pub fibers: usize,
    /// Turns of its loop. A worker that sleeps makes none.
    pub turns: u64,
    /// Times that it slept, because nothing on it could run.
    pub sleeps: u64,
    /// Events of sockets, files and mailbox that its reactor took.
    pub events: u64,
    /// Sessions in its rounds: one that is served in several rounds counts in each.
    pub served: u64,
    /// Operations on files that its fibers began.
    pub file_operations: u64,
    /// Sessions that it has given to other cores.
    pub moved_out: u64,
    /// Sessions that it has got from other cores.
    pub moved_in: u64,
    /// The processor it ran on last, and its times; none where the system does not tell.
    pub times: Option<Times>,
}

/// Processor time of a thread since its start, in steps of 10 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// In the program's own code.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
    /// The processor it ran on last.
    pub processor: usize,
}

/// The hardware and software counters of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Its name.
    pub name: String,
    /// The number of its core; none for a worker that is no core.
    pub core: Option<usize>,
    /// The events of its thread since the first look.
    pub counts: Counts,
}

impl Runtime {
    /// All workers: the cores, the reserve worker and the service worker. Reads a file of the
    /// kernel for each.
    pub fn workers_in_use(&self) -> Vec<WorkerUse> {
        let (shared, cores) = (&self.shared, self.shared.core_count());
        let is_pinned = self.facts().pinned == cores;
        let of = |(worker, &thread): (usize, &i32)| {
            let core = (worker < cores).then_some(worker);
            let stat = Stat::of_thread(thread);
            let turns = shared.turns.get(worker);
            WorkerUse {
                name: shared.name(worker),
                core,
                node: core.filter(|_| is_pinned).map(|core| self.workers().node_of(core)),
                // Relaxed: counts for a reader.
                sessions: shared.sessions.get(worker).load(Ordering::Relaxed),
                fibers: turns.fibers.load(Ordering::Relaxed),
                turns: turns.count.load(Ordering::Relaxed),
                sleeps: turns.sleeps.load(Ordering::Relaxed),
                events: turns.events.load(Ordering::Relaxed),
                served: turns.served.load(Ordering::Relaxed),
                file_operations: turns.operations.load(Ordering::Relaxed),
                moved_out: turns.moved_out.load(Ordering::Relaxed),
                moved_in: turns.moved_in.load(Ordering::Relaxed),
                times: stat.map(|Stat { user, system, processor, .. }| Times { user, system, processor }),
            }
        };
        self.worker_threads().iter().enumerate().map(of).collect()
    }

    /// The counters of all workers. The first call opens [`EVENTS`] of them for each. Each call
    /// reads them, one system call a counter.
    ///
    /// [`EVENTS`]: crate::counters::EVENTS
    pub fn worker_counts(&self) -> Vec<WorkerCounts> {
        let counts = |(worker, &thread): (usize, &i32)| {
            fiber::safe_point();
            self.counts(worker, self.counters.look(worker, thread))
        };
        self.worker_threads().iter().enumerate().map(counts).collect()
    }

    /// As [`Runtime::worker_counts`], but of workers whose counters are open. Opens none.
    pub fn opened_worker_counts(&self) -> Vec<WorkerCounts> {
        let counts = |worker| Some(self.counts(worker, self.counters.opened(worker)?));
        (0..self.worker_count()).filter_map(counts).collect()
    }

    fn counts(&self, worker: usize, counts: Counts) -> WorkerCounts {
        let core = (worker < self.core_count()).then_some(worker);
        WorkerCounts { name: self.shared.name(worker), core, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileIo, tests::start_with};

    #[test]
    fn turns_fibers_and_times_count_for_the_worker_that_has_them() {
        let runtime = start_with(2, FileIo::Threads);
        let before = runtime.workers_in_use();
        assert_eq!(before.len(), runtime.worker_count());
        assert_eq!((before[1].core, before[2].core), (Some(1), None));
        let user = |workers: &[WorkerUse]| workers[1].times.map_or(Duration::ZERO, |times| times.user);
        let mut after = runtime.workers_in_use();
        // The worker may get no processor time for a while.
        while user(&after) == user(&before) {
            runtime.call(1, || {
                let began = crate::time::precise();
                while crate::time::precise() - began < 10_000_000 {
                    std::hint::spin_loop();
                }
            });
            after = runtime.workers_in_use();
        }
        assert!(after[1].turns > before[1].turns);
        let open = std::sync::Arc::new(sync::WaitQueue::new(&"test"));
        let told = std::sync::Arc::new(sync::atomic::AtomicBool::new(false));
        for _ in 0..3 {
            let (open, told) = (open.clone(), told.clone());
            runtime.spawn(0, move || open.wait_until(|| told.load(Ordering::Acquire)));
        }
        // A turn ends between these calls, with the three fibers parked.
        (0..2).for_each(|_| runtime.call(0, || ()));
        assert!(runtime.workers_in_use()[0].fibers >= 3, "{:?}", runtime.workers_in_use());
        told.store(true, Ordering::Release);
        open.wake_all();
        runtime.shutdown();
    }

    #[test]
    fn each_worker_has_events_that_grow_or_a_reason() {
        let runtime = start_with(2, FileIo::Threads);
        assert_eq!(runtime.opened_worker_counts(), [], "nobody has looked");
        let before = runtime.worker_counts();
        assert_eq!(before.len(), runtime.worker_count());
        assert_eq!((before[1].core, before[2].core), (Some(1), None));
        runtime.call(1, || {
            let began = crate::time::precise();
            while crate::time::precise() - began < 10_000_000 {
                std::hint::spin_loop();
            }
        });
        // On a worker, which reads its own counters too.
        let after = runtime.call(0, || runtime.worker_counts());
        let refused = after[1].counts.refused.as_deref().unwrap_or_default();
        for ((name, before), (_, after)) in before[1].counts.events.into_iter().zip(after[1].counts.events) {
            match (before, after) {
                (Some(before), Some(after)) if matches!(name, "cycles" | "instructions" | "task_clock") => {
                    assert!(after > before, "{name}: {before} {after}");
                }
                (Some(before), Some(after)) => assert!(after >= before, "{name}: {before} {after}"),
                (_, None) => assert!(refused.contains(name), "{name} has no count: {refused:?}"),
                (None, Some(_)) => {}
            }
        }
        assert_eq!(runtime.opened_worker_counts().len(), runtime.worker_count());
        runtime.shutdown();
    }
}
