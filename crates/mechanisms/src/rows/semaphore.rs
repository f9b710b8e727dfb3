//! Row `semaphore`: pairs of threads, each pair with a semaphore of one between them.

use calls::semaphore::{Posix, SystemV};
use sync::atomic::{AtomicU64, Ordering};
use sync::{CachePadded, WaitQueue};
use variants::caller::Caller;
use variants::semaphore::{FutexSemaphores, Semaphores};

use super::{Arm, COUNTED, Part, Row, Started, UNCOUNTED, compute};
use crate::round::{Subject, Worker};

/// Threads on one semaphore.
const TOGETHER: usize = 2;
/// Steps with the semaphore taken, some 150 ns, and as many without.
const STEPS: u32 = 75;

/// The row.
pub(super) const ROW: Row = Row {
    id: "semaphore",
    report: "B14",
    about: "semaphores: System V's, a call of the kernel each time, against POSIX's, which call it to sleep",
    operation: "wait, compute for 150 ns, post, compute for 150 ns; a semaphore for each 2 threads",
    needs: None,
    code: "crates/calls/src/semaphore.rs",
    arms: &[
        Arm {
            name: "System V",
            part: Part::Stock,
            start: |threads| pairs(SystemV::new(count(threads), 1)?, threads, UNCOUNTED),
        },
        Arm {
            name: "futex",
            part: Part::Step,
            start: |threads| pairs(FutexSemaphores::new(count(threads), 1), threads, COUNTED),
        },
        Arm {
            name: "POSIX",
            part: Part::Published,
            start: |threads| pairs(Posix::new(count(threads), 1), threads, UNCOUNTED),
        },
        Arm {
            name: "WaitQueue",
            part: Part::Allcore,
            start: |threads| pairs(Queues::new(count(threads)), threads, UNCOUNTED),
        },
    ],
};

fn count(threads: usize) -> usize {
    threads.div_ceil(TOGETHER)
}

/// The engine's queues of waiters, each with a count. Threads park here as fibers do in a server.
#[derive(Debug)]
struct Queues(Box<[CachePadded<Counted>]>);

#[derive(Debug)]
struct Counted {
    free: AtomicU64,
    queue: WaitQueue,
}

impl Queues {
    fn new(queues: usize) -> Self {
        let one = |_| Counted { free: AtomicU64::new(1), queue: WaitQueue::new(&"mechanism") };
        Self((0..queues).map(|at| CachePadded::new(one(at))).collect())
    }
}

impl Counted {
    #[inline]
    fn take(&self) -> bool {
        // Acquire: what the poster did before is seen. Relaxed on failure: tried again.
        let less = |free: u64| free.checked_sub(1);
        self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, less).is_ok()
    }
}

impl Semaphores for Queues {
    #[inline]
    fn wait(&self, _: &mut Caller, which: usize) {
        let counted = &self.0[which];
        if !counted.take() {
            counted.queue.wait_until(|| counted.take());
        }
    }

    #[inline]
    fn post(&self, which: usize) {
        let counted = &self.0[which];
        // Release: the waiter sees what this thread did before.
        counted.free.fetch_add(1, Ordering::Release);
        counted.queue.wake_one();
    }
}

fn pairs(semaphores: impl Semaphores + 'static, threads: usize, counts_retries: bool) -> Started {
    let sums = (0..count(threads)).map(|_| CachePadded::default()).collect();
    Ok(Box::new(Pairs { semaphores, sums, counts_retries }))
}

#[derive(Debug)]
struct Pairs<S> {
    semaphores: S,
    /// The sections under each semaphore.
    sums: Box<[CachePadded<AtomicU64>]>,
    counts_retries: bool,
}

impl<S: Semaphores> Subject for Pairs<S> {
    fn work(&self, worker: &mut Worker<'_>) {
        let which = worker.number() / TOGETHER;
        worker.repeat(|me| {
            self.semaphores.wait(me, which);
            // Relaxed, both: ordered by the semaphore. A lost addition shows in the check.
            let seen = self.sums[which].load(Ordering::Relaxed);
            compute(STEPS);
            self.sums[which].store(seen + 1, Ordering::Relaxed);
            self.semaphores.post(which);
            compute(STEPS);
        });
    }

    fn counts_retries(&self) -> bool {
        self.counts_retries
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        let sum: u64 = self.sums.iter().map(|sum| sum.load(Ordering::Relaxed)).sum();
        if sum == operations {
            Ok(())
        } else {
            Err(format!("{operations} sections have added up to {sum}: the semaphore does not exclude"))
        }
    }
}
