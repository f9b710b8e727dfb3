//! Symbols, waits and counts that grew from a curve's best point to its worst, and the CPUs that
//! were used up.

use crate::figures::{clients, list, number, percent, whole};
use crate::observe::{CLIENT, IN_STATE, RUNNING};
use crate::record::{CpuSplit, OwnCpus, Point, Profile, Share};
use crate::report::turn::Turn;

/// A symbol or a wait has grown if its share of all samples rises by at least this.
const GROWN: f64 = 0.05;

/// Its growth must also exceed this many standard deviations of the difference between the two
/// sampled shares.
const DEVIATIONS: f64 = 3.0;

/// The kernel's part has grown if it rises by at least this.
const GROWN_KERNEL: f64 = 0.10;

/// A count per transaction has grown if it rises by this factor, and by at least this amount.
const GROWN_COUNT: (f64, f64) = (1.3, 0.2);

/// CPUs are used up if less of them is idle.
const USED_UP: f64 = 0.05;

/// CPUs limit nothing if more of them is idle.
const IDLE: f64 = 0.3;

/// A sentence names at most this many.
const NAMED: usize = 3;

/// Sentences on growth and on used-up CPUs; none where the observers saw nothing.
pub(super) fn grown(points: &[&Point]) -> Vec<String> {
    let Some(turn) = Turn::of(points) else { return Vec::new() };
    // Without a fall, growth from the best point to the last explains why throughput grows no
    // further. If the best point is the last, the point before it shows the trend.
    let (from, to) = match turn.fallen {
        Some(fallen) => (turn.best, fallen),
        None if turn.best.clients < turn.last.clients => (turn.best, turn.last),
        None => (points[points.len().saturating_sub(2)], turn.last),
    };
    let mut said = Vec::new();
    if from.clients < to.clients {
        said.extend(more_symbols(from, to));
        said.extend(more_waits(from, to));
        said.extend(more_kernel(from, to));
        said.extend(more_counts(from, to));
    }
    said.extend(turn.best.cpu().map(|split| limits(turn.best, &split)).unwrap_or_default());
    said.extend(turn.fallen.and_then(|fallen| idle(fallen, &fallen.cpu()?)));
    said
}

/// The names that grew, with their shares before and after.
struct More {
    /// The name that grew most comes first.
    names: Vec<String>,
    /// The sum of their shares before, or an upper bound of it.
    then: String,
    now: f64,
}

/// The names that `pass` and grew, beyond the noise of sampling.
fn more(before: &Profile, after: &Profile, pass: impl Fn(&str) -> bool) -> Option<More> {
    if before.shares.is_empty() {
        return None;
    }
    let unlisted = unlisted(before);
    let then = |name: &str| before.shares.iter().find(|one| one.name == name).map(|one| one.share);
    let mut grown: Vec<(&Share, Option<f64>, f64)> = (after.shares.iter())
        .filter(|one| pass(&one.name))
        .map(|one| (one, then(&one.name), one.share - then(&one.name).unwrap_or(unlisted)))
        .filter(|(one, _, by)| {
            let noise = (variance(one.share, after) + variance(one.share - by, before)).sqrt();
            *by >= GROWN && *by > DEVIATIONS * noise
        })
        .collect();
    grown.sort_by(|one, other| other.2.total_cmp(&one.2));
    grown.truncate(NAMED);
    let sum: f64 = grown.iter().map(|(_, then, _)| then.unwrap_or(unlisted)).sum();
    let is_bound = unlisted > 0.0 && grown.iter().any(|(_, then, _)| then.is_none());
    let then = if is_bound { format!("under {}", percent(sum)) } else { percent(sum) };
    let now = grown.iter().map(|(one, ..)| one.share).sum();
    let names: Vec<String> = grown.iter().map(|(one, ..)| one.name.clone()).collect();
    (!names.is_empty()).then_some(More { names, then, now })
}

/// Upper bound for a share that the profile does not list.
fn unlisted(profile: &Profile) -> f64 {
    let least = profile.shares.iter().map(|one| one.share).fold(1.0, f64::min);
    let left = 1.0 - profile.shares.iter().map(|one| one.share).sum::<f64>();
    // A smaller remainder is rounding.
    if left < 1e-6 { 0.0 } else { left.min(least) }
}

/// Binomial variance of a share of these samples; infinite when the profiler did not report its
/// sample count.
fn variance(share: f64, of: &Profile) -> f64 {
    if of.samples == 0 { f64::INFINITY } else { share * (1.0 - share) / of.samples as f64 }
}

fn more_symbols(from: &Point, to: &Point) -> Option<String> {
    let after = to.symbols();
    if let Some(more) = more(&from.symbols(), &after, |_| true) {
        let (now, then) = (percent(more.now), more.then);
        let (names, to, from) = (list(&more.names), clients(to.clients), clients(from.clients));
        return Some(format!("with {to} {now} of server time is in {names}, with {from} it was {then}"));
    }
    let top = after.shares.first().filter(|top| top.share >= 2.0 * GROWN)?;
    let next = after.shares.get(1).map_or(0.0, |next| next.share);
    // Both shares come from the same samples.
    let noise = ((top.share + next - (top.share - next).powi(2)) / after.samples.max(1) as f64).sqrt();
    (top.share - next > DEVIATIONS * noise).then(|| {
        let (to, share) = (clients(to.clients), percent(top.share));
        format!("with {to} {share} of server time is in {}, more than in any other symbol", top.name)
    })
}

fn more_waits(from: &Point, to: &Point) -> Vec<String> {
    let (before, after) = (from.waits(), to.waits());
    let sentence = |more: More, how: &str| {
        let (now, names) = (percent(more.now), list(&more.names));
        let (to, from) = (clients(to.clients), clients(from.clients));
        format!("with {to} {now} of the sessions {how} {names}, with {from} it was {}", more.then)
    };
    // A session that runs, or is idle, waits for nothing in the server.
    let is_wait = |name: &str| name != RUNNING && name != CLIENT && !name.starts_with(IN_STATE);
    let waits = more(&before, &after, is_wait).map(|more| sentence(more, "wait for"));
    let states = more(&before, &after, |name| name.starts_with(IN_STATE)).map(|mut more| {
        more.names.iter_mut().for_each(|name| *name = name[IN_STATE.len()..].to_string());
        sentence(more, "are in state")
    });
    waits.into_iter().chain(states).collect()
}

fn more_kernel(from: &Point, to: &Point) -> Option<String> {
    let (then, now) = (kernel_part(from)?, kernel_part(to)?);
    (now - then >= GROWN_KERNEL).then(|| {
        let (now, then, to, from) = (percent(now), percent(then), clients(to.clients), clients(from.clients));
        format!("the kernel takes {now} of the server's CPU time with {to}, with {from} it was {then}")
    })
}

/// The kernel's part of the server's CPU time.
fn kernel_part(point: &Point) -> Option<f64> {
    let cpu = point.cpu()?;
    let server = cpu.server_user + cpu.server_kernel;
    // A server that hardly runs has no meaningful kernel part.
    (server >= 0.02).then(|| cpu.server_kernel / server)
}

fn more_counts(from: &Point, to: &Point) -> Vec<String> {
    let grew = |then: f64, now: f64| now >= GROWN_COUNT.0 * then && now - then >= GROWN_COUNT.1;
    let sentence = |what: &str, then: f64, now: f64| {
        let (to, from) = (clients(to.clients), clients(from.clients));
        format!("a transaction costs {} {what} with {to}, with {from} it was {}", number(now), number(then))
    };
    let mut said = Vec::new();
    if let (Some(then), Some(now)) = (from.switches(), to.switches()) {
        if grew(then.voluntary, now.voluntary) {
            said.push(sentence("voluntary context switches", then.voluntary, now.voluntary));
        }
        if grew(then.involuntary, now.involuntary) {
            said.push(sentence("involuntary context switches", then.involuntary, now.involuntary));
        }
    }
    if let (Some(then), Some(now)) = (from.calls(), to.calls())
        && grew(then, now)
    {
        said.push(sentence("system calls", then, now));
    }
    said
}

/// The CPUs that limit the best point.
fn limits(best: &Point, split: &CpuSplit) -> Vec<String> {
    let at = clients(best.clients);
    let mut said = Vec::new();
    let server = percent(split.server_user + split.server_kernel);
    if let Some(own) = best.own_cpus() {
        said.extend(limits_apart(best, &own));
    } else if split.idle < USED_UP {
        // Other programs' CPU time is neither the server's limit nor its fault; the verdict
        // disqualifies it.
        let others = if split.other >= 0.1 {
            format!(", {} by other programs", percent(split.other))
        } else {
            String::new()
        };
        said.push(format!(
            "with {at} the CPUs are used up: {server} by the server, {} by the load driver{others}; higher \
             throughput needs more CPUs, or less work for each transaction",
            percent(split.client)
        ));
    } else if split.idle >= IDLE {
        said.push(format!(
            "at its best, with {at}, the CPUs are {} idle{}",
            percent(split.idle),
            meaning(best, "they are not what limits it")
        ));
    }
    said
}

/// The same where server or driver may not use all CPUs: others' idle CPUs help neither.
fn limits_apart(best: &Point, own: &OwnCpus) -> Vec<String> {
    let at = clients(best.clients);
    let mut said = Vec::new();
    if own.server_idle < USED_UP {
        said.push(format!(
            "with {at} the CPUs that the server may use are used up; higher throughput needs more of them, or less \
             work for each transaction"
        ));
    } else if own.server_idle >= IDLE {
        said.push(format!(
            "at its best, with {at}, the CPUs that the server may use are {} idle{}",
            percent(own.server_idle),
            meaning(best, "they are not what limits it")
        ));
    }
    if own.client_idle < USED_UP {
        said.push(format!(
            "with {at} the CPUs that the load driver may use are used up: the server may be capable of more"
        ));
    }
    said
}

fn idle(fallen: &Point, split: &CpuSplit) -> Option<String> {
    let (which, idle) = match fallen.own_cpus() {
        Some(own) => ("the CPUs that the server may use", own.server_idle),
        None => ("the CPUs", split.idle),
    };
    (idle >= IDLE).then(|| {
        let (at, idle) = (clients(fallen.clients), percent(idle));
        format!(
            "with {at} {which} are {idle} idle{}",
            meaning(fallen, "the server waits rather than computes")
        )
    })
}

/// The meaning of idle CPUs: a thread that works all the time can't use another one.
fn meaning(point: &Point, otherwise: &str) -> String {
    match point.busy_threads() {
        0 => format!(": {otherwise}"),
        1 => " while one of the server's threads works all the time, which more CPUs do not help".into(),
        threads => {
            let threads = whole(threads as f64);
            format!(" while {threads} of the server's threads work all the time, which more CPUs do not help")
        }
    }
}
