//! The universal scalability law (Gunther, "A General Theory of Computational Scalability Based on
//! Rational Functions", 2008), fitted to measured throughput:
//! `X(N) = single * N / (1 + contention * (N - 1) + coherence * N * (N - 1))`.
//!
//! Inverted, `N / X` is a sum of three columns (1, N-1, N(N-1)) whose coefficients must not be
//! negative. This is a convex problem with one solution and without a starting value to choose.
//! Noise of throughput grows with it, so errors count in proportion. Intervals come from resampling
//! the residuals (they hold noise and misfit alike), widened by Student's distribution for the few
//! degrees of freedom.
//!
//! A curve that the law does not describe has no fit: a curve of another shape, one that grows
//! faster than its clients, one whose peak lies far beyond the measured clients.

use super::interval::{quantile, student, tail};
use super::least_squares::solve;
use crate::client::Random;
use crate::record::{Fit, Interval, Peak, Point};

/// Seed of the resampling; a constant, so that the same points give the same intervals.
const SEED: u64 = 0x0a11_c09e_1a30;

/// Number of resamples of the residuals.
const RESAMPLES: usize = 1_000;

/// The law has three terms: fewer points would leave nothing to judge it by.
const LEAST_POINTS: usize = 4;

/// The law does not fit where it misses a point by more than this part and outside its interval,
const MISSED: f64 = 0.10;

/// or by more than this part where the interval is unknown,
const MISSED_UNKNOWN: f64 = 0.25;

/// or where it explains less than this part of the points' variance and also misses a point by the
/// second (a level curve has little variance),
const UNEXPLAINED: (f64, f64) = (0.8, 0.10);

/// or where throughput grows this much faster than clients, for which it has no term: few clients
/// leave the machine half asleep, or caches were cold,
const TOO_FAST: f64 = 1.05;

/// or where its peak lies at more than this many times the most clients.
const FAR: f64 = 2.0;

/// Fits the law to the points of one arm, workload and protocol. `None` where it does not fit, or
/// fewer than four numbers of clients have a throughput.
pub fn fit(points: &[&Point]) -> Option<Fit> {
    let curve = curve(points)?;
    let law = Law::fit(&curve)?;
    describes(&law, &curve, points).then(|| described(&law, &curve, points[0]))
}

/// Clients and throughput, by rising clients.
fn curve(points: &[&Point]) -> Option<Vec<(f64, f64)>> {
    let all = points.iter().map(|point| (point.clients as f64, point.tps.value));
    let mut curve: Vec<_> =
        all.filter(|&(clients, tps)| clients >= 1.0 && tps.is_finite() && tps > 0.0).collect();
    curve.sort_by(|one, other| one.0.total_cmp(&other.0));
    curve.dedup_by_key(|one| one.0);
    (curve.len() >= LEAST_POINTS).then_some(curve)
}

/// The law's terms with their intervals.
fn described(law: &Law, curve: &[(f64, f64)], like: &Point) -> Fit {
    let spread = Spread::of(law, curve);
    let peak = law.peak().map(|clients| Peak {
        clients: spread.interval(clients, |law| law.peak().unwrap_or(f64::INFINITY)),
        tps: law.tps(clients),
    });
    Fit {
        arm: like.arm.clone(),
        workload: like.workload.clone(),
        protocol: like.protocol,
        single: spread.interval(law.single, |law| law.single),
        contention: spread.interval(law.contention, |law| law.contention),
        coherence: spread.interval(law.coherence, |law| law.coherence),
        peak,
        explained: explained(law, curve),
    }
}

#[derive(Debug, Clone, Copy)]
struct Law {
    single: f64,
    contention: f64,
    coherence: f64,
}

impl Law {
    fn tps(&self, clients: f64) -> f64 {
        clients / self.cost(clients) * self.single
    }

    /// The cost of a client's work among this many, relative to the cost of a single client.
    fn cost(&self, clients: f64) -> f64 {
        let others = clients - 1.0;
        1.0 + self.contention * others + self.coherence * clients * others
    }

    /// The number of clients with the highest throughput; `None` where it grows for ever.
    fn peak(&self) -> Option<f64> {
        if self.contention >= 1.0 {
            return Some(1.0);
        }
        (self.coherence > 0.0).then(|| ((1.0 - self.contention) / self.coherence).sqrt().max(1.0))
    }

    /// Fits the terms; `None` where some throughput is not above zero.
    fn fit(curve: &[(f64, f64)]) -> Option<Self> {
        // Each row is divided by its `N / X`, so that errors count in proportion.
        let column = |of: fn(f64) -> f64| curve.iter().map(|(n, tps)| of(*n) * tps / n).collect();
        let columns = [column(|_| 1.0), column(|n| n - 1.0), column(|n| n * (n - 1.0))];
        let [alone, others, pairs] = solve(&columns, &vec![1.0; curve.len()])?;
        Some(Self { single: 1.0 / alone, contention: others / alone, coherence: pairs / alone })
    }
}

/// Fits to resampled points.
struct Spread {
    laws: Vec<Law>,
    tail: f64,
}

impl Spread {
    fn of(law: &Law, curve: &[(f64, f64)]) -> Self {
        let (count, freedom) = (curve.len(), curve.len() - 3);
        let errors: Vec<f64> = curve.iter().map(|(clients, tps)| (tps / law.tps(*clients)).ln()).collect();
        let mean = errors.iter().sum::<f64>() / count as f64;
        // The fit used three degrees of freedom to make the errors small.
        let widening = (count as f64 / freedom as f64).sqrt();
        let mut random = Random::new(SEED, count as u64);
        let laws = (0..RESAMPLES)
            .filter_map(|_| {
                let drawn: Vec<(f64, f64)> = curve
                    .iter()
                    .map(|(clients, _)| {
                        let error = errors[random.between(0, count as i64 - 1) as usize] - mean;
                        (*clients, law.tps(*clients) * (widening * error).exp())
                    })
                    .collect();
                Law::fit(&drawn)
            })
            .collect();
        Self { laws, tail: tail(student(freedom)) }
    }

    fn interval(&self, value: f64, term: impl Fn(&Law) -> f64) -> Interval {
        let mut terms: Vec<f64> = self.laws.iter().map(term).collect();
        terms.sort_by(f64::total_cmp);
        let (low, high) = (quantile(&terms, self.tail), quantile(&terms, 1.0 - self.tail));
        Interval { value, low: low.min(value), high: high.max(value) }
    }
}

/// R squared.
fn explained(law: &Law, curve: &[(f64, f64)]) -> f64 {
    let mean = curve.iter().map(|point| point.1).sum::<f64>() / curve.len() as f64;
    let left: f64 = curve.iter().map(|(clients, tps)| (tps - law.tps(*clients)).powi(2)).sum();
    let all: f64 = curve.iter().map(|(_, tps)| (tps - mean).powi(2)).sum();
    1.0 - left / all
}

fn describes(law: &Law, curve: &[(f64, f64)], points: &[&Point]) -> bool {
    let pairs = curve.windows(2).map(|pair| (pair[1].1 / pair[0].1) / (pair[1].0 / pair[0].0));
    let off = |(clients, tps): &(f64, f64)| (law.tps(*clients) / tps - 1.0).abs();
    let worst = curve.iter().map(off).fold(0.0, f64::max);
    let most = curve[curve.len() - 1].0;
    pairs.fold(0.0, f64::max) <= TOO_FAST
        && !points.iter().any(|point| misses(law, point))
        && (explained(law, curve) >= UNEXPLAINED.0 || worst <= UNEXPLAINED.1)
        && law.peak().is_none_or(|peak| peak <= FAR * most)
}

/// Whether the curve misses a point by more than noise explains.
fn misses(law: &Law, point: &Point) -> bool {
    let fitted = law.tps(point.clients as f64);
    let part = (fitted / point.tps.value - 1.0).abs();
    part.is_finite()
        && match point.tps.contains(fitted) {
            Some(inside) => !inside && part > MISSED,
            None => part > MISSED_UNKNOWN,
        }
}

#[cfg(test)]
mod tests;
