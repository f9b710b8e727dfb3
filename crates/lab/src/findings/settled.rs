//! Whether throughput was steady within the rounds. A warm-up that was too short shows as a rise
//! from their first half to their second. Deferred work shows as a fall.

use crate::figures::{clients, list, percent};
use crate::record::{Interval, Point};
use crate::stats::of_logs;

/// The findings ignore a change that may be smaller, according to the rounds.
const WORTH: f64 = 0.05;

/// Sentences on the points whose rounds were not steady.
pub(super) fn unsteady(points: &[&Point]) -> Vec<String> {
    let changes: Vec<(usize, Interval)> = points.iter().map(|point| (point.clients, change(point))).collect();
    let told = |how: &str, hint: &str, is: fn((f64, f64)) -> bool| {
        let those = changes.iter().filter(|(_, change)| change.bounds().is_some_and(is));
        let at: Vec<String> = those
            .map(|(count, change)| {
                format!("{} (by {})", clients(*count), percent((change.value - 1.0).abs()))
            })
            .collect();
        (!at.is_empty()).then(|| {
            let at = list(&at);
            format!("with {at} throughput {how} from the first half of the rounds to the second: {hint}")
        })
    };
    let rise = told("rises", "a longer --warmup shows more", |(low, _)| low > 1.0 + WORTH);
    let fall = told("falls", "longer rounds (--round) show less", |(_, high)| high < 1.0 - WORTH);
    rise.into_iter().chain(fall).collect()
}

/// The ratio of transactions in the rounds' second halves to those in their first. A second in the
/// middle belongs to neither.
fn change(point: &Point) -> Interval {
    let halves = |seconds: &Vec<u64>| {
        let half = seconds.len() / 2;
        let sum = |part: &[u64]| part.iter().sum::<u64>() as f64;
        (sum(&seconds[seconds.len() - half..]) / sum(&seconds[..half])).ln()
    };
    of_logs(&point.rounds.iter().map(|round| halves(&round.seconds)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::test_noise::{Noisy, point};
    use crate::tests::golden;

    /// Five rounds whose seconds have these parts of 1,000, with a noise of 0.5%.
    fn rounds(clients: usize, parts: &[f64]) -> Point {
        let mut noisy = Noisy::new(clients as u64);
        let mut point = point("pg", clients, &[1_000.0; 5]);
        for round in &mut point.rounds {
            let done = |part: &f64| (1_000.0 * part * (1.0 + 0.005 * noisy.normal())) as u64;
            round.seconds = parts.iter().map(done).collect();
        }
        point
    }

    #[test]
    fn unsteady_rounds_are_reported() {
        // The second in the middle belongs to neither half.
        let (rises, falls) = ([0.7, 0.9, 5.0, 1.0, 1.0], [1.25, 1.0, 0.9, 0.9]);
        let points = [rounds(1, &[1.0; 4]), rounds(8, &rises), rounds(64, &falls), rounds(1000, &rises)];
        golden("findings_unsteady", &unsteady(&points.iter().collect::<Vec<_>>()).join("\n"));
    }

    #[test]
    fn steady_single_and_short_rounds_have_no_finding() {
        let mut single = rounds(8, &[0.7, 0.7, 1.0, 1.0]);
        single.rounds.truncate(1);
        let mut idle = rounds(2, &[1.0; 4]);
        idle.rounds.iter_mut().for_each(|round| round.seconds = vec![0; 4]);
        let points = [rounds(1, &[1.0, 1.03]), single, rounds(64, &[1.0]), rounds(16, &[]), idle];
        assert_eq!(unsteady(&points.iter().collect::<Vec<_>>()), Vec::<String>::new());
    }
}
