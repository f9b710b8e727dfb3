//! Symbols, waits and counts that grew from a curve's best point to its worst, and the CPUs that
//! were used up or idle.

use super::verdict::OTHERS;
use crate::figures::{clients, list, number, percent, whole};
use crate::observe::{CLIENT, IN_STATE, RUNNING};
use crate::record::{Point, Profile, Share};
use crate::report::turn::Turn;

/// A symbol or a wait has grown if its share of all samples rises by at least this.
const GROWN: f64 = 0.05;

/// Its growth must also exceed this many standard deviations of the difference between the two
/// sampled shares.
const DEVIATIONS: f64 = 3.0;

/// A count per transaction has grown if it rises by this factor, and by at least this amount.
const GROWN_COUNT: (f64, f64) = (1.3, 0.2);

/// CPUs are used up if less of them is idle.
const USED_UP: f64 = 0.05;

/// CPUs limit nothing if more of them is idle.
const IDLE: f64 = 0.3;

/// A sentence names at most this many.
const NAMED: usize = 3;

/// Sentences on growth and on CPUs; none where the observers saw nothing.
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
        said.extend(more_shares(from, to));
        said.extend(more_counts(from, to));
    }
    said.extend([Some(turn.best), turn.fallen].into_iter().flatten().flat_map(cpus));
    said
}

/// Whether a name counts.
type Filter<'a> = &'a dyn Fn(&str) -> bool;

/// Events for each transaction of a point, where they were counted.
type Count = fn(&Point) -> Option<f64>;

/// Symbols, waits, and states of sessions that grew.
fn more_shares(from: &Point, to: &Point) -> Vec<String> {
    let symbols = (from.symbols(), to.symbols());
    let waits = (from.waits(), to.waits());
    // A session that runs, or is idle, waits for nothing in the server.
    let is_wait = |name: &str| name != RUNNING && name != CLIENT && !name.starts_with(IN_STATE);
    let kinds: [(_, Filter<'_>, _); 3] = [
        (&symbols, &|_| true, "server time is in"),
        (&waits, &is_wait, "the sessions wait for"),
        (&waits, &|name| name.starts_with(IN_STATE), "the sessions are"),
    ];
    let sentence = |((before, after), pass, what): (&(Profile, Profile), Filter<'_>, &str)| {
        let More { names, then, now } = more(before, after, pass)?;
        let (to, from) = (clients(to.clients), clients(from.clients));
        Some(format!("with {to} {} of {what} {}, with {from} it was {then}", percent(now), list(&names)))
    };
    kinds.into_iter().filter_map(sentence).collect()
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
fn more(before: &Profile, after: &Profile, pass: &dyn Fn(&str) -> bool) -> Option<More> {
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

fn more_counts(from: &Point, to: &Point) -> Vec<String> {
    let counts: [(&str, Count); 6] = [
        ("voluntary context switches", |point| Some(point.switches()?.voluntary)),
        ("involuntary context switches", |point| Some(point.switches()?.involuntary)),
        ("system calls", Point::calls),
        ("instructions", |point| Some(point.counters()?.instructions)),
        ("cache misses", |point| Some(point.counters()?.cache_misses)),
        ("page faults", |point| Some(point.counters()?.page_faults)),
    ];
    let sentence = |(what, of): (&str, Count)| {
        let (then, now) = (of(from)?, of(to)?);
        (now >= GROWN_COUNT.0 * then && now - then >= GROWN_COUNT.1).then(|| {
            let (now, then) = (number(now), number(then));
            let (to, from) = (clients(to.clients), clients(from.clients));
            format!("a transaction costs {now} {what} with {to}, with {from} it was {then}")
        })
    };
    counts.into_iter().filter_map(sentence).collect()
}

/// The CPUs that limit a point, or limit nothing. Where server or driver may not use all CPUs,
/// others' idle CPUs help neither.
fn cpus(point: &Point) -> Vec<String> {
    let (at, own) = (clients(point.clients), point.own_cpus());
    let others = point.cpu().map_or(0.0, |all| all.other);
    let crowded = others >= OTHERS;
    let (which, idle, takers) = match (own, point.cpu()) {
        (Some(own), _) => ("the CPUs that the server may use", own.server_idle, String::new()),
        (None, Some(all)) => {
            let (server, driver) = (percent(all.server_user + all.server_kernel), percent(all.client));
            let others =
                if crowded { format!(", {} by other programs", percent(others)) } else { String::new() };
            ("the CPUs", all.idle, format!(": {server} by the server, {driver} by the load driver{others}"))
        }
        (None, None) => return Vec::new(),
    };
    let used_up = (idle < USED_UP).then(|| {
        let more = match crowded {
            true => "the server may be capable of more without the other programs",
            false => "higher throughput needs more of them, or less work for each transaction",
        };
        format!("with {at} {which} are used up{takers}; {more}")
    });
    let unused =
        (idle >= IDLE).then(|| format!("with {at} {which} are {} idle{}", percent(idle), meaning(point)));
    let driver = own.filter(|own| own.client_idle < USED_UP).map(|_| {
        format!(
            "with {at} the CPUs that the load driver may use are used up: the server may be capable of more"
        )
    });
    [used_up, unused, driver].into_iter().flatten().collect()
}

/// The meaning of idle CPUs: a thread that works all the time can't use another one.
fn meaning(point: &Point) -> String {
    let busy = point.busy_threads();
    if busy == 0 {
        return ": they are not the limit".into();
    }
    let (count, work) = (whole(busy as f64), if busy == 1 { "works" } else { "work" });
    format!(" while {count} of the server's threads {work} all the time, which more CPUs do not help")
}
