//! Simulated rounds for the tests of statistics.

use crate::client::Random;
use crate::load::Protocol;
use crate::record::{Interval, Point, Round};

/// Noise that is the same in every run of a test.
pub(crate) struct Noisy(Random);

impl Noisy {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed, 0))
    }

    /// A normal value with mean 0 and standard deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let (one, other) = (1.0 - self.0.unit(), self.0.unit());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
    }
}

/// A round of a second with a throughput and no other observation.
pub(crate) fn round(pass: u32, tps: f64) -> Round {
    Round { pass, at: f64::from(pass), elapsed: 1.0, tps, unstarted: Some(0), ..Round::default() }
}

/// A point with a round in each pass.
pub(crate) fn point(arm: &str, clients: usize, tps: &[f64]) -> Point {
    Point {
        arm: arm.into(),
        workload: "select-only".into(),
        protocol: Protocol::Prepared,
        clients,
        tps: Interval::alone(super::median(tps)),
        ratio: None,
        rounds: (0..).zip(tps).map(|(pass, tps)| round(pass, *tps)).collect(),
        checks: Vec::new(),
    }
}
