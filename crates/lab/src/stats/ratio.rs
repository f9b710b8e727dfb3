//! One arm against another, from rounds measured in turn.
//!
//! Rounds are compared in pairs: the two of a pass ran one after the other, so the machine's effect
//! on both cancels out.

use super::interval::estimate;
use crate::record::{Interval, Point};

/// The ratio of `point` to `base` in their judged figure, from the rounds of the same passes. It is
/// the median of the pairs' ratios with its interval, computed on logarithms so that the choice of
/// the base does not matter. NaN where there is no pair.
pub fn ratio(base: &Point, point: &Point) -> Interval {
    let logs: Vec<f64> = point
        .rounds
        .iter()
        .filter_map(|round| {
            let other = base.rounds.iter().find(|other| other.pass == round.pass)?;
            Some((round.judged() / other.judged()).ln())
        })
        .collect();
    of_logs(&logs)
}

/// The ratio with these logarithms, with its interval.
pub fn of_logs(logs: &[f64]) -> Interval {
    let Interval { value, low, high } = estimate(logs);
    Interval { value: value.exp(), low: low.exp(), high: high.exp() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Verdict;
    use crate::stats::test_noise::{Noisy, point};

    /// Two arms in this many passes on a machine whose speed wanders by a fifth from pass to pass.
    fn arms(noisy: &mut Noisy, passes: usize, truth: f64) -> (Point, Point) {
        let (mut base, mut other) = (Vec::new(), Vec::new());
        for _ in 0..passes {
            let machine = 1.0 + 0.2 * noisy.normal();
            let machine = machine.max(0.2);
            base.push(1_000.0 * machine * (1.0 + 0.01 * noisy.normal()));
            other.push(1_000.0 * truth * machine * (1.0 + 0.01 * noisy.normal()));
        }
        (point("a", 8, &base), point("b", 8, &other))
    }

    #[test]
    fn the_machines_effect_on_both_arms_cancels_out() {
        let mut noisy = Noisy::new(1);
        let (base, other) = arms(&mut noisy, 7, 1.1);
        let ratio = ratio(&base, &other);
        assert_eq!(ratio.verdict(), Verdict::More);
        assert!((ratio.value - 1.1).abs() < 0.03 && ratio.high - ratio.low < 0.1, "{ratio:?}");
        let (low, high) =
            estimate(&base.rounds.iter().map(|round| round.tps).collect::<Vec<_>>()).bounds().unwrap();
        assert!(high / low > 1.1, "the rounds themselves are far apart: {low} to {high}");
    }

    #[test]
    fn equal_arms_differ_5_times_in_100_at_most() {
        let mut noisy = Noisy::new(2);
        let told = (0..400)
            .filter(|_| {
                let (base, other) = arms(&mut noisy, 6, 1.0);
                ratio(&base, &other).verdict() != Verdict::None
            })
            .count();
        assert!(told <= 32, "{told} of 400");
    }

    #[test]
    fn the_ratio_inverts_with_the_arms() {
        let mut noisy = Noisy::new(3);
        let (base, other) = arms(&mut noisy, 7, 0.6);
        let (there, back) = (ratio(&base, &other), ratio(&other, &base));
        assert!((there.value * back.value - 1.0).abs() < 1e-9);
        assert!((there.low * back.high - 1.0).abs() < 0.01, "{there:?} {back:?}");
        assert_eq!((there.verdict(), back.verdict()), (Verdict::Less, Verdict::More));
    }

    #[test]
    fn only_rounds_of_the_same_pass_are_pairs() {
        let base = point("a", 8, &[100.0, 200.0, 400.0]);
        let mut other = point("b", 8, &[220.0, 440.0]);
        other.rounds[0].pass = 1;
        other.rounds[1].pass = 2;
        let ratio_of_two = ratio(&base, &other);
        assert!((ratio_of_two.value - 1.1).abs() < 1e-9, "{ratio_of_two:?}");
        other.rounds.truncate(1);
        assert_eq!(ratio(&base, &other).verdict(), Verdict::Unknown);
        other.rounds[0].pass = 9;
        assert!(ratio(&base, &other).value.is_nan());
    }
}
