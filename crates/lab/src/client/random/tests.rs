//! The distributions match their definitions: observed counts against exact probabilities by
//! Pearson's chi-square.

use super::sysbench::Distribution;
use super::ycsb::{THETA, hash, scrambled, zipfian};
use super::*;

const DRAWS: usize = 200_000;

/// Draws this many values and compares them with the expected share of each. A statistic 4 standard
/// deviations above its mean comes by chance about once in 10,000 runs. The seed is fixed, so a
/// pass stays a pass.
#[track_caller]
fn assert_fits(name: &str, expected: &[f64], mut draw: impl FnMut() -> usize) {
    let mut seen = vec![0u64; expected.len()];
    for _ in 0..DRAWS {
        seen[draw()] += 1;
    }
    let total: f64 = expected.iter().sum();
    let (mut statistic, mut cells) = (0.0, 0.0);
    // Cells with few expected draws are merged.
    let (mut few_seen, mut few_expected) = (0.0, 0.0);
    for (seen, expected) in seen.iter().zip(expected) {
        few_seen += *seen as f64;
        few_expected += expected / total * DRAWS as f64;
        if few_expected >= 10.0 {
            statistic += (few_seen - few_expected).powi(2) / few_expected;
            cells += 1.0;
            (few_seen, few_expected) = (0.0, 0.0);
        }
    }
    let freedom = cells - 1.0;
    let limit = freedom + 4.0 * f64::sqrt(2.0 * freedom);
    assert!(
        statistic < limit,
        "{name}: chi-square {statistic:.1} over {limit:.1} at {freedom} degrees of freedom"
    );
}

#[test]
fn pgbench_distributions_have_the_documented_probabilities() {
    let mut random = Random::new(1, 0);
    let values = 100i32;
    let places = || (1..=values).map(f64::from);
    for exponent in [1.001, 1.3, 2.5] {
        let zipfian: Vec<f64> = places().map(|k| k.powf(-exponent)).collect();
        assert_fits("zipfian", &zipfian, || (random.zipfian(1, 100, exponent) - 1) as usize);
    }
    assert_fits("uniform", &[1.0; 100], || (random.between(1, 100) - 1) as usize);
}

#[test]
fn ends_of_the_range_are_reached_and_never_passed() {
    let mut random = Random::new(2, 0);
    for distribution in [Distribution::Uniform, Distribution::Special] {
        let seen: std::collections::BTreeSet<i64> =
            (0..20_000).map(|_| distribution.draw(5, 8, &mut random)).collect();
        assert!(seen.iter().all(|value| (5..=8).contains(value)), "{distribution:?}: {seen:?}");
        assert!(seen.len() >= 3, "{distribution:?}: {seen:?}");
        assert_eq!(distribution.draw(3, 3, &mut random), 3);
    }
    assert_eq!(random.zipfian(4, 4, 1.5), 4);
}

/// Special: three quarters of the draws in the middle hundredth and its edge.
#[test]
fn sysbench_s_special_rows_get_three_quarters_of_the_draws() {
    let mut random = Random::new(3, 0);
    let draw = |random: &mut Random| Distribution::Special.draw(1, 10_000, random);
    let middle = (0..DRAWS).filter(|_| (4_950..=5_051).contains(&draw(&mut random))).count();
    let share = middle as f64 / DRAWS as f64;
    assert!((0.70..0.80).contains(&share), "{share}");
}

#[test]
fn ycsb_records_are_zipfian_and_scrambled_by_the_originals_hash() {
    let mut random = Random::new(5, 0);
    let expected: Vec<f64> = (1..=1000).map(|k| f64::from(k).powf(-THETA)).collect();
    assert_fits("records", &expected, || zipfian(1000, &mut random) as usize);
    assert_eq!(zipfian(1, &mut random), 0);
    // user6284781860667377211 is the first key of every YCSB load.
    assert_eq!(hash(0), 6_284_781_860_667_377_211);
    let mut seen = vec![0usize; 500];
    (0..DRAWS).for_each(|_| seen[scrambled(500, &mut random) as usize] += 1);
    let most = seen.iter().enumerate().max_by_key(|(_, count)| **count).unwrap().0 as u64;
    assert_eq!(most, hash(0) % 500);
    // The first of the ten thousand million ranks has this share, by ScrambledZipfianGenerator's
    // own ZETAN; the others lie anywhere.
    let (first, share) = (1.0 / 26.469_028_201_783_02, seen[most as usize] as f64 / DRAWS as f64);
    assert!((share - first - (1.0 - first) / 500.0).abs() < 0.003, "{share}");
}
