//! The law on curves with known terms, and on published ones.

use proptest::prelude::*;

use super::*;
use crate::stats::test_noise::{Noisy, point};

const STEPS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

fn made(law: &Law, mut noise: impl FnMut() -> f64) -> Vec<Point> {
    points(|clients| law.tps(clients as f64) * noise())
}

/// The fit, whether or not the law describes the points; and whether it does.
fn judged(points: &[Point]) -> (Fit, bool) {
    let points: Vec<&Point> = points.iter().collect();
    let curve = curve(&points).unwrap();
    let law = Law::fit(&curve).unwrap();
    (described(&law, &curve, points[0]), fit(&points).is_some())
}

fn fitted(points: &[Point]) -> Fit {
    judged(points).0
}

/// Points of single rounds; `of` maps clients to throughput.
fn points(mut of: impl FnMut(usize) -> f64) -> Vec<Point> {
    STEPS.iter().map(|&clients| point("a", clients, &[of(clients)])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn terms_come_back_from_curves_without_noise(
        single in 1.0f64..1e6, contention in 0.0f64..0.9, coherence in 0.0f64..0.05,
    ) {
        let law = Law { single, contention, coherence };
        let fit = fitted(&made(&law, || 1.0));
        prop_assert!((fit.single.value / single - 1.0).abs() < 1e-6);
        prop_assert!((fit.contention.value - contention).abs() < 1e-6);
        prop_assert!((fit.coherence.value - coherence).abs() < 1e-7);
        prop_assert!(fit.explained > 0.999_999);
    }

    #[test]
    fn with_noise_the_curve_stays_within_it(
        single in 100.0f64..1e5, contention in 0.0f64..0.5, coherence in 1e-6f64..0.01, seed in 0u64..1_000_000,
    ) {
        let law = Law { single, contention, coherence };
        let mut noisy = Noisy::new(seed);
        let fit = fitted(&made(&law, || (0.02 * noisy.normal()).exp()));
        prop_assert!(fit.contention.value >= 0.0 && fit.coherence.value >= 0.0);
        for clients in STEPS {
            let off = fit.tps(clients as f64) / law.tps(clients as f64) - 1.0;
            prop_assert!(off.abs() < 0.10, "{off} at {clients} clients");
        }
    }
}

#[test]
fn intervals_hold_the_true_terms_about_95_times_in_100() {
    let law = Law { single: 5_000.0, contention: 0.03, coherence: 0.000_4 };
    let mut noisy = Noisy::new(5);
    let (mut contention, mut coherence, mut peak) = (0, 0, 0);
    for _ in 0..100 {
        let fit = fitted(&made(&law, || (0.03 * noisy.normal()).exp()));
        contention += usize::from(fit.contention.contains(law.contention) == Some(true));
        coherence += usize::from(fit.coherence.contains(law.coherence) == Some(true));
        peak += usize::from(fit.peak.unwrap().clients.contains(law.peak().unwrap()) == Some(true));
    }
    for held in [contention, coherence, peak] {
        assert!((90..=99).contains(&held), "{contention}, {coherence}, {peak} of 100");
    }
}

#[test]
fn a_curve_that_only_grows_has_no_peak_and_one_that_only_falls_peaks_at_one_client() {
    let (grows, fits) = judged(&made(&Law { single: 100.0, contention: 0.02, coherence: 0.0 }, || 1.0));
    assert_eq!((grows.peak, grows.coherence.value, fits), (None, 0.0, true));
    let tps = [1_000.0, 700.0, 500.0, 400.0, 300.0];
    let falls = fitted(&points(|clients| tps[clients.ilog2() as usize % 5])[..5]);
    assert!(falls.contention.value >= 1.0);
    assert_eq!(falls.peak.unwrap().clients.value, 1.0);
}

#[test]
fn a_curve_that_the_law_does_not_describe_has_no_fit() {
    let law = |contention, coherence| Law { single: 1_000.0, contention, coherence };
    let scattered = [1_000.0, 1_200.0, 950.0, 1_150.0, 1_000.0, 1_180.0, 990.0, 1_190.0, 960.0];
    for (what, points, fits) in [
        ("a peak within the points", made(&law(0.05, 0.000_1), || 1.0), true),
        ("a peak at 995 clients, far beyond 256", made(&law(0.01, 1e-6), || 1.0), false),
        ("a cliff", points(|n| if n < 64 { 1_000.0 * n as f64 } else { 500.0 }), false),
        ("no order", points(|n| scattered[n.ilog2() as usize]), false),
        ("a level curve with little noise", points(|n| 1_000.0 + (n % 3) as f64), true),
    ] {
        assert_eq!(judged(&points).1, fits, "{what}");
    }
}

#[test]
fn a_point_missed_beyond_its_interval_leaves_no_fit() {
    for (off, width, fits) in [(1.2, 0.03, false), (1.2, 0.3, true), (1.05, 0.01, true)] {
        let mut points = made(&Law { single: 1_000.0, contention: 0.05, coherence: 0.000_1 }, || 1.0);
        points[4].tps.value *= off;
        for point in &mut points {
            let value = point.tps.value;
            point.tps = Interval { value, low: value * (1.0 - width), high: value * (1.0 + width) };
        }
        assert_eq!(judged(&points).1, fits, "{off} times, ±{width}");
    }
}

#[test]
fn three_numbers_of_clients_are_too_few() {
    let mut points = made(&Law { single: 100.0, contention: 0.1, coherence: 0.001 }, || 1.0);
    points.truncate(3);
    points.push(points[0].clone());
    points.push(point("a", 16, &[0.0]));
    assert_eq!(fit(&points.iter().collect::<Vec<_>>()), None);
}

/// Belousov 2014: PostgreSQL's throughput before and after a scalability patch, on 4 x 10 cores x 2
/// threads.
const PUBLISHED: [(usize, f64, f64); 5] = [
    (1, 5_698.41, 6_378.57),
    (5, 33_026.72, 38_513.55),
    (20, 9_232.19, 141_171.54),
    (40, 3_969.86, 115_945.73),
    (80, 1_944.68, 70_179.30),
];

#[test]
fn published_curves_turn_at_their_published_peaks() {
    let of = |tps: fn(&(usize, f64, f64)) -> f64| {
        judged(&PUBLISHED.iter().map(|row| point("b14", row.0, &[tps(row)])).collect::<Vec<_>>())
    };
    let (stock, patched) = (of(|row| row.1), of(|row| row.2));
    // Both grow faster than clients from 1 to 5, and the stock one collapses faster than the law
    // can.
    assert!(!stock.1 && !patched.1, "{stock:?} {patched:?}");
    let (stock, patched) = (stock.0, patched.0);
    let (turns, mended) = (stock.peak.unwrap().clients.value, patched.peak.unwrap().clients.value);
    assert!(
        (1.0..=12.0).contains(&turns),
        "the stock curve peaked at 5 of the clients measured, not at {turns}"
    );
    assert!((12.0..=40.0).contains(&mended), "the patched one peaked at 20, not at {mended}");
    assert!(stock.coherence.value > 10.0 * patched.coherence.value, "{stock:?} {patched:?}");
}
