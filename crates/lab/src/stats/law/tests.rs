//! The law on curves whose terms are known, and on published ones.

use proptest::prelude::*;

use super::*;
use crate::stats::test_noise::{Noisy, point};

const STEPS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

fn made(law: &Law, mut noise: impl FnMut() -> f64) -> Vec<Point> {
    STEPS.iter().map(|&clients| point("a", clients, &[law.tps(clients as f64) * noise()])).collect()
}

fn fitted(points: &[Point]) -> Fit {
    fit(&points.iter().collect::<Vec<_>>()).unwrap()
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
    for _ in 0..200 {
        let fit = fitted(&made(&law, || (0.03 * noisy.normal()).exp()));
        contention += usize::from(fit.contention.contains(law.contention) == Some(true));
        coherence += usize::from(fit.coherence.contains(law.coherence) == Some(true));
        peak += usize::from(fit.peak.unwrap().clients.contains(law.peak().unwrap()) == Some(true));
    }
    for held in [contention, coherence, peak] {
        assert!((180..=199).contains(&held), "{contention}, {coherence}, {peak} of 200");
    }
}

#[test]
fn a_curve_that_only_grows_has_no_peak() {
    let fit = fitted(&made(&Law { single: 100.0, contention: 0.02, coherence: 0.0 }, || 1.0));
    assert_eq!((fit.peak, fit.coherence.value), (None, 0.0));
    assert_eq!(fit.doubts, Vec::<String>::new());
}

#[test]
fn a_peak_far_beyond_the_points_is_doubted() {
    let law = Law { single: 100.0, contention: 0.01, coherence: 1e-6 };
    let fit = fitted(&made(&law, || 1.0));
    assert!((fit.peak.unwrap().clients.value - 995.0).abs() < 1.0);
    assert_eq!(fit.doubts, ["the peak at 995 clients lies far beyond the 256 that were measured"]);
}

#[test]
fn a_curve_that_falls_from_the_start_peaks_at_one_client() {
    let tps = [1_000.0, 700.0, 500.0, 400.0, 300.0];
    let points: Vec<Point> =
        STEPS.iter().zip(tps).map(|(&clients, tps)| point("a", clients, &[tps])).collect();
    let fit = fitted(&points);
    assert!(fit.contention.value >= 1.0);
    assert_eq!(fit.peak.unwrap().clients.value, 1.0);
}

#[test]
fn a_cliff_is_no_such_curve() {
    let points: Vec<Point> = STEPS
        .iter()
        .map(|&clients| point("a", clients, &[if clients < 64 { 1_000.0 * clients as f64 } else { 500.0 }]))
        .collect();
    let fit = fitted(&points);
    assert!(fit.doubts.iter().any(|doubt| doubt.ends_with("it has another shape")), "{fit:?}");
}

#[test]
fn a_point_missed_beyond_its_interval_makes_the_fit_doubtful() {
    let law = Law { single: 1_000.0, contention: 0.05, coherence: 0.000_1 };
    let doubts = |off: f64, width: f64| {
        let mut points = made(&law, || 1.0);
        points[4].tps.value *= off;
        for point in &mut points {
            let value = point.tps.value;
            point.tps = Interval { value, low: value * (1.0 - width), high: value * (1.0 + width) };
        }
        fitted(&points).doubts
    };
    let told = doubts(1.2, 0.03);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("the curve lies 1") && told[0].contains("below what was measured at 16 clients"),
        "{told:?}"
    );
    assert_eq!(doubts(1.2, 0.3), Vec::<String>::new(), "it may lie there");
    assert_eq!(doubts(1.05, 0.01), Vec::<String>::new(), "that little is no other shape");
}

#[test]
fn points_without_order_are_not_explained() {
    let tps = [1_000.0, 1_200.0, 950.0, 1_150.0, 1_000.0, 1_180.0];
    let points: Vec<Point> =
        STEPS.iter().zip(tps).map(|(&clients, tps)| point("a", clients, &[tps])).collect();
    let doubts = fitted(&points).doubts;
    assert!(doubts.iter().any(|doubt| doubt.starts_with("it explains only ")), "{doubts:?}");
    // A level curve with little noise is what the law says of a single resource.
    let level: Vec<Point> =
        STEPS.iter().map(|&clients| point("a", clients, &[1_000.0 + (clients % 3) as f64])).collect();
    assert_eq!(fitted(&level).doubts, Vec::<String>::new());
}

#[test]
fn three_points_are_too_few() {
    let mut points = made(&Law { single: 100.0, contention: 0.1, coherence: 0.001 }, || 1.0);
    points.truncate(3);
    points.push(points[0].clone());
    points.push(point("a", 16, &[0.0]));
    let refused = fit(&points.iter().collect::<Vec<_>>()).unwrap_err();
    assert_eq!(refused, "the scalability law needs 4 different numbers of clients, and 3 gave throughput");
}

/// Belousov 2014: PostgreSQL's throughput before and after its scalability was mended, on 4 x 10 cores x 2 threads.
const PUBLISHED: [(usize, f64, f64); 5] = [
    (1, 5_698.41, 6_378.57),
    (5, 33_026.72, 38_513.55),
    (20, 9_232.19, 141_171.54),
    (40, 3_969.86, 115_945.73),
    (80, 1_944.68, 70_179.30),
];

#[test]
fn published_curves_turn_where_they_were_seen_to() {
    let of = |tps: fn(&(usize, f64, f64)) -> f64| -> Fit {
        fitted(&PUBLISHED.iter().map(|row| point("b14", row.0, &[tps(row)])).collect::<Vec<_>>())
    };
    let (stock, patched) = (of(|row| row.1), of(|row| row.2));
    // Both grow faster than clients from 1 to 5, and the stock one collapses faster than the law can: it must say so.
    for fit in [&stock, &patched] {
        assert!(fit.doubts[0].starts_with("from 1 to 5 clients throughput grows 1."), "{fit:?}");
    }
    assert!(stock.doubts.iter().any(|doubt| doubt.ends_with("it has another shape")), "{stock:?}");
    let (turns, mended) = (stock.peak.unwrap().clients.value, patched.peak.unwrap().clients.value);
    assert!(
        (1.0..=12.0).contains(&turns),
        "the stock curve peaked at 5 of the clients measured, not at {turns}"
    );
    assert!((12.0..=40.0).contains(&mended), "the patched one peaked at 20, not at {mended}");
    assert!(stock.coherence.value > 10.0 * patched.coherence.value, "{stock:?} {patched:?}");
}
