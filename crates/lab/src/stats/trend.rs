//! Whether numbers rise or fall over time. The test is that of Mann (Econometrica 13, 1945) and
//! Kendall. The slope is that of Sen (Journal of the American Statistical Association 63, 1968),
//! the median of all pairs' slopes. Both use order and medians, so that single outliers count for
//! little and a step counts as much as a ramp.

use super::interval::{median, tail};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// From the first moment to the last, as a part of the median: 0.1 is a rise by a tenth.
    pub change: f64,
    /// The probability of an order at least this clear without a trend.
    pub chance: f64,
}

/// Fewer samples than this tell nothing: the test assumes a normal distribution.
const LEAST: usize = 8;

/// The trend of samples of time and value. `None` for fewer than eight, all at one moment, or
/// around zero.
pub fn trend(samples: &[(f64, f64)]) -> Option<Trend> {
    let mut samples: Vec<_> =
        samples.iter().copied().filter(|(at, value)| at.is_finite() && value.is_finite()).collect();
    if samples.len() < LEAST {
        return None;
    }
    samples.sort_by(|one, other| one.0.total_cmp(&other.0));
    let count = samples.len();
    let (mut score, mut slopes) = (0.0, Vec::with_capacity(count * (count - 1) / 2));
    for (index, &(at, value)) in samples.iter().enumerate() {
        for &(later, then) in &samples[index + 1..] {
            score += (then - value).partial_cmp(&0.0).map_or(0.0, |order| f64::from(order as i8));
            if later > at {
                slopes.push((then - value) / (later - at));
            }
        }
    }
    let values: Vec<f64> = samples.iter().map(|sample| sample.1).collect();
    let (middle, span) = (median(&values), samples[count - 1].0 - samples[0].0);
    if slopes.is_empty() || middle == 0.0 {
        return None;
    }
    let deviation = deviation(&values);
    // One step towards zero, since scores are whole numbers two apart.
    let errors = if deviation > 0.0 { (score.abs() - 1.0).max(0.0) / deviation } else { 0.0 };
    Some(Trend { change: median(&slopes) * span / middle, chance: 2.0 * tail(errors) })
}

/// The standard deviation of the score without a trend; ties lower it.
fn deviation(values: &[f64]) -> f64 {
    let weight = |count: f64| count * (count - 1.0) * (2.0 * count + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|one, other| one == other).map(|run| weight(run.len() as f64)).sum();
    ((weight(values.len() as f64) - ties) / 18.0).max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::test_noise::Noisy;

    fn noisy(seed: u64, count: usize, level: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let mut noisy = Noisy::new(seed);
        (0..count)
            .map(|at| (at as f64, level(at as f64 / count as f64) * (1.0 + 0.02 * noisy.normal())))
            .collect()
    }

    #[test]
    fn a_ramp_and_a_step_are_seen_and_measured() {
        let ramp = trend(&noisy(1, 30, |part| 10.0 * (1.0 + 0.2 * part))).unwrap();
        assert!(ramp.chance < 1e-6 && (ramp.change - 0.18).abs() < 0.05, "{ramp:?}");
        let step = trend(&noisy(2, 30, |part| if part < 0.5 { 10.0 } else { 8.0 })).unwrap();
        assert!(step.chance < 1e-3 && step.change < -0.15, "{step:?}");
    }

    #[test]
    fn steady_noise_is_a_trend_1_time_in_100() {
        let told =
            (0..2_000).filter(|seed| trend(&noisy(100 + seed, 20, |_| 10.0)).unwrap().chance < 0.01).count();
        assert!((5..=40).contains(&told), "{told} of 2,000");
    }

    #[test]
    fn an_outlier_is_no_trend() {
        let mut samples = noisy(3, 20, |_| 10.0);
        samples[19].1 = 90.0;
        let trend = trend(&samples).unwrap();
        assert!(trend.chance > 0.01 && trend.change.abs() < 0.05, "{trend:?}");
    }

    #[test]
    fn too_few_samples_are_no_trend() {
        assert_eq!(trend(&[(0.0, 1.0); 7]), None);
        assert_eq!(trend(&[(0.0, 1.0); 20]), None);
        let equal: Vec<_> = (0..20).map(|at| (f64::from(at), 5.0)).collect();
        assert_eq!(trend(&equal), Some(Trend { change: 0.0, chance: 1.0 }));
    }
}
