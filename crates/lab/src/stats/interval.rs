//! A median and its 95% confidence interval.
//!
//! From five values on, the interval is the bootstrap's expanded percentile interval (Hesterberg,
//! "What Teachers Should Know About the Bootstrap", The American Statistician 69(4), 2015, section
//! 3.2). The plain percentile interval is too narrow for few values. So its tails are those of
//! Student's distribution, widened by the root of n/(n-1).
//!
//! Two to four values can't be resampled into a 95% interval: the lowest and the highest of three
//! hold the median 3 times in 4. For them the interval is Student's interval of the mean, stretched
//! to hold the median; it assumes normal noise.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::client::Random;
use crate::record::Interval;

/// Seed of the resampling; a constant, so that the same values give the same interval.
const SEED: u64 = 0x0a11_c09e_5eed;

/// Number of resamples. The tails of five values are at 1 in 1,000; this number has 5 beyond them.
const RESAMPLES: usize = 5_000;

/// The least number of values to resample.
const RESAMPLED_FROM: usize = 5;

/// The median of the values; NaN where there are none. NaN and infinite values do not count.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// The median of `values` and its interval. The bounds are unknown for fewer than two values.
pub fn estimate(values: &[f64]) -> Interval {
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let value = median(&values);
    let (low, high) = match values.len() {
        0 | 1 => return Interval::alone(value),
        few if few < RESAMPLED_FROM => of_few(&values),
        _ => resampled(&values),
    };
    Interval { value, low: low.min(value), high: high.max(value) }
}

/// The same for positive values whose noise grows with them, as that of throughput does. The
/// interval is that of their logarithms, so that it can't reach below zero. Other values do not
/// count.
pub fn estimate_positive(values: &[f64]) -> Interval {
    let value = median(values);
    let logs: Vec<f64> = values.iter().filter(|value| **value > 0.0).map(|value| value.ln()).collect();
    match estimate(&logs).bounds() {
        Some((low, high)) => Interval { value, low: low.exp().min(value), high: high.exp().max(value) },
        None => Interval::alone(value),
    }
}

/// `to` over `from`, as independent measurements. The distances to the bounds add up as independent
/// errors do, on logarithms (recovered variances, after Zou and Donner 2008).
pub(crate) fn independent_ratio(from: &Interval, to: &Interval) -> Interval {
    let value = to.value / from.value;
    let (Some((from_low, from_high)), Some((to_low, to_high))) = (from.bounds(), to.bounds()) else {
        return Interval::alone(value);
    };
    let below = (to.value / to_low).ln().hypot((from_high / from.value).ln());
    let above = (to_high / to.value).ln().hypot((from.value / from_low).ln());
    Interval { value, low: value * (-below).exp(), high: value * above.exp() }
}

/// Student's interval of the mean.
fn of_few(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let reach = student(values.len() - 1) * (variance / count).sqrt();
    (mean - reach, mean + reach)
}

fn resampled(values: &[f64]) -> (f64, f64) {
    let count = values.len();
    let mut random = Random::new(SEED, count as u64);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = |value: &f64| sorted.partition_point(|other| other.total_cmp(value).is_lt());
    let places: Vec<usize> = values.iter().map(place).collect();
    // How often each place is drawn: counts need no sorting.
    let mut drawn = vec![0; count];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            drawn.fill(0);
            for _ in 0..count {
                drawn[places[random.between(0, count as i64 - 1) as usize]] += 1;
            }
            let (low, high) = (drawn_at(&drawn, (count - 1) / 2), drawn_at(&drawn, count / 2));
            quantile(&[sorted[low], sorted[high]], 0.5)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let widening = (count as f64 / (count as f64 - 1.0)).sqrt();
    let tail = tail(widening * student(count - 1));
    (quantile(&medians, tail), quantile(&medians, 1.0 - tail))
}

/// The place of the drawn value with this rank, by how often each place is drawn.
fn drawn_at(drawn: &[usize], rank: usize) -> usize {
    let (mut place, mut upto) = (0, drawn[0]);
    while upto <= rank {
        place += 1;
        upto += drawn[place];
    }
    place
}

/// The number of standard errors on each side that 95% of Student's distribution covers.
pub(super) fn student(freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64)
        .expect("there is at least one degree of freedom")
        .inverse_cdf(0.975)
}

/// The lower tail of a normal distribution, beyond this many standard errors.
pub(super) fn tail(errors: f64) -> f64 {
    Normal::standard().cdf(-errors)
}

/// The value below which this share of the sorted values lies; NaN where there are none.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    // Two equal values stay as they are, infinite ones included.
    if part == 0.0 || low == high { low } else { low + (high - low) * part }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn medians_leave_out_nan() {
        assert_eq!(median(&[3.0, f64::NAN, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[1.0, 4.0]), 2.5);
        assert!(median(&[f64::INFINITY]).is_nan());
    }

    #[test]
    fn one_value_has_no_bounds_and_equal_ones_have_no_width() {
        assert_eq!(estimate(&[7.0]).value, 7.0);
        assert_eq!(estimate(&[7.0]).bounds(), None);
        for count in [2, 5, 9] {
            let interval = estimate(&vec![7.0; count]);
            assert_eq!((interval.value, interval.bounds()), (7.0, Some((7.0, 7.0))));
        }
    }

    #[test]
    fn positive_values_have_positive_bounds() {
        let far = [5_573.0, 4_433.0, 19_264.0];
        assert!(estimate(&far).low < 0.0);
        let interval = estimate_positive(&far);
        assert!(interval.low > 0.0 && interval.low < 4_433.0 && interval.high > 19_264.0, "{interval:?}");
        let (close, plain) = (estimate_positive(&[99.0, 100.0, 101.0]), estimate(&[99.0, 100.0, 101.0]));
        assert!(
            (close.low - plain.low).abs() < 0.1 && (close.high - plain.high).abs() < 0.1,
            "{close:?} {plain:?}"
        );
        assert_eq!(estimate_positive(&[5.0, 0.0]).bounds(), None);
    }

    #[test]
    fn bounds_of_a_ratio_hold_the_truth_as_often_as_those_of_its_parts() {
        let from = Interval { value: 100.0, low: 97.0, high: 104.0 };
        let to = Interval { value: 200.0, low: 192.0, high: 206.0 };
        let both = independent_ratio(&from, &to);
        assert!((both.low - 1.890).abs() < 0.001 && (both.high - 2.087).abs() < 0.001, "{both:?}");
        let back = independent_ratio(&to, &from);
        assert!((back.low - 1.0 / both.high).abs() < 1e-9 && (back.high - 1.0 / both.low).abs() < 1e-9);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn the_median_lies_within_its_bounds_and_scales(
            values in prop::collection::vec(1.0f64..1e6, 2..15), factor in 0.001f64..1000.0,
        ) {
            let interval = estimate(&values);
            let (low, high) = interval.bounds().unwrap();
            prop_assert!(low <= interval.value && interval.value <= high);
            let scaled: Vec<f64> = values.iter().map(|value| value * factor).collect();
            let scaled = estimate(&scaled);
            prop_assert!((scaled.low - low * factor).abs() <= 1e-9 * high * factor);
            prop_assert!((scaled.high - high * factor).abs() <= 1e-9 * high * factor);
        }
    }
}
