//! The stored record of a run: its arms, points and rounds, the observations beside them, and the
//! conclusions.
//!
//! What must hold: a report may hold anything: no arms, no points, points without rounds, NaN.
//! Every output shows the rest and leaves a dash where there is no number.

mod number;
mod store;

use crate::arm::Dialect;
use crate::load::Protocol;

/// Defines a structure of numbers, stored by their names. NaN and infinities are stored as null.
macro_rules! numbers {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $($(#[$field_about])* #[serde(deserialize_with = "number::read")] pub $field: f64,)*
        }

        impl Numbers for $name {
            fn each(of: impl Fn(fn(&Self) -> f64) -> f64) -> Self {
                Self { $($field: of(|one| one.$field),)* }
            }
        }
    };
}

/// A structure of numbers.
pub(crate) trait Numbers: Sized {
    /// Builds one from a way to read each field of another.
    fn each(of: impl Fn(fn(&Self) -> f64) -> f64) -> Self;
}

/// Version of the stored form; raise it when the form changes.
pub const VERSION: u32 = 1;

numbers! {
    /// A median or a fitted value, with its 95% confidence interval. Both bounds are NaN where the
    /// rounds are too few for them (a single round).
    Interval {
        /// The median or the fitted value.
        value,
        /// The lower bound.
        low,
        /// The upper bound.
        high,
    }
}

impl Interval {
    /// A value without bounds.
    pub fn alone(value: f64) -> Self {
        Self { value, low: f64::NAN, high: f64::NAN }
    }

    /// The bounds, if both are known.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        (self.low.is_finite() && self.high.is_finite()).then_some((self.low, self.high))
    }

    /// The verdict on a ratio.
    pub fn verdict(&self) -> Verdict {
        match self.bounds() {
            None => Verdict::Unknown,
            Some((low, _)) if low > 1.0 => Verdict::More,
            Some((_, high)) if high < 1.0 => Verdict::Less,
            Some(_) => Verdict::None,
        }
    }

    /// Whether `value` lies within the bounds; `None` where no bounds are known.
    pub fn contains(&self, value: f64) -> Option<bool> {
        self.bounds().map(|(low, high)| low <= value && value <= high)
    }
}

/// How a ratio with its interval compares with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// More than 1.
    More,
    /// Less than 1.
    Less,
    /// No difference outside the noise.
    None,
    /// Too few rounds to tell.
    Unknown,
}

/// The universal scalability law fitted to one arm's points of one workload:
/// `tps(n) = single * n / (1 + contention * (n - 1) + coherence * n * (n - 1))`.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Fit {
    pub arm: String,
    pub workload: String,
    pub protocol: Protocol,
    /// Transactions a second of one client (lambda).
    pub single: Interval,
    /// The serial share of the work (sigma).
    pub contention: Interval,
    /// The cost of coordination with each other client, as a share of a client's work (kappa).
    pub coherence: Interval,
    /// Where the curve turns: clients, and the transactions a second there. `None` where it never
    /// does.
    pub peak: Option<Peak>,
    /// The share of the points' variance that the curve explains (R squared).
    #[serde(deserialize_with = "number::read")]
    pub explained: f64,
}

/// Where a fitted curve turns.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Peak {
    pub clients: Interval,
    #[serde(deserialize_with = "number::read")]
    pub tps: f64,
}

impl Fit {
    /// The curve's transactions a second at this number of clients.
    pub fn tps(&self, clients: f64) -> f64 {
        let others = clients - 1.0;
        self.single.value * clients
            / (1.0 + self.contention.value * others + self.coherence.value * clients * others)
    }
}

/// The name in [`Report::load`] that marks a run whose transactions were pipelines.
pub(crate) const PIPELINE: &str = "pipeline";

/// A run as it is stored.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Report {
    /// The version of the stored form.
    pub version: u32,
    /// When it began, RFC 3339.
    pub began: String,
    /// The words of the command as a shell takes them, without passwords.
    pub command: Vec<String>,
    /// The machine, and how steady it was.
    pub machine: Machine,
    /// The load as name and value: driver, pace, seconds of warm-up and of counting, seed.
    pub load: Vec<(String, String)>,
    /// The arms; the report compares the others with the first.
    pub arms: Vec<Arm>,
    /// All points, in the order they were first measured.
    pub points: Vec<Point>,
    /// The scalability law for each arm that has points enough.
    pub fits: Vec<Fit>,
    /// The first lines of a report: the faults that disqualify the run, and the comparison of the
    /// arms.
    #[serde(default)]
    pub verdict: Vec<String>,
    /// Conclusions, one sentence each, the most important first.
    pub findings: Vec<String>,
    /// Missing measurements that the command line asked for, and the reasons.
    pub missing: Vec<String>,
}

impl Report {
    /// An arm's index; past the end for an unknown name.
    pub(crate) fn arm_number(&self, name: &str) -> usize {
        self.arms.iter().position(|arm| arm.name == name).unwrap_or(self.arms.len())
    }
}

#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// Facts of the machine, as name and value: CPU, topology, kernel, governor, huge pages.
    pub facts: Vec<(String, String)>,
    /// Times of a fixed loop, over the run.
    pub noise: Vec<Noise>,
}

/// Facts that differ between runs on the same machine.
pub(crate) const MEMORY_AT_START: &str = "memory available at start";
pub(crate) const LOAD_AT_START: &str = "load of others at start";
/// The fact that names the commit of the measured program.
pub const COMMIT: &str = "commit";

numbers! {
    /// One run of the fixed loop: seconds since the run's beginning, and milliseconds it took.
    Noise { at, took }
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Arm {
    pub name: String,
    pub dialect: Dialect,
    /// The server's version, as it reports it.
    pub server: String,
    /// Settings that matter, as name and value.
    pub settings: Vec<(String, String)>,
}

/// A workload on an arm with so many clients.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Point {
    /// The arm's name.
    pub arm: String,
    /// The workload's name.
    pub workload: String,
    /// The protocol of its statements.
    pub protocol: Protocol,
    /// Connections that work at the same time.
    pub clients: usize,
    /// Transactions a second: the rounds' median.
    pub tps: Interval,
    /// The judged figure ([`Round::judged`]) over that of the first arm with the same workload,
    /// protocol and clients. `None` for the first arm itself, and where that arm has no such point.
    pub ratio: Option<Interval>,
    /// The rounds, in the order in which they ran.
    pub rounds: Vec<Round>,
    /// Conditions that must hold after the last round.
    pub checks: Vec<Check>,
}

impl Point {
    /// Whether transactions arrived at a given rate.
    pub fn is_open(&self) -> bool {
        self.rounds.iter().any(|round| round.offered.is_some())
    }
}

#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Round {
    /// The pass over the points it belongs to, from 0. Rounds of two arms with the same clients and
    /// the same pass ran one right after the other, and are compared.
    pub pass: u32,
    /// Seconds since the run's beginning.
    #[serde(deserialize_with = "number::read")]
    pub at: f64,
    #[serde(deserialize_with = "number::read")]
    pub elapsed: f64,
    #[serde(deserialize_with = "number::read")]
    pub tps: f64,
    /// Arrivals a second (open loop).
    pub offered: Option<Offered>,
    pub kinds: Vec<KindCounts>,
    /// The latency of all transactions done.
    pub latency: Latency,
    /// Lateness of begins: time from a transaction's arrival to its begin (open loop).
    pub lag: Option<Latency>,
    /// Lateness of begins while a client was free: the driver's own lateness.
    #[serde(default)]
    pub own_lag: Option<Latency>,
    /// Latencies by equal steps of a rising rate, for the transactions that arrived in each; empty
    /// elsewhere.
    #[serde(default)]
    pub by_rate: Vec<Latency>,
    pub seconds: Vec<u64>,
    pub errors: Vec<Errors>,
    /// Transactions that arrived and never began (open loop), where the driver reports them.
    pub unstarted: Option<u64>,
    /// The number of clients that could not go on, and the first one's reason.
    pub lost_clients: Option<(usize, String)>,
    pub client_cpu: CpuTime,
    pub observed: Observed,
}

impl Round {
    /// The figure that judges it: throughput, or p99 in an open loop, where throughput is the
    /// requested rate.
    pub fn judged(&self) -> f64 {
        if self.offered.is_some() { self.latency.p99 } else { self.tps }
    }
}

/// Arrivals a second in an open loop, from one rate to the other evenly.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Offered {
    #[serde(deserialize_with = "number::read")]
    pub from: f64,
    #[serde(deserialize_with = "number::read")]
    pub to: f64,
    /// Whether they arrived evenly, not at random.
    #[serde(default)]
    pub even: bool,
}

impl Offered {
    pub fn mean(&self) -> f64 {
        self.at(0.5)
    }

    /// After this part of the time that was counted.
    pub fn at(&self, part: f64) -> f64 {
        self.from + (self.to - self.from) * part
    }
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KindCounts {
    pub name: String,
    pub done: u64,
    /// Given up.
    pub failed: u64,
    /// Tried again.
    pub retried: u64,
}

numbers! {
    /// Latencies in milliseconds; `p999` is the 99.9th percentile.
    Latency { mean, p50, p90, p95, p99, p999, max }
}

#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Observed {
    /// The split of the machine's CPU time, where the server runs on this machine.
    pub cpu: Option<CpuSplit>,
    /// The server's CPU time for each transaction, where it runs on this machine.
    #[serde(default)]
    pub server_cpu: Option<ServerCpu>,
    /// Idle parts of the CPUs that server and driver may use, where either may not use all.
    #[serde(default)]
    pub own_cpus: Option<OwnCpus>,
    /// Number of the server's threads that worked all the time.
    #[serde(default)]
    pub busy_threads: Option<usize>,
    /// Context switches of the server for each transaction.
    pub switches: Option<Switches>,
    /// System calls of the server for each transaction.
    pub calls: Option<f64>,
    /// Events of the server's hardware and kernel for each transaction.
    #[serde(default)]
    pub counters: Option<Counters>,
    /// Top symbols of the server, by their share of its samples.
    pub symbols: Vec<Share>,
    /// Number of samples behind these shares.
    #[serde(default)]
    pub samples: u64,
    /// Wait events of the server's sessions, by their share of all sampled sessions.
    pub waits: Vec<Share>,
    /// Number of samples of all sessions. Sessions of one sample are not independent: one commit
    /// that they all wait for shows in each of them.
    #[serde(default)]
    pub looks: u64,
    /// Missing observations and their reasons: a sentence each.
    pub unseen: Vec<String>,
}

/// Beginning of a sentence in [`Observed::unseen`] on missing system calls, which not every round
/// counts.
pub(crate) const NO_CALLS: &str = "no system calls: ";
/// The same for counters.
pub(crate) const NO_COUNTERS: &str = "no counters: ";
/// The same for symbols.
pub(crate) const NO_SYMBOLS: &str = "no symbols: ";
/// The same for wait events, which cover only a part of a round.
pub(crate) const NO_WAITS: &str = "no wait events: ";

numbers! {
    /// Context switches for each transaction. A voluntary one: a thread had to wait. An involuntary
    /// one: its time slice was over, or another thread came first.
    Switches { voluntary, involuntary }
}

numbers! {
    /// Events for each transaction. Null where perf could not count one.
    Counters {
        cycles,
        instructions,
        /// Accesses that missed the last level of cache.
        cache_misses,
        /// Reads from the memory of NUMA nodes.
        node_loads,
        /// Processor time in microseconds.
        cpu,
        /// Moves of a thread to another processor.
        migrations,
        page_faults,
    }
}

/// A part of something counted in samples.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Share {
    /// A symbol, or a wait event.
    pub name: String,
    /// From 0 to 1.
    #[serde(deserialize_with = "number::read")]
    pub share: f64,
}

/// Shares and their number of samples: 0 where that is unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Profile {
    pub samples: u64,
    /// The largest first. Where the sum is below 1, the smallest are left out.
    pub shares: Vec<Share>,
}

numbers! {
    /// CPU time for each transaction in microseconds: the server's own, and the kernel's for it.
    ServerCpu { user, kernel }
}

numbers! {
    /// Idle parts, from 0 to 1, of the CPUs that the server may use and of those that the load
    /// driver may use.
    OwnCpus { server_idle, client_idle }
}

numbers! {
    /// Shares of the machine's CPU time; their sum is 1. The load driver is the client.
    CpuSplit { client, server_user, server_kernel, other, idle }
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Errors {
    /// SQLSTATE, or MySQL's number.
    pub code: String,
    pub message: String,
    pub count: u64,
    /// Whether the workload tolerates it: no transaction failed by it.
    pub tolerated: bool,
}

numbers! {
    /// CPU time of the driver's threads in the measured time, in seconds.
    CpuTime { user, system }
}

/// A condition that must hold after a run, and whether it does.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Check {
    pub claim: String,
    /// The observation that violates it.
    pub fault: Option<String>,
}
