//! Coverage of a point's interval under the stopping rule: rounds end as soon as the interval is
//! narrow, and some are narrow because the first rounds agreed by chance. docs/lab.md states these
//! figures under *Limits*.

use super::estimate_positive;
use super::test_noise::Noisy;

/// Simulated points for each noise.
const POINTS: usize = 150;

/// The rule for rounds, as of `--rounds` and `--width`.
struct Rule {
    least: usize,
    most: usize,
    width: f64,
}

/// The part of points whose interval holds the true median. The rounds' logarithms have this
/// standard deviation.
fn held(noise: f64, rule: &Rule) -> f64 {
    let mut noisy = Noisy::new(7);
    let mut held = 0;
    for _ in 0..POINTS {
        let mut rounds: Vec<f64> = Vec::new();
        let interval = loop {
            rounds.push(1_000.0 * (noise * noisy.normal()).exp());
            if rounds.len() < rule.least {
                continue;
            }
            let interval = estimate_positive(&rounds);
            let narrow =
                interval.bounds().is_some_and(|(low, high)| high - low <= rule.width * interval.value);
            if narrow || rounds.len() == rule.most {
                break interval;
            }
        };
        held += usize::from(interval.contains(1_000.0) == Some(true));
    }
    held as f64 / POINTS as f64
}

#[test]
fn the_stopping_rule_costs_little_of_the_coverage() {
    let rule = Rule { least: 3, most: 10, width: 0.03 };
    // At 2% many points end early, at 10% almost none.
    for noise in [0.02, 0.05, 0.1] {
        let part = held(noise, &rule);
        assert!(part >= 0.9, "noise {noise}: {part} of the intervals hold the truth");
    }
}
