//! sysbench's distributions of row numbers, as sysbench 1.0 defines them.

use super::Random;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// All values are equally likely.
    Uniform,
    /// The default: 75 of 100 draws go to a hundredth of the range, in its middle.
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
    /// The distribution of this name. The error lists the names.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "uniform" => Ok(Self::Uniform),
            "special" => Ok(Self::Special),
            _ => Err(format!("there is no distribution '{name}': use uniform or special")),
        }
    }

    /// The next value from `low` to `high`.
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
