//! Drivers: what makes the load. The native one steps [`crate::client::Client`]s on a thread for each
//! core; the other runs the real pgbench and reads what it prints.

mod native;
mod pgbench;
mod wire;
mod wire_my;
mod wire_pg;

pub use native::Native;
pub use pgbench::Pgbench;

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::arm::Target;
use crate::load::Load;
use crate::record::{CpuTime, Errors};
use crate::workload::Workload;

/// An empty histogram of nanoseconds up to an hour, three digits exact. All histograms of the lab are made by it, so that
/// any two can be added.
pub fn histogram() -> Histogram<u64> {
    const HOUR: u64 = 3_600_000_000_000;
    Histogram::new_with_bounds(1, HOUR, 3).expect("these bounds are valid")
}

#[derive(Debug, Clone)]
pub struct Kind {
    /// Committed within the measured time.
    pub done: u64,
    /// Given up: after [`Load::tries`], or at once where a repetition would fail as well.
    pub failed: u64,
    /// Begun again.
    pub retried: u64,
    /// Of those done, in nanoseconds.
    pub latency: Histogram<u64>,
}

#[derive(Debug, Clone)]
pub struct Measured {
    /// How long was counted; shorter than asked for when it was interrupted.
    pub elapsed: Duration,
    /// By kind of transaction, in the order of [`Workload::kinds`].
    pub kinds: Vec<Kind>,
    /// Transactions done in each whole second.
    pub seconds: Vec<u64>,
    /// How much later than due transactions began (open loop), in nanoseconds; those never begun count until the end.
    pub lag: Option<Histogram<u64>>,
    /// The part of that lateness in which a client was free: the driver's own (open loop, native).
    pub(crate) own_lag: Option<Histogram<u64>>,
    /// Latencies by steps of a rising rate, at which transactions were due. Empty at a steady rate,
    /// and where the driver does not tell.
    pub(crate) by_rate: Vec<Histogram<u64>>,
    /// Transactions that were due in the measured time and were never begun (open loop), where the driver tells.
    pub unstarted: Option<u64>,
    /// Errors of statements, by code.
    pub errors: Vec<Errors>,
    /// Clients that could not go on, and why the first could not.
    pub lost_clients: Option<(usize, String)>,
    /// The driver's own work.
    pub client_cpu: CpuTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Connecting, ramp and warm-up: nothing is counted.
    Warming,
    /// What is done is counted.
    Measuring,
    /// Nothing is counted any more; connections are given up once that was looked at ([`Live::hold`]).
    Over,
}

/// How long sessions are kept at a round's end for whoever looks at them, at most; in tests longer than a machine stalls.
const HOLD: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });

/// What is seen of a round while it runs, and how it is ended early.
#[derive(Debug)]
pub struct Live {
    stop: AtomicBool,
    phase: AtomicU8,
    /// Somebody is going to look at the server when counting is over.
    awaited: AtomicBool,
    /// How long that is waited for at most.
    hold: Duration,
    threads: Box<[CachePadded<Counter>]>,
}

#[derive(Debug, Default)]
struct Counter {
    done: AtomicU64,
    spent: AtomicU64,
}

impl Live {
    /// For a driver of so many threads.
    pub fn new(threads: usize) -> Self {
        let counters = (0..threads).map(|_| CachePadded::new(Counter::default())).collect();
        Self {
            stop: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Warming as u8),
            awaited: AtomicBool::new(false),
            hold: HOLD,
            threads: counters,
        }
    }

    /// For a driver of so many threads whose sessions are looked at when counting is over, until [`Live::looked`].
    pub fn watched(threads: usize) -> Self {
        Self { awaited: AtomicBool::new(true), ..Self::new(threads) }
    }

    /// The server has been looked at for the last time: sessions may end.
    pub fn looked(&self) {
        // Relaxed: nothing else is handed over by it.
        self.awaited.store(false, Ordering::Relaxed);
    }

    /// Waits, not for ever, until the server has been looked at after the driver entered [`Phase::Over`]. The CPU time and
    /// the context switches of a process or thread go with it, so that a driver parts with its sessions only afterwards.
    pub fn hold(&self) {
        let until = Instant::now() + self.hold;
        // Relaxed: as above.
        while self.awaited.load(Ordering::Relaxed) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The driver goes on to `phase`, as close to the moment itself as it can: what is observed beside the round (CPU time,
    /// context switches) is taken from the first call with `Measuring` to the first one with `Over`.
    pub fn enter(&self, phase: Phase) {
        // Relaxed: read as a hint of where the round is; the counts that go with it are read by their own.
        self.phase.fetch_max(phase as u8, Ordering::Relaxed);
    }

    pub fn phase(&self) -> Phase {
        // Relaxed: as above.
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Warming,
            1 => Phase::Measuring,
            _ => Phase::Over,
        }
    }

    /// Thread `thread` has done so many transactions so far, which took so many nanoseconds together: none, where the driver
    /// doesn't know.
    pub fn publish(&self, thread: usize, done: u64, spent: u64) {
        // Relaxed: each counter has one writer, and readers want the numbers alone.
        self.threads[thread].done.store(done, Ordering::Relaxed);
        self.threads[thread].spent.store(spent, Ordering::Relaxed);
    }

    pub fn done(&self) -> u64 {
        // Relaxed: as above.
        self.threads.iter().map(|one| one.done.load(Ordering::Relaxed)).sum()
    }

    /// What they took together.
    pub fn spent(&self) -> Duration {
        // Relaxed: as above.
        let all = self.threads.iter().map(|one| one.spent.load(Ordering::Relaxed));
        Duration::from_nanos(all.fold(0, u64::saturating_add))
    }

    pub fn stop(&self) {
        // Relaxed: nothing else is handed over by it.
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        // Relaxed: as above.
        self.stop.load(Ordering::Relaxed)
    }
}

pub trait Driver {
    /// Whether it can make such a load of this workload, whatever the number of clients and the server; the error says what
    /// it can't.
    fn suits(&self, _workload: &dyn Workload, _load: &Load) -> Result<(), String> {
        Ok(())
    }

    /// Runs one round. An error means that nothing was measured, and doesn't name the arm, which whoever asked for it does;
    /// what happened to single clients is in [`Measured`].
    fn run(&self, to: &Target, workload: &dyn Workload, load: &Load, live: &Live)
    -> Result<Measured, String>;
}
