//! What is seen beside a round: where CPU time goes, context switches, system calls, symbols, wait events; and of the
//! machine: what it is, how noisy it is, which CPUs client and server have for themselves.
//!
//! What must hold:
//! 1. Whatever can't be seen is left out with its reason ([`Observed::unseen`]); nothing is guessed, no round fails for it.
//! 2. Every round bears the same cheap looks (two readings of /proc, four questions a second to the server). The costly
//!    ones, by perf, are for one round of a point, short parts of it, and the same for all arms.

mod machine;
mod noise;
mod perf;
mod pin;
mod processes;
mod waits;

use std::time::Duration;

use crate::arm::Target;
use crate::report::{CpuSplit, Observed, Switches};

pub use machine::facts;
pub use noise::fixed_loop;
pub use pin::{Pinned, Split};
pub use waits::{CLIENT, Connect, RUNNING, connect_to};

use perf::Sampling;
use processes::{Snapshot, switches_between};
use waits::{Samples, Waits};

/// Looks at a server while a round is counted.
pub trait Observe: Send {
    /// What is counted begins now, and is to last so long. `deep`: this round bears the costly looks.
    fn begin(&mut self, window: Duration, deep: bool);

    /// Called several times a second in between.
    fn tick(&mut self);

    /// What is counted has ended.
    fn end(&mut self);

    /// What was seen between `begin` and `end`, in which so many transactions were done in so much time.
    fn seen(&mut self, transactions: u64, elapsed: Duration) -> Observed;
}

/// Looks at a server by /proc, perf and a control connection.
pub struct Observer {
    roots: Vec<u32>,
    waits: Option<Waits>,
    window: Option<Window>,
}

/// What was seen when the counted time began.
struct Window {
    before: Result<Snapshot, String>,
    sampling: Option<Result<Sampling, String>>,
    /// At its end: the machine, and what the server's sessions waited for.
    after: Option<(Result<Snapshot, String>, Option<Samples>)>,
}

impl Observer {
    /// Of this server; wait events are asked for over connections made by `connect`, where there is one.
    pub fn new(target: &Target, connect: Option<Connect>) -> Self {
        let waits = connect.map(|connect| Waits::new(target.dialect, connect));
        Self { roots: target.processes.clone(), waits, window: None }
    }

    fn snapshot(&self) -> Result<Snapshot, String> {
        if self.roots.is_empty() {
            return Err("the server's processes are not known here (it runs elsewhere)".into());
        }
        let snapshot = Snapshot::take(&self.roots)?;
        if snapshot.processes.is_empty() {
            return Err("the server's processes have ended".into());
        }
        Ok(snapshot)
    }
}

impl Observe for Observer {
    fn begin(&mut self, window: Duration, deep: bool) {
        let before = self.snapshot();
        let sampling = deep.then(|| match &before {
            Ok(before) => Sampling::begin(&before.processes, window),
            Err(reason) => Err(reason.clone()),
        });
        self.window = Some(Window { before, sampling, after: None });
        if let Some(waits) = &mut self.waits {
            waits.begin();
        }
    }

    fn tick(&mut self) {
        if let Some(Window { sampling: Some(Ok(sampling)), .. }) = &mut self.window {
            sampling.tick();
        }
    }

    fn end(&mut self) {
        let snapshot = self.snapshot();
        if let Some(Window { sampling: Some(Ok(sampling)), .. }) = &mut self.window {
            sampling.interrupt();
        }
        let waits = self.waits.as_ref().map(Waits::end);
        if let Some(window) = &mut self.window {
            window.after = Some((snapshot, waits));
        }
    }

    fn seen(&mut self, transactions: u64, elapsed: Duration) -> Observed {
        let mut observed = Observed::default();
        let Some(Window { before, sampling, after: Some((after, waits)) }) = self.window.take() else {
            return observed;
        };
        match waits {
            None => {}
            Some(Ok(waits)) => observed.waits = waits,
            Some(Err(reason)) => observed.unseen.push(format!("no wait events: {reason}")),
        }
        match (&before, &after) {
            (Ok(before), Ok(after)) => {
                observed.cpu = split(before, after);
                observed.switches = per_transaction(before, after, transactions);
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
}

fn sampled(sampling: Result<Sampling, String>, tps: f64, observed: &mut Observed) {
    let sampling = match sampling {
        Ok(sampling) => sampling,
        Err(reason) => {
            observed.unseen.push(format!("no system calls and no symbols: {reason}"));
            return;
        }
    };
    let (calls, symbols) = sampling.end();
    match calls {
        Ok(calls) if tps > 0.0 => observed.calls = Some(calls / tps),
        Ok(_) => observed.unseen.push("no system calls per transaction: none was done".into()),
        Err(reason) => observed.unseen.push(format!("no system calls: {reason}")),
    }
    match symbols {
        Ok(symbols) => observed.symbols = symbols,
        Err(reason) => observed.unseen.push(format!("no symbols: {reason}")),
    }
}

/// Where the machine's time went; `None` where none passed.
fn split(before: &Snapshot, after: &Snapshot) -> Option<CpuSplit> {
    let passed = |of: fn(&Snapshot) -> u64| of(after).saturating_sub(of(before)) as f64;
    let client = passed(|one| one.client.user + one.client.kernel);
    let (user, kernel) = (passed(|one| one.server.user), passed(|one| one.server.kernel));
    let (idle, all) = (passed(|one| one.idle), passed(|one| one.all));
    let known = client + user + kernel + idle;
    // The kernel counts processes and CPUs apart from each other, so the parts may come to a little more than all.
    let all = all.max(known);
    (all > 0.0).then(|| CpuSplit {
        client: client / all,
        server_user: user / all,
        server_kernel: kernel / all,
        other: (all - known) / all,
        idle: idle / all,
    })
}

fn per_transaction(before: &Snapshot, after: &Snapshot, transactions: u64) -> Option<Switches> {
    let (voluntary, involuntary) = switches_between(&before.switched, &after.switched);
    let count = transactions as f64;
    (transactions > 0)
        .then(|| Switches { voluntary: voluntary as f64 / count, involuntary: involuntary as f64 / count })
}

#[cfg(test)]
mod tests;
