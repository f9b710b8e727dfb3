//! The record of a run, as it is stored: its arms, points and rounds, what was seen beside them,
//! and what was made of them.
//!
//! What must hold: a report may hold anything: no arms, no points, points without rounds, numbers
//! that are none (NaN). Every output shows the rest and leaves a dash where there is no number.

mod number;
mod store;

use crate::arm::Dialect;
use crate::load::Protocol;

/// A structure of numbers, which are stored by their names. One that is no number is stored as
/// null.
macro_rules! numbers {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $($(#[$field_about])* #[serde(deserialize_with = "number::read")] pub $field: f64,)*
        }

        impl $name {
            /// One whose fields are `of` a way to read the field of others.
            #[allow(dead_code)]
            pub(crate) fn each(of: impl Fn(fn(&Self) -> f64) -> f64) -> Self {
                Self { $($field: of(|one| one.$field),)* }
            }
        }
    };
}

/// Of the stored form; raised when it changes.
pub const VERSION: u32 = 1;

numbers! {
    /// A number, and the bounds within which it lies 95 times in 100.
    Interval {
        /// The best guess: a median, or what was fitted.
        value,
        /// Not below; NaN when there was too little to tell (a single round).
        low,
        /// Not above; NaN with `low`.
        high,
    }
}

impl Interval {
    /// A number of which no bounds are known.
    pub fn alone(value: f64) -> Self {
        Self { value, low: f64::NAN, high: f64::NAN }
    }

    /// The bounds, where they are known.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        (self.low.is_finite() && self.high.is_finite()).then_some((self.low, self.high))
    }

    /// What it says as a ratio.
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

/// The verdict of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The second is more.
    More,
    /// The second is less.
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
    /// Name of the arm.
    pub arm: String,
    /// Name of the workload.
    pub workload: String,
    /// How statements were sent.
    pub protocol: Protocol,
    /// Transactions a second of one client (lambda).
    pub single: Interval,
    /// The share of work done by one at a time (sigma).
    pub contention: Interval,
    /// The cost of agreeing with each other client, as a share of one's work (kappa).
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
    /// Clients.
    pub clients: Interval,
    /// Transactions a second.
    #[serde(deserialize_with = "number::read")]
    pub tps: f64,
}

impl Fit {
    /// Transactions a second that the curve has at so many clients.
    pub fn tps(&self, clients: f64) -> f64 {
        let others = clients - 1.0;
        self.single.value * clients
            / (1.0 + self.contention.value * others + self.coherence.value * clients * others)
    }
}

/// The name in [`Report::load`] under which a run says that its transactions went as pipelines.
pub(crate) const PIPELINE: &str = "pipeline";

/// A whole run.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// When it began, RFC 3339.
    pub began: String,
    /// The words of the command as a shell takes them, without passwords.
    pub command: Vec<String>,
    /// What it ran on.
    pub machine: Machine,
    /// How the load was made, as name and value: driver, pace, seconds of warm-up and of counting,
    /// seed.
    pub load: Vec<(String, String)>,
    /// What was compared; the others are held against the first.
    pub arms: Vec<Arm>,
    /// All points, in the order they were first measured.
    pub points: Vec<Point>,
    /// Curves through the points.
    pub fits: Vec<Fit>,
    /// The first lines of a report: what disqualifies the run, and how the arms compare.
    #[serde(default)]
    pub verdict: Vec<String>,
    /// Conclusions, one sentence each, the most important first.
    pub findings: Vec<String>,
    /// What was asked for and not measured, and why.
    pub missing: Vec<String>,
}

impl Report {
    /// An arm's place; past the end for a name that isn't among the arms.
    pub(crate) fn arm_number(&self, name: &str) -> usize {
        self.arms.iter().position(|arm| arm.name == name).unwrap_or(self.arms.len())
    }
}

/// The machine.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// Facts of the machine, as name and value: CPU, topology, kernel, governor, huge pages.
    pub facts: Vec<(String, String)>,
    /// How long a fixed loop took, over the run.
    pub noise: Vec<Noise>,
}

/// The fact of how much memory was free, which is another one at each run on the same machine.
pub(crate) const MEMORY_AT_START: &str = "memory available at start";

/// The fact of how busy others were, which is as well.
pub(crate) const LOAD_AT_START: &str = "load of others at start";

numbers! {
    /// One run of the fixed loop.
    Noise {
        /// Seconds since the run's beginning.
        at,
        /// Milliseconds it took.
        took,
    }
}

/// One server, in one setting.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Arm {
    /// Its name.
    pub name: String,
    /// What it speaks.
    pub dialect: Dialect,
    /// What it says it is.
    pub server: String,
    /// Settings that matter, as name and value.
    pub settings: Vec<(String, String)>,
}

/// A workload on an arm with so many clients.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Point {
    /// Name of the arm.
    pub arm: String,
    /// Name of the workload.
    pub workload: String,
    /// How statements were sent.
    pub protocol: Protocol,
    /// Connections.
    pub clients: usize,
    /// Transactions a second: the rounds' median.
    pub tps: Interval,
    /// What the point is judged by ([`Round::judged`]) over that of the first arm with the same
    /// workload, protocol and clients; `None` for the first arm itself, and where that one has no
    /// such point.
    pub ratio: Option<Interval>,
    /// All rounds.
    pub rounds: Vec<Round>,
    /// What must hold after the last round.
    pub checks: Vec<Check>,
}

impl Point {
    /// Whether transactions were due at a given rate.
    pub fn is_open(&self) -> bool {
        self.rounds.iter().any(|round| round.offered.is_some())
    }
}

/// One round.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Round {
    /// Which pass over the points it belongs to, from 0: rounds of two arms with the same clients
    /// and the same pass were measured one right after the other, and are compared with each other.
    pub pass: u32,
    /// Seconds since the run's beginning.
    #[serde(deserialize_with = "number::read")]
    pub at: f64,
    /// Seconds that were counted.
    #[serde(deserialize_with = "number::read")]
    pub elapsed: f64,
    /// Transactions done a second.
    #[serde(deserialize_with = "number::read")]
    pub tps: f64,
    /// Transactions due a second (open loop).
    pub offered: Option<Offered>,
    /// By kind of transaction.
    pub kinds: Vec<KindCounts>,
    /// The latency of all transactions done.
    pub latency: Latency,
    /// How much later than due they began (open loop).
    pub lag: Option<Latency>,
    /// How much later than due they began though a client was free: the driver's own lateness.
    #[serde(default)]
    pub own_lag: Option<Latency>,
    /// Latencies by equal steps of a rising rate, of the transactions due in each; empty elsewhere.
    #[serde(default)]
    pub by_rate: Vec<Latency>,
    /// Done in each second.
    pub seconds: Vec<u64>,
    /// Errors by code.
    pub errors: Vec<Errors>,
    /// Transactions that were due and never begun (open loop), where the driver tells.
    pub unstarted: Option<u64>,
    /// Clients that could not go on, and why the first could not.
    pub lost_clients: Option<(usize, String)>,
    /// The driver's own CPU time.
    pub client_cpu: CpuTime,
    /// What the observers saw.
    pub observed: Observed,
}

impl Round {
    /// What it is judged by: throughput, and in an open loop, where that is what was asked for,
    /// p99.
    pub fn judged(&self) -> f64 {
        if self.offered.is_some() { self.latency.p99 } else { self.tps }
    }
}

/// Transactions due a second in an open loop; from one rate to the other evenly.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Offered {
    /// When counting began.
    #[serde(deserialize_with = "number::read")]
    pub from: f64,
    /// When it ended.
    #[serde(deserialize_with = "number::read")]
    pub to: f64,
    /// Whether they came evenly, not by chance.
    #[serde(default)]
    pub even: bool,
}

impl Offered {
    /// Over the time that was counted.
    pub fn mean(&self) -> f64 {
        self.at(0.5)
    }

    /// After this part of the time that was counted.
    pub fn at(&self, part: f64) -> f64 {
        self.from + (self.to - self.from) * part
    }
}

/// Transactions of one kind.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KindCounts {
    /// Its name.
    pub name: String,
    /// Committed.
    pub done: u64,
    /// Given up.
    pub failed: u64,
    /// Begun again.
    pub retried: u64,
}

numbers! {
    /// Latencies in milliseconds.
    Latency {
        /// Mean.
        mean,
        /// Half are below.
        p50,
        /// Nine in ten are below.
        p90,
        /// 95 in 100.
        p95,
        /// 99 in 100.
        p99,
        /// 999 in 1000.
        p999,
        /// The longest.
        max,
    }
}

impl Latency {
    /// Nobody knows any.
    pub(crate) fn none() -> Self {
        Self::each(|_| f64::NAN)
    }
}

/// What was seen beside a round.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Observed {
    /// Where the machine's CPU time went, where the server runs on this machine.
    pub cpu: Option<CpuSplit>,
    /// What was idle of the CPUs that server and driver may use, where either may not use all.
    #[serde(default)]
    pub own_cpus: Option<OwnCpus>,
    /// How many of the server's threads worked all the time.
    #[serde(default)]
    pub busy_threads: Option<usize>,
    /// Context switches of the server for each transaction.
    pub switches: Option<Switches>,
    /// System calls of the server for each transaction.
    pub calls: Option<f64>,
    /// Top symbols of the server, by their share of its samples.
    pub symbols: Vec<Share>,
    /// How many samples these are shares of.
    #[serde(default)]
    pub samples: u64,
    /// What the server's sessions were seen waiting for, by their share of all that were seen.
    pub waits: Vec<Share>,
    /// How often all sessions were looked at for them. Sessions of one look are no samples apart
    /// from each other: one commit that they wait for together is seen in all of them.
    #[serde(default)]
    pub looks: u64,
    /// What could not be seen, and why: a sentence each.
    pub unseen: Vec<String>,
}

/// How sentences in [`Observed::unseen`] begin where system calls are missing, which not every
/// round looks for.
pub(crate) const NO_CALLS: &str = "no system calls: ";
/// The same of symbols.
pub(crate) const NO_SYMBOLS: &str = "no symbols: ";
/// The same of wait events, after which not all of a round asks.
pub(crate) const NO_WAITS: &str = "no wait events: ";

numbers! {
    /// Context switches for each transaction.
    Switches {
        /// A thread had to wait for something.
        voluntary,
        /// A thread's time was up, or another one's turn came first.
        involuntary,
    }
}

/// A part of something counted in samples.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Share {
    /// A symbol, or what is waited for.
    pub name: String,
    /// From 0 to 1.
    #[serde(deserialize_with = "number::read")]
    pub share: f64,
}

/// Shares, and how many samples they are of: 0 where that is not known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Profile {
    /// How many.
    pub samples: u64,
    /// The largest first. Where they don't add up to 1, the smallest were left out.
    pub shares: Vec<Share>,
}

numbers! {
    /// What was idle of CPUs that are not all the machine has, from 0 to 1.
    OwnCpus {
        /// The idle share of the CPUs that the server may use.
        server_idle,
        /// Of those that the load driver may use.
        client_idle,
    }
}

numbers! {
    /// Shares of the machine's CPU time; they add up to 1.
    CpuSplit {
        /// The load driver.
        client,
        /// The server, in its own code.
        server_user,
        /// The server, in the kernel.
        server_kernel,
        /// Anything else.
        other,
        /// Nothing.
        idle,
    }
}

/// Errors of one code.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Errors {
    /// SQLSTATE, or MySQL's number.
    pub code: String,
    /// The first message.
    pub message: String,
    /// How many.
    pub count: u64,
    /// Whether the workload lets it pass : no transaction failed by it.
    pub tolerated: bool,
}

numbers! {
    /// CPU time of the driver's threads in the measured time.
    CpuTime {
        /// In seconds.
        user,
        /// In seconds.
        system,
    }
}

/// Something that must hold after a run, and whether it does.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Check {
    /// What must hold.
    pub claim: String,
    /// What was seen where it does not.
    pub fault: Option<String>,
}
