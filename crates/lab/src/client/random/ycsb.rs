//! YCSB's distributions of record numbers, as its core package defines them.

use super::{FNV_BASIS, Random, fnv1a};

/// Skew of YCSB's zipfian distributions.
pub(crate) const THETA: f64 = 0.99;

/// Zipf's distribution over records 0 to `records - 1`, 0 the most frequent. The method is that of
/// J. Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994, which
/// YCSB's ZipfianGenerator uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zipfian {
    records: u64,
    /// Sum of 1 / i^THETA over all records.
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// Takes time in proportion to the first 10,000 records; the others cost none.
    pub fn new(records: u64) -> Self {
        let mut zipfian = Self { records: records.max(1), zeta: zeta(records.max(1)), eta: 0.0 };
        zipfian.set_eta();
        zipfian
    }

    pub fn grow(&mut self, by: u64) {
        self.zeta += tail(self.records, self.records + by);
        self.records += by;
        self.set_eta();
    }

    fn set_eta(&mut self) {
        let records = self.records as f64;
        self.eta = (1.0 - (2.0 / records).powf(1.0 - THETA)) / (1.0 - zeta(2) / self.zeta);
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        let uniform = random.unit();
        let scaled = uniform * self.zeta;
        if scaled < 1.0 || self.records == 1 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1;
        }
        let place = (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        ((self.records as f64 * place) as u64).min(self.records - 1)
    }
}

/// YCSB's ScrambledZipfianGenerator: popular records lie anywhere. It draws a rank among 10,000
/// million and hashes it onto the records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scrambled {
    ranks: Zipfian,
    records: u64,
}

impl Scrambled {
    pub fn new(records: u64) -> Self {
        Self { ranks: Zipfian::new(10_000_000_000), records: records.max(1) }
    }

    pub fn draw(&self, random: &mut Random) -> u64 {
        hash(self.ranks.draw(random)) % self.records
    }
}

/// YCSB's Utils.hash: 64-bit FNV-1a over a number's bytes, lowest first, as a positive number.
pub fn hash(number: u64) -> u64 {
    (fnv1a(FNV_BASIS, &number.to_le_bytes()) as i64).unsigned_abs()
}

/// Zeta is a sum up to here, and an integral from here on.
const SUMMED: u64 = 10_000;

fn zeta(records: u64) -> f64 {
    let summed = (1..=records.min(SUMMED)).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
    summed + if records > SUMMED { tail(SUMMED, records) } else { 0.0 }
}

/// Sum of 1 / i^THETA for i from `from + 1` to `to`: the integral from middle to middle, exact to
/// 1e-9 from `SUMMED` on.
fn tail(from: u64, to: u64) -> f64 {
    if from < SUMMED {
        let upto = to.min(SUMMED);
        let summed = (from + 1..=upto).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
        return summed + if to > SUMMED { tail(SUMMED, to) } else { 0.0 };
    }
    let power = 1.0 - THETA;
    ((to as f64 + 0.5).powf(power) - (from as f64 + 0.5).powf(power)) / power
}
