//! What a run has found out: the one thing every output is made from, and what is stored.

use crate::arm::Dialect;
use crate::drive::{CpuTime, Errors, Protocol};
use crate::workload::Check;

/// Of the stored form; raised when it changes.
pub const VERSION: u32 = 1;

/// A whole run.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// When it began, RFC 3339.
    pub began: String,
    /// The command.
    pub command: Vec<String>,
    /// What it ran on.
    pub machine: Machine,
    /// What was compared.
    pub arms: Vec<Arm>,
    /// All points, in the order they were first measured.
    pub points: Vec<Point>,
    /// Conclusions, one sentence each.
    pub findings: Vec<String>,
    /// What was asked for and not measured, and why.
    pub missing: Vec<String>,
}

/// The machine.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// What is worth knowing, as name and value: CPU, topology, kernel, governor, huge pages.
    pub facts: Vec<(String, String)>,
    /// Times of a fixed loop, in milliseconds, over the run: when (seconds since its beginning) and how long.
    pub noise: Vec<(f64, f64)>,
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
    /// All rounds.
    pub rounds: Vec<Round>,
    /// What must hold after the last round.
    pub checks: Vec<Check>,
}

/// One round.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Round {
    /// Seconds since the run's beginning.
    pub at: f64,
    /// Seconds that were counted.
    pub elapsed: f64,
    /// Transactions done a second.
    pub tps: f64,
    /// By kind of transaction: name, done, failed, retried.
    pub kinds: Vec<(String, u64, u64, u64)>,
    /// Of all transactions done.
    pub latency: Latency,
    /// How much later than due they began (open loop).
    pub lag: Option<Latency>,
    /// Done in each second.
    pub seconds: Vec<u64>,
    /// Errors by code.
    pub errors: Vec<Errors>,
    /// The driver's own CPU time.
    pub client_cpu: CpuTime,
    /// What the observers saw.
    pub observed: Observed,
}

/// Latencies in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean: f64,
    /// Half are below.
    pub p50: f64,
    /// Nine in ten are below.
    pub p90: f64,
    /// 95 in 100.
    pub p95: f64,
    /// 99 in 100.
    pub p99: f64,
    /// 999 in 1000.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// What was seen beside a round.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Observed {
    /// Where the machine's CPU time went, where the server runs on this machine.
    pub cpu: Option<CpuSplit>,
    /// Context switches of the server for each transaction.
    pub switches: Option<f64>,
    /// System calls of the server for each transaction.
    pub calls: Option<f64>,
    /// Top symbols of the server, as name and share of its samples.
    pub symbols: Vec<(String, f64)>,
    /// What the server's sessions were seen waiting for, as name and share of the samples.
    pub waits: Vec<(String, f64)>,
}

/// Shares of the machine's CPU time; they add up to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CpuSplit {
    /// The load driver.
    pub client: f64,
    /// The server, in its own code.
    pub server_user: f64,
    /// The server, in the kernel.
    pub server_kernel: f64,
    /// Anything else.
    pub other: f64,
    /// Nothing.
    pub idle: f64,
}
