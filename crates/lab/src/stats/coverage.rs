//! Coverage of a point's interval, for a fixed number of rounds and under the stopping rule.
//!
//! Under that rule rounds end as soon as the interval is narrow. Some are narrow because the first
//! rounds agreed by chance. docs/lab.md states these figures under *Limits*.

use super::test_noise::Noisy;
use super::{estimate, estimate_positive};
use crate::record::Interval;

/// The rule for rounds, as of `--rounds` and `--width`.
struct Rule {
    least: usize,
    most: usize,
    width: f64,
}

/// The number of simulated points whose interval holds the true median, 100.
fn held(
    points: usize,
    rule: &Rule,
    estimate: fn(&[f64]) -> Interval,
    mut round: impl FnMut() -> f64,
) -> usize {
    let mut holds = || {
        let mut rounds: Vec<f64> = (1..rule.least).map(|_| round()).collect();
        loop {
            rounds.push(round());
            let interval = estimate(&rounds);
            let narrow =
                interval.bounds().is_some_and(|(low, high)| high - low <= rule.width * interval.value);
            if narrow || rounds.len() == rule.most {
                return interval.contains(100.0) == Some(true);
            }
        }
    };
    (0..points).filter(|_| holds()).count()
}

#[test]
fn intervals_hold_the_true_median_about_95_times_in_100() {
    for count in [2, 3, 4, 5, 7, 10, 20] {
        let rule = Rule { least: count, most: count, width: 0.0 };
        let mut noisy = Noisy::new(count as u64);
        let even = held(200, &rule, estimate, || 100.0 + 2.0 * noisy.normal());
        // The lowest and highest of five values hold the median 15 times in 16; no interval of them
        // can do better.
        assert!(even >= 180, "{count} values: {even} of 200");
        assert!(count < 10 || even <= 199, "{count} values: {even} of 200, wider than need be");
        let mut noisy = Noisy::new(count as u64);
        let skewed = held(200, &rule, estimate, || 100.0 * (0.3 * noisy.normal()).exp());
        assert!(count < 5 || skewed >= 180, "{count} skewed values: {skewed} of 200");
    }
}

#[test]
fn the_stopping_rule_costs_little_of_the_coverage() {
    let rule = Rule { least: 3, most: 10, width: 0.03 };
    // At 2% many points end early, at 10% almost none.
    for noise in [0.02, 0.1] {
        let mut noisy = Noisy::new(7);
        let held = held(150, &rule, estimate_positive, || 100.0 * (noise * noisy.normal()).exp());
        assert!(held >= 135, "noise {noise}: {held} of 150 intervals hold the truth");
    }
}
