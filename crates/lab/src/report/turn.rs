//! The turn of a curve: its highest point, and the course beyond it. A difference inside the noise
//! is none.

use crate::record::Point;

/// Throughput falls if it drops by more than this part.
pub(crate) const FALL: f64 = 0.1;

/// The verdict of the rounds on one point's throughput above another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Above {
    /// It is higher, by more than the noise.
    Clearly,
    /// It was higher, in single rounds.
    Seen,
    /// The medians differ by this much, and the noise is as large.
    Perhaps,
    /// It is not higher.
    No,
}

/// Whether the lower point is below the higher one by more than this part of it.
pub(crate) fn above(high: &Point, low: &Point, part: f64) -> Above {
    if low.tps.value >= (1.0 - part) * high.tps.value {
        return Above::No;
    }
    match (high.tps.bounds(), low.tps.bounds()) {
        (Some((from, _)), Some((_, to))) if from > to => Above::Clearly,
        (Some(_), Some(_)) => Above::Perhaps,
        _ => Above::Seen,
    }
}

/// The turn of a curve, from its points.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn<'a> {
    pub(crate) best: &'a Point,
    /// The lowest point beyond the best that is a fall outside the noise; without one, the lowest
    /// fall in single rounds.
    pub(crate) fallen: Option<&'a Point>,
    pub(crate) last: &'a Point,
}

impl<'a> Turn<'a> {
    /// The turn of these points, ordered by clients; points without a number do not count. `None`
    /// without any.
    pub(crate) fn of(points: &[&'a Point]) -> Option<Self> {
        let measured = || points.iter().copied().filter(|point| point.tps.value.is_finite());
        let best = measured().max_by(|one, other| one.tps.value.total_cmp(&other.tps.value))?;
        let beyond = || measured().filter(|point| point.clients > best.clients);
        let fallen = [Above::Clearly, Above::Seen]
            .into_iter()
            .find_map(|how| lowest(beyond().filter(|point| above(best, point, FALL) == how)));
        Some(Self { best, fallen, last: measured().next_back()? })
    }
}

/// The point with the fewest transactions a second.
pub(crate) fn lowest<'a>(points: impl Iterator<Item = &'a Point>) -> Option<&'a Point> {
    points.min_by(|one, other| one.tps.value.total_cmp(&other.tps.value))
}
