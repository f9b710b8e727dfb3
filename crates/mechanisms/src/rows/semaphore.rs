//! Row `semaphore`: pairs of threads, each pair with a semaphore of one between them.
//!
//! The engine has two queues of waiters. A [`FairQueue`] keeps the order of arrival: a newcomer
//! joins behind a waiter, so each contended wait is a switch. A [`WaitQueue`] takes a woken waiter
//! out. So a thread that posts and waits again comes before it, and with more threads than cores
//! the other one may never run. The row is judged by the fair one.

use std::convert::Infallible;

use calls::semaphore::{Posix, SystemV};
use sync::atomic::{AtomicU64, Ordering};
use sync::{CachePadded, FairQueue, WaitQueue, park};
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
    about: "semaphores: System V's, a call of the kernel each time, against POSIX's, which call it to sleep. \
            The engine's FairQueue serves waiters in the order of their arrival. Its WaitQueue lets a newcomer \
            come before one that has been woken",
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
            name: "FairQueue",
            part: Part::Allcore,
            start: |threads| pairs(Queues::<FairQueue>::new(count(threads)), threads, UNCOUNTED),
        },
        Arm {
            name: "WaitQueue",
            part: Part::Allcore,
            start: |threads| pairs(Queues::<WaitQueue>::new(count(threads)), threads, UNCOUNTED),
        },
    ],
};

fn count(threads: usize) -> usize {
    threads.div_ceil(TOGETHER)
}

/// The engine's queues of waiters, each with a count. Threads park here as fibers do in a server.
#[derive(Debug)]
struct Queues<Q>(Box<[CachePadded<Counted<Q>>]>);

#[derive(Debug)]
struct Counted<Q> {
    free: AtomicU64,
    queue: Q,
}

/// A queue of the engine.
trait Queue: Sync {
    fn new() -> Self;
    /// Waits until `take` is true.
    fn wait(&self, take: impl FnMut() -> bool);
    /// Wakes a waiter.
    fn wake(&self);
}

impl Queue for WaitQueue {
    fn new() -> Self {
        Self::new(&"mechanism")
    }

    #[inline]
    fn wait(&self, take: impl FnMut() -> bool) {
        self.wait_until(take);
    }

    #[inline]
    fn wake(&self) {
        self.wake_one();
    }
}

impl Queue for FairQueue {
    fn new() -> Self {
        Self::new(&"mechanism")
    }

    #[inline]
    fn wait(&self, mut take: impl FnMut() -> bool) {
        // A newcomer joins the queue behind a waiter, as in the engine's reservations of memory.
        if !self.has_waiters() && take() {
            return;
        }
        let park = || {
            park::park();
            Ok::<(), Infallible>(())
        };
        let Ok(()) = self.wait_until_with(take, park);
    }

    #[inline]
    fn wake(&self) {
        self.wake_first();
    }
}

impl<Q: Queue> Queues<Q> {
    fn new(queues: usize) -> Self {
        let one = |_| CachePadded::new(Counted { free: AtomicU64::new(1), queue: Q::new() });
        Self((0..queues).map(one).collect())
    }
}

impl<Q> Counted<Q> {
    #[inline]
    fn take(&self) -> bool {
        // Acquire: what the poster did before is seen. Relaxed on failure: tried again.
        let less = |free: u64| free.checked_sub(1);
        self.free.fetch_update(Ordering::Acquire, Ordering::Relaxed, less).is_ok()
    }
}

impl<Q: Queue> Semaphores for Queues<Q> {
    #[inline]
    fn wait(&self, _: &mut Caller, which: usize) {
        let counted = &self.0[which];
        counted.queue.wait(|| counted.take());
    }

    #[inline]
    fn post(&self, which: usize) {
        let counted = &self.0[which];
        // Release: the waiter sees what this thread did before.
        counted.free.fetch_add(1, Ordering::Release);
        counted.queue.wake();
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
