//! Drift of the machine, or of an arm, between a run's beginning and its end.

use std::collections::BTreeSet;

use super::interval::{median, quantile};
use super::trend::trend;
use crate::record::{Noise, Point};

/// A change counts if chance alone would cause it with less than this probability.
const CHANCE: f64 = 0.01;

/// The lab does not report smaller changes.
const WORTH: f64 = 0.03;

/// The machine is noisy if the fixed loop's 90th percentile exceeds its median by more than this
/// part.
const NOISY: f64 = 0.10;

/// Sentences on a machine that changed over the run or is noisy, from the fixed loop's times.
pub(crate) fn machine_drift(noise: &[Noise]) -> Vec<String> {
    let times: Vec<(f64, f64)> = noise.iter().map(|one| (one.at, one.took)).collect();
    let drifted = clear(&times).map(|change| {
        let (part, how) = (change.abs() * 100.0, if change > 0.0 { "longer" } else { "less" });
        format!(
            "the machine drifted: a fixed loop took {part:.0}% {how} at the end of the run than at its beginning, so \
             points measured far apart can't be compared; arms measured in turn can"
        )
    });
    drifted.into_iter().chain(unsteady(noise)).collect()
}

/// Sentences on arms that became faster or slower over the run.
pub(crate) fn arm_drift(points: &[Point]) -> Vec<String> {
    let told = |arm: &str| {
        let change = clear(&relative(points, arm))?;
        let (part, how) = (change.abs() * 100.0, if change > 0.0 { "faster" } else { "slower" });
        Some(format!(
            "{arm} got {part:.0}% {how} over the run, by repeated rounds with the same number of clients."
        ))
    };
    let arms: BTreeSet<&str> = points.iter().map(|point| point.arm.as_str()).collect();
    arms.into_iter().filter_map(told).collect()
}

/// The change over time, if it is beyond chance and large enough to report.
fn clear(samples: &[(f64, f64)]) -> Option<f64> {
    let trend = trend(samples)?;
    (trend.chance < CHANCE && trend.change.abs() >= WORTH).then_some(trend.change)
}

fn unsteady(noise: &[Noise]) -> Option<String> {
    let mut times: Vec<f64> = noise.iter().map(|one| one.took).filter(|took| took.is_finite()).collect();
    times.sort_by(f64::total_cmp);
    // With fewer than ten times, the 90th percentile is a single outlier.
    let slow = (times.len() >= 10).then(|| quantile(&times, 0.9) / quantile(&times, 0.5))?;
    (slow - 1.0 >= NOISY).then(|| {
        format!(
            "the machine is noisy: one time in ten a fixed loop took {slow:.2} times its usual time or more; another \
             program runs on it, or its clock changes"
        )
    })
}

/// The times of an arm's rounds, and their throughputs as parts of their point's median.
fn relative(points: &[Point], arm: &str) -> Vec<(f64, f64)> {
    let repeated = points.iter().filter(|point| point.arm == arm && point.rounds.len() > 1);
    repeated
        .flat_map(|point| {
            let tps: Vec<f64> = point.rounds.iter().map(|round| round.tps).collect();
            let middle = median(&tps);
            point.rounds.iter().map(move |round| (round.at, round.tps / middle))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::test_noise::{Noisy, point};
    use crate::tests::golden_cases;

    fn loops(seed: u64, level: impl Fn(f64) -> f64) -> Vec<Noise> {
        let mut noisy = Noisy::new(seed);
        let took = |at: f64, noise: f64| Noise { at, took: level(at / 40.0) * (1.0 + 0.005 * noise) };
        (0..40).map(|at| took(f64::from(at), noisy.normal())).collect()
    }

    /// Three points of five rounds, pass after pass; the speed is a function of time.
    fn points(arm: &str, seed: u64, speed: impl Fn(f64) -> f64) -> Vec<Point> {
        let mut noisy = Noisy::new(seed);
        let mut points: Vec<Point> = [1, 8, 64].map(|clients| point(arm, clients, &[0.0; 5])).into();
        for pass in 0..5 {
            for (index, point) in points.iter_mut().enumerate() {
                let at = f64::from(pass) * 3.0 + index as f64;
                let round = &mut point.rounds[pass as usize];
                (round.at, round.tps) =
                    (at, 1_000.0 * (index + 1) as f64 * speed(at / 15.0) * (1.0 + 0.01 * noisy.normal()));
            }
        }
        points
    }

    #[test]
    fn machines_drift_or_are_noisy_or_are_steady() {
        let mut noisy = loops(1, |_| 20.0);
        for at in [2, 9, 13, 21, 29, 38] {
            noisy[at].took *= 2.0;
        }
        let cases = [
            ("steady", loops(1, |_| 20.0)),
            ("unmeasured", Vec::new()),
            ("30% slower at the end", loops(1, |part| 20.0 * (1.0 + 0.3 * part))),
            ("6 of 40 take twice as long", noisy),
        ];
        golden_cases("drift_machines", cases.map(|(case, noise)| (case, machine_drift(&noise))));
    }

    #[test]
    fn one_arm_alone_can_drift() {
        assert_eq!(arm_drift(&[]), [""; 0]);
        let mut all = points("a", 2, |_| 1.0);
        assert_eq!(arm_drift(&all), [""; 0]);
        all.extend(points("b", 3, |part| 1.0 - 0.3 * part));
        let told = arm_drift(&all);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("b got ") && told[0].contains("slower"), "{told:?}");
    }
}
