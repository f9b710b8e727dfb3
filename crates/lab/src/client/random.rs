//! Random numbers of one thread: a generator of its own, seeded from the run's seed and the thread's number, so that a run
//! can be repeated and no thread waits for another (what H11 found in a load driver).

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// A thread's generator.
#[derive(Debug)]
pub struct Random(SmallRng);

impl Random {
    /// The generator of stream `stream` of a run.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(SmallRng::seed_from_u64(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A whole number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high)
    }

    /// A number from 0 to 1, 1 excluded.
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }
}
