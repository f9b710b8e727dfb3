//! Random numbers of one thread or client. Each has a generator of its own, seeded from the run's
//! seed and the number of its stream. So a run can be repeated, and no thread waits for another
//! (finding H11 about a load driver).
//!
//! The distributions are those of the programs whose workloads they drive, by their definitions:
//! pgbench's here, sysbench's in [`sysbench`], YCSB's in [`ycsb`]. Only the generator underneath
//! and the way to draw from Zipf's distribution differ.

pub mod sysbench;
pub mod ycsb;

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution as _, Zipf};

/// The initial value of [`fnv1a`], unless the caller seeds it.
pub(crate) const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// 64-bit FNV-1a of the bytes: the hash of pgbench's `hash_fnv1a` and of YCSB's keys.
pub(crate) fn fnv1a(begin: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(begin, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The random numbers of one stream.
#[derive(Debug, Clone)]
pub struct Random(SmallRng);

impl Random {
    /// The generator of stream `stream` of a run.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(SmallRng::seed_from_u64(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A new generator, seeded from this one.
    pub fn fork(&mut self) -> Self {
        Self(SmallRng::seed_from_u64(self.bits()))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A whole number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high)
    }

    /// A number from 0 to 1, 1 excluded.
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// pgbench's random_zipfian: draws the k-th value of the range in proportion to 1 / k^exponent.
    pub(crate) fn zipfian(&mut self, low: i64, high: i64, exponent: f64) -> i64 {
        let places = Zipf::new((high - low + 1) as f64, exponent).expect("a range has a value");
        low + places.sample(&mut self.0) as i64 - 1
    }
}

/// A client's own random numbers, so that a repeated transaction draws the same.
#[derive(Debug, Default)]
pub(crate) struct Repeatable {
    now: Option<Random>,
    /// At the transaction's beginning.
    saved: Option<Random>,
}

impl Repeatable {
    /// Begins a transaction: a new one, or the last one `again` with the same numbers. The first
    /// one forks the numbers from the thread's.
    pub fn begin(&mut self, thread: &mut Random, again: bool) -> &mut Random {
        if again {
            self.now.clone_from(&self.saved);
        } else {
            self.saved = Some(self.now.get_or_insert_with(|| thread.fork()).clone());
        }
        self.get()
    }

    /// The numbers of a transaction that has begun.
    pub fn get(&mut self) -> &mut Random {
        self.now.as_mut().expect("a transaction has begun")
    }
}

#[cfg(test)]
mod tests;
