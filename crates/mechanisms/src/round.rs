//! One round: a number of threads repeat a row's operation on one arm for a given time.
//!
//! What must hold:
//! 1. Threads share nothing with each other but the structure under test and the phase, a line that
//!    changes twice a round.
//! 2. An operation counts if it began and ended in the counted time. So a thread that waits for the
//!    whole round counts as 0.
//! 3. A round ends soon after its time or a stop. Each thread ends its last operation, which no
//!    thread that has gone can hold up: it holds nothing between two operations.

use std::io;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use sync::atomic::{AtomicBool, AtomicU8, Ordering};
use sync::{CachePadded, OnceLock};
use variants::caller::Caller;

use crate::shootdowns;

/// Nothing counts yet.
const WARMUP: u8 = 0;
/// Operations count.
const COUNTED: u8 = 1;
/// The threads end.
const OVER: u8 = 2;
/// Longest time without a look at the stop flag.
const LOOK: Duration = Duration::from_millis(20);
/// The kernel backs a stack with memory as it is touched.
const STACK_BYTES: usize = 256 * 1024;

/// A structure under test with the row's operation on it.
pub(crate) trait Subject: Sync {
    /// One thread's life: [`Worker::repeat`] with the operation.
    fn work(&self, worker: &mut Worker<'_>);
    /// Checks the structure against the number of operations that all threads have done.
    ///
    /// # Errors
    /// A line: what is wrong.
    fn check(&self, operations: u64) -> Result<(), String>;
    /// Whether a round counts the machine's TLB shoot-downs.
    fn shoots_down(&self) -> bool {
        false
    }
    /// The row's figure, if it is a size and not a rate.
    fn bytes(&self) -> Option<u64> {
        None
    }
}

/// A thread of a round.
pub(crate) struct Worker<'a> {
    caller: Caller,
    phase: &'a AtomicU8,
    done: Done,
}

/// The operations of one thread.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    /// All, those before and after the counted time included.
    all: u64,
    counted: u64,
    retries: u64,
    sleeps: u64,
}

/// The counts of a round.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Round {
    /// The pass in which it ran.
    pub pass: u32,
    /// The counted time.
    pub seconds: f64,
    /// Operations of all threads in the counted time.
    pub operations: u64,
    /// Operations of the thread that did fewest.
    pub least: u64,
    /// Operations of the thread that did most.
    pub most: u64,
    /// Failed atomic changes.
    pub retries: u64,
    /// Calls of the kernel to sleep or to give the time slice away.
    pub sleeps: u64,
    /// TLB shoot-downs of the whole machine; absent where the row or the kernel counts none.
    pub shootdowns: Option<u64>,
    /// The size that the row is about; absent in a row of rates.
    pub bytes: Option<u64>,
}

impl Round {
    /// The row's figure: a size in bytes, or operations a second.
    pub fn figure(&self) -> f64 {
        self.bytes.map_or(self.operations as f64 / self.seconds, |bytes| bytes as f64)
    }
}

impl Worker<'_> {
    /// The thread's number, from 0.
    pub fn number(&self) -> usize {
        self.caller.number()
    }

    /// Repeats an operation until the round is over.
    #[inline]
    pub fn repeat(&mut self, mut operation: impl FnMut(&mut Caller)) {
        self.repeat_many(|me| {
            operation(me);
            1
        });
    }

    /// Repeats a number of operations until the round is over. They count together.
    #[inline]
    pub fn repeat_many(&mut self, mut operations: impl FnMut(&mut Caller) -> u64) {
        let mut counting = false;
        loop {
            let done = operations(&mut self.caller);
            self.done.all += done;
            // Relaxed: the phase publishes nothing else.
            match self.phase.load(Ordering::Relaxed) {
                WARMUP => {}
                COUNTED if counting => {
                    self.done.counted += done;
                    (self.done.retries, self.done.sleeps) = (self.caller.retries(), self.caller.sleeps());
                }
                // These operations began before the counted time.
                COUNTED => {
                    counting = true;
                    self.caller.restart();
                }
                _ => return,
            }
        }
    }
}

/// Runs a round. `None` if `stop` ended it.
///
/// # Errors
/// Threads cannot be started, or the structure is wrong afterwards.
pub(crate) fn round(
    subject: &dyn Subject,
    threads: usize,
    pass: u32,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Option<Round>, String> {
    let (phase, begin) = (CachePadded::new(AtomicU8::new(WARMUP)), OnceLock::new());
    let shootdowns = || subject.shoots_down().then(shootdowns::count).flatten();
    let (counted, done) = thread::scope(|scope| {
        let (phase, begin) = (&*phase, &begin);
        let start = |number| {
            Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || {
                let mut worker = Worker { caller: Caller::new(number), phase, done: Done::default() };
                begin.wait();
                subject.work(&mut worker);
                worker.done
            })
        };
        let started: io::Result<Vec<_>> = (0..threads).map(start).collect();
        if started.is_err() {
            phase.store(OVER, Ordering::Relaxed);
        }
        let _ = begin.set(());
        let started = started.map_err(|error| cannot_start(threads, &error))?;
        let counted = wait(time / 10, stop).and_then(|_| {
            let before = shootdowns();
            phase.store(COUNTED, Ordering::Relaxed);
            let seconds = wait(time, stop)?;
            Some((seconds, shootdowns().zip(before).map(|(after, before)| after.saturating_sub(before))))
        });
        // Relaxed, all: the phase publishes nothing else.
        phase.store(OVER, Ordering::Relaxed);
        let done = started.into_iter().map(|thread| thread.join().expect("a thread of a round panicked"));
        Ok::<_, String>((counted, done.collect::<Vec<Done>>()))
    })?;
    subject.check(done.iter().map(|thread| thread.all).sum())?;
    let Some((seconds, shootdowns)) = counted else { return Ok(None) };
    let sum = |of: fn(&Done) -> u64| done.iter().map(of).sum();
    let counts = || done.iter().map(|thread| thread.counted);
    Ok(Some(Round {
        pass,
        seconds,
        operations: sum(|thread| thread.counted),
        least: counts().min().unwrap_or_default(),
        most: counts().max().unwrap_or_default(),
        retries: sum(|thread| thread.retries),
        sleeps: sum(|thread| thread.sleeps),
        shootdowns,
        bytes: subject.bytes(),
    }))
}

fn cannot_start(threads: usize, error: &io::Error) -> String {
    format!("{threads} threads cannot be started: {error}: name fewer by --threads")
}

/// Waits for so long. Returns the seconds that passed; `None` if `stop` was set.
fn wait(time: Duration, stop: &AtomicBool) -> Option<f64> {
    let begin = Instant::now();
    while let Some(left) = time.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) {
        // Relaxed: the flag publishes nothing else.
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        thread::sleep(left.min(LOOK));
    }
    Some(begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sync::atomic::AtomicU64;

    /// Counts its operations, and forgets some.
    struct Counter {
        count: AtomicU64,
        forgets: u64,
    }

    impl Subject for Counter {
        fn work(&self, worker: &mut Worker<'_>) {
            worker.repeat(|me| {
                me.retried();
                self.count.fetch_add(1, Ordering::Relaxed);
            });
        }

        fn check(&self, operations: u64) -> Result<(), String> {
            let count = self.count.load(Ordering::Relaxed) - self.forgets;
            if count == operations { Ok(()) } else { Err(format!("{count} of {operations}")) }
        }
    }

    const TIME: Duration = Duration::from_millis(50);

    #[test]
    fn a_round_counts_what_its_threads_did_in_its_time() {
        let counter = Counter { count: AtomicU64::new(0), forgets: 0 };
        let round = round(&counter, 4, 2, TIME, &AtomicBool::new(false)).unwrap().unwrap();
        assert!(round.seconds >= TIME.as_secs_f64());
        assert_eq!((round.pass, round.retries), (2, round.operations));
        assert!(round.least <= round.operations / 4 && round.operations / 4 <= round.most);
        assert!(round.operations < counter.count.into_inner(), "the warm-up does not count");
    }

    #[test]
    fn a_stopped_round_gives_nothing_and_a_wrong_structure_fails() {
        let counter = Counter { count: AtomicU64::new(0), forgets: 0 };
        assert_eq!(round(&counter, 2, 0, Duration::from_secs(3600), &AtomicBool::new(true)), Ok(None));
        let counter = Counter { count: AtomicU64::new(3), forgets: 4 };
        assert!(round(&counter, 2, 0, TIME, &AtomicBool::new(false)).is_err());
    }
}
