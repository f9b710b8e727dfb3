//! Observations beside a round: CPU time, context switches, system calls, counters of the hardware,
//! symbols, wait events. For the machine: its facts, its noise, and the CPUs that client and server
//! have to themselves.
//!
//! What must hold:
//! 1. A missing observation is left out with its reason ([`Observed::unseen`]). Nothing is guessed,
//!    and no round fails for it.
//! 2. Every round has the same cheap observations (two readings of /proc, four questions a second
//!    to the server). The costly ones, by perf, cover short parts of a few rounds of a point. All
//!    arms of a point have them in the same passes, so that compared rounds have the same cost.
//! 3. One observation never shows up in another: the observer asks no question while perf samples
//!    the CPU, and the session that asks begins only then.
//! 4. The last look at the server is quick, since the driver holds its sessions for it; slow work
//!    comes after.

mod awake;
mod cpus;
mod machine;
mod noise;
mod perf;
mod pin;
mod processes;
mod waits;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::arm::{Dialect, Target};
use crate::record::{
    Counters, CpuSplit, NO_CALLS, NO_COUNTERS, NO_SYMBOLS, NO_WAITS, Numbers, Observed, OwnCpus, ServerCpu,
    Switches,
};

pub use awake::Awake;
pub use machine::facts;
pub use noise::fixed_loop;
pub use pin::Split;
pub use waits::{CLIENT, Connect, IN_STATE, RUNNING, connect_to};

use cpus::Time;
use perf::counters::Counted;
use perf::{Results, Sampling};
use processes::{Snapshot, between, busy, nanos};
use waits::Waits;

/// Observes a server during a round's counted time.
pub trait Observe: Send {
    /// Counting begins now and should last for `window`. `deep`: this round has the costly
    /// observations.
    fn begin(&mut self, window: Duration, deep: bool);

    /// Counting has ended; the driver holds its sessions until this returns.
    fn end(&mut self);

    /// The observations between `begin` and `end`, for this many transactions in this time.
    fn seen(&mut self, transactions: u64, elapsed: Duration) -> Observed;

    /// Called instead of `seen` when the round failed.
    fn forget(&mut self);
}

/// Context switches are unknown where ended threads took more of the server's CPU time than this.
const MOST_LOST: f64 = 0.1;

/// With fewer samples the report names no symbol: a share of 0.5 would be known to no better than 7
/// points.
const LEAST_SAMPLES: u64 = 200;

const SWITCHES_LOST: &str = "no context switches: sessions that ended during the round did more than a tenth of the \
                             server's work, and their counts ended with them";

/// Observes a server through /proc, perf and a control connection.
pub struct Observer {
    roots: Vec<u32>,
    /// The reason why they are unknown.
    unseen: String,
    apart: Vec<u32>,
    dialect: Dialect,
    /// Makes the connections for questions about wait events.
    connect: Option<Connect>,
    perf: PathBuf,
    window: Option<Window>,
}

/// The observations from the beginning of the counted time.
struct Window {
    before: Result<Snapshot, String>,
    begun: Instant,
    sampling: Option<Result<Sampling, String>>,
    waits: Option<Waits>,
    /// The second reading, and the time since the first.
    after: Option<(Result<Snapshot, String>, Duration)>,
}

impl Observer {
    /// An observer of this server. `unseen` names the program in front of it where its processes
    /// are unknown. `connect` makes connections for questions about wait events.
    pub fn new(target: &Target, unseen: Option<&str>, connect: Option<Connect>) -> Self {
        let unseen = unseen.unwrap_or("the server's processes are not known here (it runs elsewhere)").into();
        let (roots, dialect) = (target.processes.clone(), target.dialect);
        Self { roots, unseen, apart: Vec::new(), dialect, connect, perf: "perf".into(), window: None }
    }

    /// Leaves these servers out of the load driver's tree, unless they are this arm's own. The lab
    /// may have started them, and their work is not the driver's.
    pub fn leave_out(&mut self, servers: &[u32]) {
        self.apart = servers.to_vec();
    }

    fn snapshot(&self) -> Result<Snapshot, String> {
        if self.roots.is_empty() {
            return Err(self.unseen.clone());
        }
        let mut apart = self.apart.clone();
        if let Some(Window { sampling: Some(Ok(sampling)), .. }) = &self.window {
            apart.push(sampling.process());
        }
        let snapshot = Snapshot::take(&self.roots, &apart)?;
        if snapshot.processes.is_empty() {
            return Err("the server's processes have ended".into());
        }
        Ok(snapshot)
    }
}

impl Observe for Observer {
    fn begin(&mut self, window: Duration, deep: bool) {
        self.window = None;
        let (begun, before) = (Instant::now(), self.snapshot());
        let sampling = deep.then(|| match &before {
            Ok(before) => Sampling::begin(&self.perf, &before.processes, window),
            Err(reason) => Err(reason.clone()),
        });
        // perf's samples would show the server's work on the answers.
        let sampled = sampling.as_ref().and_then(|sampling| Some(sampling.as_ref().ok()?.sampled()));
        let waits = self.connect.as_ref().map(|connect| Waits::begin(self.dialect, connect, sampled));
        self.window = Some(Window { before, begun, sampling, waits, after: None });
    }

    fn end(&mut self) {
        let ended = Instant::now();
        if let Some(Window { waits: Some(waits), .. }) = &mut self.window {
            waits.end();
        }
        // This comes first, or the time in which the driver holds the sessions counts as time
        // without system calls.
        if let Some(Window { sampling: Some(Ok(sampling)), .. }) = &self.window {
            sampling.interrupt();
        }
        let snapshot = self.snapshot();
        if let Some(window) = &mut self.window {
            window.after = Some((snapshot, ended - window.begun));
        }
    }

    fn seen(&mut self, transactions: u64, elapsed: Duration) -> Observed {
        let mut observed = Observed::default();
        let Some(Window { before, sampling, waits, after: Some((after, lasted)), .. }) = self.window.take()
        else {
            return observed;
        };
        match waits.map(Waits::samples) {
            None => {}
            Some(Ok(waits)) => (observed.waits, observed.looks) = (waits.shares, waits.samples),
            Some(Err(reason)) => observed.unseen.push(format!("{NO_WAITS}{reason}")),
        }
        match (&before, &after) {
            (Ok(before), Ok(after)) => {
                let (user, kernel) = server_time(before, after);
                let each = |nanos: f64| nanos / 1000.0 / transactions as f64;
                observed.server_cpu =
                    (transactions > 0).then(|| ServerCpu { user: each(user), kernel: each(kernel) });
                observed.cpu = split(before, after);
                observed.own_cpus = own_cpus(before, after);
                observed.busy_threads = Some(busy(before, after, lasted));
                match per_transaction(before, after, transactions as f64) {
                    Ok(switches) => observed.switches = switches,
                    Err(reason) => observed.unseen.push(reason),
                }
            }
            (Err(reason), _) | (_, Err(reason)) => {
                observed.unseen.push(format!("no CPU split and no context switches: {reason}"));
            }
        }
        if let Some(sampling) = sampling {
            sampled(sampling, transactions as f64 / elapsed.as_secs_f64(), &mut observed);
        }
        observed
    }

    fn forget(&mut self) {
        self.window = None;
    }
}

/// Adds perf's results.
fn sampled(sampling: Result<Sampling, String>, tps: f64, observed: &mut Observed) {
    let sampling = match sampling {
        Ok(sampling) => sampling,
        Err(reason) => {
            observed.unseen.push(format!("no system calls, no counters and no symbols: {reason}"));
            return;
        }
    };
    let Results { calls, counters, symbols } = sampling.end();
    match counters {
        Ok(Counted { a_second, limits }) if tps > 0.0 => {
            let cpu = observed.server_cpu.map(|cpu| cpu.user + cpu.kernel);
            let seconds = seconds_of_one(&a_second, tps, cpu);
            observed.counters = Some(Counters::each(|of| of(&a_second) * seconds));
            observed.unseen.extend(limits);
        }
        Ok(_) => observed.unseen.push(format!("{NO_COUNTERS}no transaction was done")),
        Err(reason) => observed.unseen.push(format!("{NO_COUNTERS}{reason}")),
    }
    match calls {
        Ok(calls) if tps > 0.0 => observed.calls = Some(calls / tps),
        Ok(_) => observed.unseen.push("no system calls per transaction: none was done".into()),
        Err(reason) => observed.unseen.push(format!("{NO_CALLS}{reason}")),
    }
    match symbols {
        Ok(profile) if profile.samples < LEAST_SAMPLES => observed.unseen.push(format!(
            "{NO_SYMBOLS}perf took only {} samples, too few to tell where the server's time goes; longer rounds \
             (--round) take more",
            profile.samples
        )),
        Ok(profile) => (observed.symbols, observed.samples) = (profile.shares, profile.samples),
        Err(reason) => observed.unseen.push(format!("{NO_SYMBOLS}{reason}")),
    }
}

/// The part of a second's events that belongs to a transaction. Where the CPU time of both is
/// known, in microseconds, it decides. While the events were counted, the server may have had less
/// of the CPUs than in the whole round.
fn seconds_of_one(a_second: &Counters, tps: f64, cpu: Option<f64>) -> f64 {
    cpu.map(|cpu| cpu / a_second.cpu).filter(|part| part.is_normal()).unwrap_or(1.0 / tps)
}

/// The server's CPU time in nanoseconds: its own and the kernel's.
fn server_time(before: &Snapshot, after: &Snapshot) -> (f64, f64) {
    let passed = |of: fn(&Snapshot) -> u64| of(after).saturating_sub(of(before)) as f64;
    let server = passed(|one| one.server.nanos);
    // The ticks tell the kernel's part of it. Without new ticks, all ticks up to now stand for
    // them.
    let (user, kernel) = match (passed(|one| one.server.user), passed(|one| one.server.kernel)) {
        (0.0, 0.0) => (after.server.user as f64, after.server.kernel as f64),
        ticks => ticks,
    };
    let kernel = server * kernel / (user + kernel).max(1.0);
    (server - kernel, kernel)
}

/// The split of the machine's CPU time; `None` where no time passed.
fn split(before: &Snapshot, after: &Snapshot) -> Option<CpuSplit> {
    let passed = |of: fn(&Snapshot) -> u64| of(after).saturating_sub(of(before)) as f64;
    let client = passed(|one| one.client.nanos);
    let (user, kernel) = server_time(before, after);
    let (idle, all) = (passed(|one| nanos(one.machine.idle)), passed(|one| nanos(one.machine.all)));
    let known = client + user + kernel + idle;
    // The kernel counts processes and CPUs separately, so the parts may sum to slightly more than
    // the whole.
    let all = all.max(known);
    (all > 0.0).then(|| CpuSplit {
        client: client / all,
        server_user: user / all,
        server_kernel: kernel / all,
        other: (all - known) / all,
        idle: idle / all,
    })
}

/// The idle parts of the CPUs that server and driver may use; `None` where both may use all.
fn own_cpus(before: &Snapshot, after: &Snapshot) -> Option<OwnCpus> {
    let idle = |of: fn(&Snapshot) -> Option<Time>| match (of(before), of(after)) {
        (None, None) => Some(None),
        (Some(before), Some(after)) => after.idle_since(before).map(Some),
        // The process was pinned in between.
        _ => None,
    };
    let (server, client) = (idle(|one| one.servers)?, idle(|one| one.clients)?);
    let machine = after.machine.idle_since(before.machine)?;
    (server.is_some() || client.is_some())
        .then(|| OwnCpus { server_idle: server.unwrap_or(machine), client_idle: client.unwrap_or(machine) })
}

/// `None` where there was no transaction; an error explains why switches are unknown.
fn per_transaction(
    before: &Snapshot,
    after: &Snapshot,
    transactions: f64,
) -> Result<Option<Switches>, String> {
    let (seen, lost) = between(before, after);
    if lost > MOST_LOST {
        return Err(SWITCHES_LOST.into());
    }
    Ok((transactions > 0.0).then(|| Switches::each(|of| of(&seen) / transactions)))
}

#[cfg(test)]
mod tests;
