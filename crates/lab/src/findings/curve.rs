//! The shape of a curve: where it is highest, what becomes of it beyond, and what fails on the way.

use super::words::{clients, number, percent};
use crate::report::{Interval, Point};

/// Less than this part of the best is a fall.
const FALLEN: f64 = 0.9;

/// A smaller gain from one point to the next is no growth worth a word.
const GROWTH: f64 = 1.05;

/// A larger part of failed transactions is worth a word.
const FAILED: f64 = 0.01;

/// Where a curve turns, by its points.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'a> {
    /// The highest point.
    pub(super) best: &'a Point,
    /// The lowest one beyond it, where that is a fall.
    pub(super) fallen: Option<&'a Point>,
    /// The one with the most clients.
    pub(super) last: &'a Point,
}

impl<'a> Turn<'a> {
    /// Of points by clients; `None` where there are none.
    pub(super) fn of(points: &[&'a Point]) -> Option<Self> {
        let higher = |one: &&&Point, other: &&&Point| one.tps.value.total_cmp(&other.tps.value);
        let best = *points.iter().max_by(higher)?;
        let beyond = points.iter().filter(|point| point.clients > best.clients);
        let fallen = beyond.min_by(higher).copied().filter(|point| is_fall(best, point));
        Some(Self { best, fallen, last: points[points.len() - 1] })
    }
}

/// Whether the second is lower by more than a tenth and by more than the noise.
fn is_fall(best: &Point, point: &Point) -> bool {
    let apart = match (best.tps.bounds(), point.tps.bounds()) {
        (Some((low, _)), Some((_, high))) => high < low,
        // One round each: the tenth alone decides.
        _ => true,
    };
    apart && point.tps.value < FALLEN * best.tps.value
}

/// What becomes of throughput from the first point to the last.
pub(super) fn shape(points: &[&Point]) -> Vec<String> {
    let Some(Turn { best, fallen, last }) = Turn::of(points) else { return Vec::new() };
    if points.len() == 1 {
        return vec![format!("{} with {}", tps(&best.tps), clients(best.clients))];
    }
    if let Some(fallen) = fallen {
        let left = fallen.tps.value / best.tps.value;
        let how = if (0.45..=0.55).contains(&left) {
            "halves".into()
        } else {
            format!("falls by {}", percent(1.0 - left))
        };
        let (from, to) = (number(best.tps.value), number(fallen.tps.value));
        return vec![
            format!("throughput is highest with {}, {}", clients(best.clients), tps(&best.tps)),
            format!(
                "from {} to {} throughput {how}, from {from} to {to} a second",
                best.clients,
                clients(fallen.clients)
            ),
        ];
    }
    // Where it levels off: the first point from which on no later one is much higher.
    let level =
        points.iter().find(|point| best.tps.value < GROWTH * point.tps.value).copied().unwrap_or(best);
    if level.clients == last.clients {
        let before = points[points.len() - 2].clients;
        return vec![format!(
            "throughput still grows from {before} to {}, the most that were measured: {}",
            clients(last.clients),
            tps(&last.tps)
        )];
    }
    vec![format!(
        "throughput grows up to {} and stays level up to {}: {} at best",
        clients(level.clients),
        clients(last.clients),
        tps(&best.tps)
    )]
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
