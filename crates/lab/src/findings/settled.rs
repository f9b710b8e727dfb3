//! Whether throughput was steady within the rounds: a warm-up that was too short shows as a rise from their first second to
//! their last, work that is put off for later as a fall.

use crate::report::Point;
use crate::report::figures::{clients, list, percent};
use crate::stats::trend;

/// A change counts where so little chance would bring it about.
const CHANCE: f64 = 0.01;

/// A smaller change from the first second to the last is not worth a word.
const WORTH: f64 = 0.05;

/// Sentences on the points whose rounds were not steady.
pub(super) fn unsteady(points: &[&Point]) -> Vec<String> {
    let told = |how: &str, hint: &str, is: fn(f64) -> bool| {
        let at: Vec<String> = points
            .iter()
            .filter_map(|point| Some((point, change(point).filter(|change| is(*change))?)))
            .map(|(point, change)| format!("{} (by {})", clients(point.clients), percent(change.abs())))
            .collect();
        (!at.is_empty()).then(|| {
            let at = list(&at);
            format!("with {at} throughput {how} from the first second of the rounds to their last: {hint}")
        })
    };
    let rise = told("rises", "a longer --warmup shows more", |change| change >= WORTH);
    let fall = told("falls", "longer rounds (--round) show less", |change| change <= -WORTH);
    rise.into_iter().chain(fall).collect()
}

/// The change from the first second to the last, as a part of the median second; `None` where chance would bring it about, or
/// a single round shows it.
fn change(point: &Point) -> Option<f64> {
    let seconds = point.rounds.iter().flat_map(|round| {
        // The last one may be a part of a second.
        let whole = &round.seconds[..round.seconds.len().min(round.elapsed as usize)];
        let mean = whole.iter().sum::<u64>() as f64 / whole.len() as f64;
        whole.iter().enumerate().map(move |(second, done)| (second as f64, *done as f64 / mean))
    });
    let trend = trend(&seconds.collect::<Vec<_>>()).filter(|_| point.rounds.len() > 1)?;
    (trend.chance < CHANCE).then_some(trend.change)
}
