//! The shape of a curve: where it is highest, what becomes of it beyond, and what fails on the way.

use crate::report::figures::{clients, number, percent};
use crate::report::{Interval, Point};

/// A fall is more than this part.
const FALL: f64 = 0.1;

/// A smaller gain is no growth worth a word.
const GROWTH: f64 = 0.05;

/// A larger part of failed transactions is worth a word.
const FAILED: f64 = 0.01;

/// What is said of what single rounds show.
const UNPROVEN: &str = ", as seen in single rounds, which tell nothing of the noise";

/// What rounds tell of one point's throughput above another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Above {
    /// It is, by more than the noise.
    Clearly,
    /// It was, in single rounds.
    Seen,
    /// The medians are that far apart, and the noise is as large.
    Perhaps,
    /// It is not.
    No,
}

/// Whether the lower point is below the higher one by more than this part of it.
fn above(high: &Point, low: &Point, part: f64) -> Above {
    if low.tps.value >= (1.0 - part) * high.tps.value {
        return Above::No;
    }
    match (high.tps.bounds(), low.tps.bounds()) {
        (Some((from, _)), Some((_, to))) if from > to => Above::Clearly,
        (Some(_), Some(_)) => Above::Perhaps,
        _ => Above::Seen,
    }
}

/// Whether throughput grows from one point to another.
fn grows(from: &Point, to: &Point) -> Above {
    above(to, from, 1.0 - 1.0 / (1.0 + GROWTH))
}

/// Where a curve turns, by its points.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'a> {
    /// The highest point.
    pub(super) best: &'a Point,
    /// The lowest one beyond it of those that are a fall; where none is beyond the noise, of those that single rounds show.
    pub(super) fallen: Option<&'a Point>,
    /// The one with the most clients.
    pub(super) last: &'a Point,
}

impl<'a> Turn<'a> {
    /// Of points by clients; `None` where there are none.
    pub(super) fn of(points: &[&'a Point]) -> Option<Self> {
        let best = *points.iter().max_by(|one, other| one.tps.value.total_cmp(&other.tps.value))?;
        let beyond = || points.iter().copied().filter(|point| point.clients > best.clients);
        let fallen = [Above::Clearly, Above::Seen]
            .into_iter()
            .find_map(|how| lowest(beyond().filter(|point| above(best, point, FALL) == how)));
        Some(Self { best, fallen, last: points[points.len() - 1] })
    }
}

fn lowest<'a>(points: impl Iterator<Item = &'a Point>) -> Option<&'a Point> {
    points.min_by(|one, other| one.tps.value.total_cmp(&other.tps.value))
}

/// What becomes of throughput from the first point to the last.
pub(super) fn shape(points: &[&Point]) -> Vec<String> {
    let Some(turn) = Turn::of(points) else { return Vec::new() };
    match turn.fallen {
        _ if points.len() == 1 => vec![with(turn.best)],
        Some(fallen) => fall(turn.best, fallen),
        None => level(points, &turn),
    }
}

fn fall(best: &Point, fallen: &Point) -> Vec<String> {
    let left = fallen.tps.value / best.tps.value;
    let how = match (0.45..=0.55).contains(&left) {
        true => "halves".into(),
        false => format!("falls by {}", percent(1.0 - left)),
    };
    let (from, to) = (number(best.tps.value), number(fallen.tps.value));
    let seen = if above(best, fallen, FALL) == Above::Seen { UNPROVEN } else { "" };
    vec![
        format!("throughput is highest with {}, {}", clients(best.clients), tps(&best.tps)),
        format!(
            "from {} to {} throughput {how}, from {from} to {to} a second{seen}",
            best.clients,
            clients(fallen.clients)
        ),
    ]
}

/// Of a curve without a fall beyond its best point.
fn level(points: &[&Point], turn: &Turn<'_>) -> Vec<String> {
    let Turn { best, last, .. } = *turn;
    let is_outgrown = |point: &Point| {
        let mut beyond = points.iter().filter(|other| other.clients > point.clients);
        beyond.any(|other| matches!(grows(point, other), Above::Clearly | Above::Seen))
    };
    // Where it levels off: the first point that none beyond outgrows.
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
    let doubts = doubts(points, level, best);
    let first = points[0];
    let mut said = Vec::new();
    match (level.clients == first.clients, doubts.is_empty()) {
        (false, true) => said.push(format!(
            "throughput grows up to {up_to} and stays level up to {most}: {} at best{seen}",
            tps(&best.tps)
        )),
        (true, true) => said.push(format!(
            "throughput is level from {} to {most}, more clients do not raise it: {} at best{seen}",
            first.clients,
            tps(&best.tps)
        )),
        (false, false) => said.push(format!("throughput grows up to {up_to}: {}{seen}", tps(&level.tps))),
        (true, false) => {}
    }
    said.extend(doubts);
    said
}

/// What keeps a curve that neither grows beyond `level` nor falls beyond its best point from being called level.
fn doubts(points: &[&Point], level: &Point, best: &Point) -> Vec<String> {
    let mut said = Vec::new();
    let between = points.iter().copied().filter(|one| (level.clients..best.clients).contains(&one.clients));
    let dip = lowest(between).filter(|dip| matches!(above(level, dip, FALL), Above::Clearly | Above::Seen));
    said.extend(dip.map(|dip| format!("throughput dips to {}, and comes back to {}", with(dip), with(best))));
    if grows(level, best) == Above::Perhaps {
        said.push(format!(
            "the rounds are too noisy to tell whether throughput grows from {} to {}: {}, then {}",
            level.clients,
            clients(best.clients),
            with(level),
            with(best)
        ));
    }
    let beyond = points.iter().copied().filter(|point| point.clients > best.clients);
    let lower = lowest(beyond.filter(|point| above(best, point, FALL) == Above::Perhaps));
    said.extend(lower.map(|lower| {
        format!(
            "the rounds are too noisy to tell whether throughput falls from {} to {}: {}, then {}",
            best.clients,
            clients(lower.clients),
            with(best),
            with(lower)
        )
    }));
    said
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
        let sum = |of: fn(&crate::report::KindCounts) -> u64| -> u64 {
            point.rounds.iter().flat_map(|round| &round.kinds).map(of).sum()
        };
        let (done, failed) = (sum(|kind| kind.done), sum(|kind| kind.failed));
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
