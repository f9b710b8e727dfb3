//! sysbench's distributions of row numbers, as sysbench 1.0 defines them.

use clap::ValueEnum;

use super::Random;

/// How row numbers are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Default, ValueEnum)]
pub enum Distribution {
    /// All values are equally likely
    Uniform,
    /// 75 of 100 draws go to a hundredth of the range, in its middle
    #[default]
    Special,
}

/// Number of uniform values whose mean is an ordinary value of [`Distribution::Special`]
/// (`--rand-spec-iter`).
const ITERATIONS: u32 = 12;

/// Share of the range that is special (`--rand-spec-pct`).
const SHARE: f64 = 0.01;

/// Share of the draws that are ordinary (100 less `--rand-spec-res`).
const ORDINARY: f64 = 0.25;

impl Distribution {
    pub fn draw(self, low: i64, high: i64, random: &mut Random) -> i64 {
        if self == Self::Uniform {
            return random.between(low, high);
        }
        // One draw decides: below `distance` it is an ordinary value, above a special one.
        let (uniform, distance) = (random.unit(), (high - low) as f64);
        if uniform * distance / ORDINARY < distance {
            let mean = (0..ITERATIONS).map(|_| random.unit()).sum::<f64>() / f64::from(ITERATIONS);
            return low + (mean * distance) as i64;
        }
        // The draw's position among all values becomes its position in the middle part.
        let special = distance * SHARE;
        low + (uniform * (special + 1.0) + (distance - special) / 2.0) as i64
    }
}
