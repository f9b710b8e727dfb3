//! YCSB's distributions of record numbers, as its core package defines them.

use super::{FNV_BASIS, Random, fnv1a};

/// Skew of YCSB's zipfian distributions.
pub(crate) const THETA: f64 = 0.99;

/// Number of ranks of [`scrambled`], ten thousand million.
const RANKS: u64 = 10_000_000_000;

/// YCSB's ZipfianGenerator: Zipf's distribution over records 0 to `records - 1`, 0 the most
/// frequent. YCSB itself draws by an approximation (J. Gray et al., "Quickly Generating
/// Billion-Record Synthetic Databases", SIGMOD 1994), which is exact for the first two.
pub(crate) fn zipfian(records: u64, random: &mut Random) -> u64 {
    random.zipfian(0, records.max(1) as i64 - 1, THETA) as u64
}

/// YCSB's ScrambledZipfianGenerator: popular records lie anywhere. It draws a rank and hashes it
/// onto the records.
pub(crate) fn scrambled(records: u64, random: &mut Random) -> u64 {
    hash(zipfian(RANKS, random)) % records.max(1)
}

/// YCSB's Utils.hash: 64-bit FNV-1a over a number's bytes, lowest first, as a positive number.
pub fn hash(number: u64) -> u64 {
    (fnv1a(FNV_BASIS, &number.to_le_bytes()) as i64).unsigned_abs()
}
