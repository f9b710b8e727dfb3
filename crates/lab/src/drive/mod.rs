//! Drivers: programs that make the load. The native driver steps [`crate::client::Client`]s on one
//! thread per core; the other runs the real pgbench and reads its output.

mod native;
mod pgbench;
mod wire;
mod wire_my;
mod wire_pg;

pub use native::Native;
pub use pgbench::Pgbench;

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use procfs::FromRead as _;
use procfs::process::Stat;
use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::arm::Target;
use crate::load::Load;
use crate::record::{CpuTime, Errors};
use crate::workload::Workload;

/// An empty histogram of nanoseconds up to an hour, three digits exact. The lab makes all its
/// histograms here, so that any two can be added.
pub fn histogram() -> Histogram<u64> {
    const HOUR: u64 = 3_600_000_000_000;
    Histogram::new_with_bounds(1, HOUR, 3).expect("these bounds are valid")
}

/// CPU time so far of the process or thread that has this `stat` in /proc. The kernel gives it in
/// ticks (10 ms).
fn cpu_time(stat: &str) -> CpuTime {
    let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
    let stat = Stat::from_file(stat);
    stat.map_or(CpuTime::default(), |stat| CpuTime { user: seconds(stat.utime), system: seconds(stat.stime) })
}

fn cpu_since(before: CpuTime, stat: &str) -> CpuTime {
    let now = cpu_time(stat);
    CpuTime { user: now.user - before.user, system: now.system - before.system }
}

#[derive(Debug, Clone)]
pub struct Kind {
    /// Committed within the measured time.
    pub done: u64,
    /// Given up: after [`Load::tries`], or at once where a repetition would fail as well.
    pub failed: u64,
    /// Tried again.
    pub retried: u64,
    /// Latency of the transactions done, in nanoseconds.
    pub latency: Histogram<u64>,
}

#[derive(Debug, Clone)]
pub struct Measured {
    /// The counted time; shorter than asked for in an interrupted round.
    pub elapsed: Duration,
    /// By kind of transaction, in the order of [`Workload::kinds`].
    pub kinds: Vec<Kind>,
    /// Transactions done in each whole second.
    pub seconds: Vec<u64>,
    /// Lateness of begins: how long after its arrival a transaction began (open loop), in
    /// nanoseconds. A transaction that never began counts until the end.
    pub lag: Option<Histogram<u64>>,
    /// The part of that lateness during which a client was free: the driver's own (open loop,
    /// native).
    pub(crate) own_lag: Option<Histogram<u64>>,
    /// Latencies by steps of a rising rate, by arrival time. Empty at a steady rate, and where the
    /// driver does not report them.
    pub(crate) by_rate: Vec<Histogram<u64>>,
    /// Transactions that arrived in the measured time and never began (open loop), where the driver
    /// reports them.
    pub unstarted: Option<u64>,
    /// Errors of statements, by code.
    pub errors: Vec<Errors>,
    /// The number of clients that could not go on, and the first one's reason.
    pub lost_clients: Option<(usize, String)>,
    pub client_cpu: CpuTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Connecting, ramp and warm-up: nothing is counted.
    Warming,
    /// The driver counts.
    Measuring,
    /// Counting is over; the driver gives its connections up once the observer has looked
    /// ([`Live::hold`]).
    Over,
}

/// Longest time for which a driver keeps its sessions at a round's end for the observer: 2 s. In
/// tests it is 60 s, longer than a machine stalls.
const HOLD: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });

/// The state of a running round: what it has done so far, and the flag that ends it early.
#[derive(Debug)]
pub struct Live {
    stop: AtomicBool,
    phase: AtomicU8,
    /// An observer will look at the server when counting is over.
    observed_at_end: AtomicBool,
    hold: Duration,
    /// Transactions done, by thread.
    done: Box<[CachePadded<AtomicU64>]>,
}

impl Live {
    /// For a driver with this many threads.
    pub fn new(threads: usize) -> Self {
        let done = (0..threads).map(|_| CachePadded::new(AtomicU64::new(0))).collect();
        Self {
            stop: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Warming as u8),
            observed_at_end: AtomicBool::new(false),
            hold: HOLD,
            done,
        }
    }

    /// For a driver with this many threads, whose sessions an observer looks at when counting is
    /// over, until [`Live::looked`].
    pub fn watched(threads: usize) -> Self {
        Self { observed_at_end: AtomicBool::new(true), ..Self::new(threads) }
    }

    /// The observer has had its last look: sessions may end.
    pub fn looked(&self) {
        // Relaxed: the flag publishes nothing else.
        self.observed_at_end.store(false, Ordering::Relaxed);
    }

    /// Waits, for [`HOLD`] at most, until the observer has looked at the server after
    /// [`Phase::Over`]. A process or thread takes its CPU time and context switches with it, so a
    /// driver parts with its sessions only afterwards.
    pub fn hold(&self) {
        let until = Instant::now() + self.hold;
        // Relaxed: as above.
        while self.observed_at_end.load(Ordering::Relaxed) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Enters `phase`; the driver calls this as close to the moment itself as it can. The
    /// observers' figures (CPU time, context switches) run from the first call with `Measuring` to
    /// the first one with `Over`.
    pub fn enter(&self, phase: Phase) {
        // Relaxed: a hint of where the round is; readers read the counts by themselves.
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

    /// Publishes how many transactions a thread has done.
    pub fn publish(&self, thread: usize, done: u64) {
        // Relaxed: each counter has one writer, and readers need the number alone.
        self.done[thread].store(done, Ordering::Relaxed);
    }

    pub fn done(&self) -> u64 {
        // Relaxed: as above.
        self.done.iter().map(|one| one.load(Ordering::Relaxed)).sum()
    }

    pub fn stop(&self) {
        // Relaxed: the flag publishes nothing else.
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        // Relaxed: as above.
        self.stop.load(Ordering::Relaxed)
    }
}

impl Default for Kind {
    fn default() -> Self {
        Self { done: 0, failed: 0, retried: 0, latency: histogram() }
    }
}

pub trait Driver {
    /// Whether it can make this load of this workload, for any number of clients and any server.
    /// The error names the part it can't do.
    fn suits(&self, _workload: &dyn Workload, _load: &Load) -> Result<(), String> {
        Ok(())
    }

    /// Runs one round. An error means that it measured nothing; the caller adds the arm's name to
    /// it. [`Measured`] reports clients that failed.
    fn run(&self, to: &Target, workload: &dyn Workload, load: &Load, live: &Live)
    -> Result<Measured, String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_is_seen_working() {
        const THREAD: &str = "/proc/thread-self/stat";
        let before = cpu_time(THREAD);
        // The machine may keep this thread from working for long: allow 60 s.
        let until = Instant::now() + Duration::from_secs(60);
        let used = || {
            let used = cpu_since(before, THREAD);
            used.user + used.system
        };
        while used() < 0.02 {
            assert!(Instant::now() < until, "{}", used());
        }
    }
}
