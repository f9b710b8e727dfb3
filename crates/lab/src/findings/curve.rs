//! The shape of a curve: its highest point, its course beyond that point, and its failures.

use crate::figures::{clients, list, number, percent, whole};
use crate::record::{Interval, Point};
use crate::report::turn::{Above, FALL, Turn, above, lowest};

/// The findings ignore a smaller gain.
const GROWTH: f64 = 0.05;

/// The findings report a larger part of failed transactions.
const FAILED: f64 = 0.01;

/// The remark on a conclusion from single rounds.
const UNPROVEN: &str = ", in single rounds, which do not show the noise";

/// Whether throughput grows from one point to another.
fn grows(from: &Point, to: &Point) -> Above {
    above(to, from, 1.0 - 1.0 / (1.0 + GROWTH))
}

/// Sentences on throughput from the first point to the last.
pub(super) fn shape(points: &[&Point]) -> Vec<String> {
    let Some(turn) = Turn::of(points) else { return Vec::new() };
    match turn.fallen {
        _ if points.len() == 1 => vec![with(turn.best)],
        Some(fallen) => fall(points, turn.best, fallen),
        None => level(points, &turn),
    }
}

fn fall(points: &[&Point], best: &Point, fallen: &Point) -> Vec<String> {
    let by = percent(1.0 - fallen.tps.value / best.tps.value);
    let (from, to) = (number(best.tps.value), number(fallen.tps.value));
    let seen = if above(best, fallen, FALL) == Above::Seen { UNPROVEN } else { "" };
    let (at, peers) = (clients(best.clients), peers(points, best));
    let (few, many) = (best.clients, clients(fallen.clients));
    vec![
        format!("throughput is highest with {at}{peers}, {}", tps(&best.tps)),
        format!("from {few} to {many} throughput falls by {by}, from {from} to {to} a second{seen}"),
    ]
}

/// The numbers of clients at which throughput may be as high as at the best point, by all rounds;
/// in brackets.
fn peers(points: &[&Point], best: &Point) -> String {
    let Some((low, _)) = best.tps.bounds() else { return String::new() };
    let may = |point: &&&Point| point.tps.bounds().is_some_and(|(_, high)| high >= low);
    let others = points.iter().filter(|point| point.clients != best.clients).filter(may);
    let counts: Vec<String> = others.map(|point| whole(point.clients as f64)).collect();
    match &counts[..] {
        [] => String::new(),
        [one] if one == "1" => " (no difference from 1 client)".into(),
        _ => format!(" (no difference from {} clients)", list(&counts)),
    }
}

/// Sentences on a curve without a fall beyond its best point.
fn level(points: &[&Point], turn: &Turn<'_>) -> Vec<String> {
    let Turn { best, last, .. } = *turn;
    let is_outgrown = |point: &Point| {
        let mut beyond = points.iter().filter(|other| other.clients > point.clients);
        beyond.any(|other| matches!(grows(point, other), Above::Clearly | Above::Seen))
    };
    // The curve levels off at the first point that no later one outgrows.
    let level = points.iter().copied().find(|point| !is_outgrown(point)).unwrap_or(last);
    let seen = if points.iter().any(|point| point.tps.bounds().is_none()) { UNPROVEN } else { "" };
    let (up_to, most) = (clients(level.clients), clients(last.clients));
    if level.clients == last.clients {
        let before = points[points.len() - 2].clients;
        let at = tps(&last.tps);
        return vec![format!(
            "throughput still grows from {before} to {most}, the most that were measured: {at}{seen}"
        )];
    }
    let (doubts, at_best) = (doubts(points, level, best), tps(&best.tps));
    let first = points[0];
    let told = match (level.clients == first.clients, doubts.is_empty()) {
        (false, true) => {
            format!("throughput grows up to {up_to} and stays level up to {most}: {at_best} at best{seen}")
        }
        (true, true) => format!(
            "throughput is level from {} to {most}, more clients do not raise it: {at_best} at best{seen}",
            first.clients,
        ),
        (false, false) => format!("throughput grows up to {up_to}: {}{seen}", tps(&level.tps)),
        (true, false) => return doubts,
    };
    [vec![told], doubts].concat()
}

/// The doubts about a level curve: a growth beyond `level`, or a fall beyond its best point, that
/// the noise neither proves nor excludes.
fn doubts(points: &[&Point], level: &Point, best: &Point) -> Vec<String> {
    let noisy = |how: &str, from: &Point, to: &Point| {
        let (few, many) = (from.clients, clients(to.clients));
        format!(
            "the rounds are too noisy to tell whether throughput {how} from {few} to {many}: {}, then {}",
            with(from),
            with(to)
        )
    };
    let grows = (grows(level, best) == Above::Perhaps).then(|| noisy("grows", level, best));
    let beyond = points.iter().copied().filter(|point| point.clients > best.clients);
    let lower = lowest(beyond.filter(|point| above(best, point, FALL) == Above::Perhaps));
    grows.into_iter().chain(lower.map(|lower| noisy("falls", best, lower))).collect()
}

fn with(point: &Point) -> String {
    format!("{} with {}", tps(&point.tps), clients(point.clients))
}

fn tps(interval: &Interval) -> String {
    match interval.bounds() {
        Some((low, high)) => {
            format!("{} transactions a second ({} to {})", number(interval.value), number(low), number(high))
        }
        None => format!("{} transactions a second (one round)", number(interval.value)),
    }
}

/// The point where the largest part of transactions failed, with the most frequent error.
pub(super) fn failures(points: &[&Point]) -> Option<String> {
    let part = |point: &&Point| {
        let done: u64 = point.rounds.iter().flat_map(|round| &round.kinds).map(|kind| kind.done).sum();
        let failed = point.failures().failed;
        failed as f64 / (done + failed).max(1) as f64
    };
    let (point, failed) =
        points.iter().map(|point| (point, part(point))).max_by(|one, other| one.1.total_cmp(&other.1))?;
    let errors = point.rounds.iter().flat_map(|round| &round.errors).filter(|error| !error.tolerated);
    let error = errors.max_by_key(|error| error.count);
    let why =
        error.map(|error| format!(", most often by {} ({})", error.code, error.message)).unwrap_or_default();
    (failed >= FAILED).then(|| {
        format!("{} of the transactions failed with {}{why}", percent(failed), clients(point.clients))
    })
}
