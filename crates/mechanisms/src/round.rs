//! One round: a number of threads repeat a row's operation on one arm for a given time.
//!
//! What must hold:
//! 1. Threads share nothing with each other but the structure under test and the phase, a line that
//!    changes twice a round.
//! 2. An operation counts if it began and ended in the counted time. So a thread that waits for the
//!    whole round counts as 0.
//! 3. A round ends soon after its time or a stop. Each thread ends its last operation, which no
//!    thread that has gone can hold up: it holds nothing between two operations.
//! 4. A thread that the system refuses something ends, and the round gives the reason in place of
//!    counts. A thread that panics fails its row, and the run goes on with the next one.

use std::io;
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use calls::switches;
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
    /// Whether the structure counts atomic changes that failed. The kernel and the C library do not
    /// tell theirs.
    fn counts_retries(&self) -> bool {
        true
    }
    /// Whether threads of this process do all of the work. Switches of others are not counted.
    fn is_within(&self) -> bool {
        true
    }
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
    refused: Option<String>,
}

/// The operations of one thread.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    /// All, those before and after the counted time included.
    all: u64,
    counted: u64,
    retries: u64,
    /// Time that the counted ones took, where they are timed.
    took: Option<Duration>,
}

/// How a round ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Counted(Round),
    /// The stop flag was set.
    Stopped,
    /// The system refuses what the arm needs: the reason, in a line.
    Refused(String),
}

/// The counts of a round.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Round {
    /// The pass in which it ran.
    pub pass: u32,
    /// The counted time. Where operations are timed, the time that they took, by thread.
    pub seconds: f64,
    /// Operations of all threads in the counted time.
    pub operations: u64,
    /// Operations of the thread that did fewest.
    pub least: u64,
    /// Operations of the thread that did most.
    pub most: u64,
    /// Failed atomic changes; absent where the structure does not count them.
    pub retries: Option<u64>,
    /// Context switches of all threads; absent where other processes do the work.
    pub switches: Option<u64>,
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

    /// Says that the system refuses what this thread needs. Its work is to end then.
    pub fn refuse(&mut self, reason: String) {
        self.refused = Some(reason);
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
        self.repeat_timed(|me| (operations(me), None));
    }

    /// As [`Worker::repeat_many`], with the time that the operations took. Then the work beside
    /// them does not belong to their cost.
    #[inline]
    pub fn repeat_timed(&mut self, mut operations: impl FnMut(&mut Caller) -> (u64, Option<Duration>)) {
        let mut counting = false;
        loop {
            let (done, took) = operations(&mut self.caller);
            self.done.all += done;
            // Relaxed: the phase publishes nothing else.
            match self.phase.load(Ordering::Relaxed) {
                WARMUP => {}
                COUNTED if counting => {
                    self.done.counted += done;
                    if let Some(took) = took {
                        *self.done.took.get_or_insert_default() += took;
                    }
                    self.done.retries = self.caller.retries();
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

/// Counts that the kernel keeps, for a whole round.
#[derive(Debug, Clone, Copy)]
struct Kernel {
    switches: Option<u64>,
    shootdowns: Option<u64>,
}

impl Kernel {
    /// The counts until now.
    fn now(subject: &dyn Subject) -> Self {
        Self {
            switches: subject.is_within().then(switches::of_others),
            shootdowns: subject.shoots_down().then(shootdowns::count).flatten(),
        }
    }

    /// The counts since a moment before.
    fn since(self, before: Self) -> Self {
        let less = |now: Option<u64>, before| now.zip(before).map(|(now, before)| now.saturating_sub(before));
        Self {
            switches: less(self.switches, before.switches),
            shootdowns: less(self.shootdowns, before.shootdowns),
        }
    }
}

/// Runs a round.
///
/// # Errors
/// A thread panics, or the structure is wrong afterwards.
pub(crate) fn round(
    subject: &dyn Subject,
    threads: usize,
    pass: u32,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Outcome, String> {
    let (phase, begin) = (CachePadded::new(AtomicU8::new(WARMUP)), OnceLock::new());
    let (counted, ended) = thread::scope(|scope| {
        let (phase, begin) = (&*phase, &begin);
        let start = |number| {
            Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || {
                let (caller, done) = (Caller::new(number), Done::default());
                let mut worker = Worker { caller, phase, done, refused: None };
                begin.wait();
                subject.work(&mut worker);
                worker.refused.map_or(Ok(worker.done), Err)
            })
        };
        let started: io::Result<Vec<_>> = (0..threads).map(start).collect();
        if started.is_err() {
            phase.store(OVER, Ordering::Relaxed);
        }
        let _ = begin.set(());
        let started = match started {
            Ok(started) => started,
            Err(error) => return (None, vec![Ok(Err(cannot_start(threads, &error)))]),
        };
        let counted = wait(time / 10, stop).and_then(|_| {
            let before = Kernel::now(subject);
            phase.store(COUNTED, Ordering::Relaxed);
            let seconds = wait(time, stop)?;
            Some((seconds, Kernel::now(subject).since(before)))
        });
        // Relaxed, all: the phase publishes nothing else.
        phase.store(OVER, Ordering::Relaxed);
        (counted, started.into_iter().map(|thread| thread.join()).collect::<Vec<_>>())
    });
    let ended: Result<Vec<Result<Done, String>>, _> = ended.into_iter().collect();
    let ended = ended.map_err(|_| format!("one of {threads} threads panicked, as said above"))?;
    let done = match ended.into_iter().collect::<Result<Vec<Done>, String>>() {
        Ok(done) => done,
        Err(reason) => return Ok(Outcome::Refused(reason)),
    };
    subject.check(done.iter().map(|thread| thread.all).sum())?;
    let Some((seconds, kernel)) = counted else { return Ok(Outcome::Stopped) };
    let took: Option<Duration> = done.iter().filter_map(|thread| thread.took).reduce(|sum, took| sum + took);
    let seconds = took.map_or(seconds, |took| took.as_secs_f64() / threads as f64);
    let sum = |of: fn(&Done) -> u64| done.iter().map(of).sum();
    let counts = || done.iter().map(|thread| thread.counted);
    Ok(Outcome::Counted(Round {
        pass,
        seconds,
        operations: sum(|thread| thread.counted),
        least: counts().min().unwrap_or_default(),
        most: counts().max().unwrap_or_default(),
        retries: subject.counts_retries().then(|| sum(|thread| thread.retries)),
        switches: kernel.switches,
        shootdowns: kernel.shootdowns,
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
        let done = round(&counter, 4, 2, TIME, &AtomicBool::new(false)).unwrap();
        let Outcome::Counted(round) = done else { panic!("{done:?}") };
        assert!(round.seconds >= TIME.as_secs_f64());
        assert_eq!((round.pass, round.retries), (2, Some(round.operations)));
        assert!(round.switches.is_some());
        assert!(round.least <= round.operations / 4 && round.operations / 4 <= round.most);
        assert!(round.operations < counter.count.into_inner(), "the warm-up does not count");
    }

    /// Its operations take 2 ms each, by their own word, and nothing in fact.
    struct Timed;

    impl Subject for Timed {
        fn work(&self, worker: &mut Worker<'_>) {
            worker.repeat_timed(|_| {
                thread::sleep(Duration::from_millis(1));
                (1, Some(Duration::from_millis(2)))
            });
        }

        fn check(&self, _: u64) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn work_beside_timed_operations_does_not_count() {
        let done = round(&Timed, 1, 0, TIME, &AtomicBool::new(false)).unwrap();
        let Outcome::Counted(round) = done else { panic!("{done:?}") };
        assert!((round.figure() - 500.0).abs() < 1e-6, "{round:?}");
    }

    #[test]
    fn a_stopped_round_gives_nothing_and_a_wrong_structure_fails() {
        let counter = Counter { count: AtomicU64::new(0), forgets: 0 };
        assert_eq!(
            round(&counter, 2, 0, Duration::from_secs(3600), &AtomicBool::new(true)),
            Ok(Outcome::Stopped)
        );
        let counter = Counter { count: AtomicU64::new(3), forgets: 4 };
        assert!(round(&counter, 2, 0, TIME, &AtomicBool::new(false)).is_err());
    }

    /// Its second thread ends in another way than by the end of the round.
    struct Odd(fn(&mut Worker<'_>));

    impl Subject for Odd {
        fn work(&self, worker: &mut Worker<'_>) {
            match worker.number() {
                1 => (self.0)(worker),
                _ => worker.repeat(|_| ()),
            }
        }

        fn check(&self, _: u64) -> Result<(), String> {
            Ok(())
        }
    }

    #[test]
    fn a_refused_thread_gives_its_reason_and_a_panic_fails_the_round() {
        let ends = |odd| round(&Odd(odd), 3, 0, TIME, &AtomicBool::new(false));
        let refused = ends(|worker| worker.refuse("too many open files".into()));
        assert_eq!(refused, Ok(Outcome::Refused("too many open files".into())));
        let fault = ends(|_| panic!("expected")).unwrap_err();
        assert_eq!(fault, "one of 3 threads panicked, as said above");
    }
}
