//! sysbench's distributions of row numbers, as sysbench 1.0 defines them (zipfian: 1.1).

use super::Random;

/// A distribution over a range, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Each value alike.
    Uniform,
    /// The mean of so many uniform values (`--rand-spec-iter`).
    Gaussian {
        /// How many.
        iterations: u32,
    },
    /// Some values in the middle are drawn much more often than the others.
    Special {
        /// Uniform values that each of the others is the mean of (`--rand-spec-iter`).
        iterations: u32,
        /// Share of the range that is special, in percent (`--rand-spec-pct`).
        share: u32,
        /// Draws that go there, in percent (`--rand-spec-res`).
        draws: u32,
    },
    /// Low values most, h of the values getting 1 - h of the draws (`--rand-pareto-h`).
    Pareto {
        /// h, between 0 and 1.
        h: f64,
    },
    /// The k-th value in proportion to 1 / k^exponent (`--rand-zipfian-exp`).
    Zipfian {
        /// The exponent, at least 0.
        exponent: f64,
    },
}

impl Distribution {
    /// The default of sysbench 1.0.
    pub const DEFAULT: Self = Self::Special { iterations: 12, share: 1, draws: 75 };

    /// The distribution of this name with sysbench's default parameters. The error names those there are.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "uniform" => Ok(Self::Uniform),
            "gaussian" => Ok(Self::Gaussian { iterations: 12 }),
            "special" => Ok(Self::DEFAULT),
            "pareto" => Ok(Self::Pareto { h: 0.2 }),
            "zipfian" => Ok(Self::Zipfian { exponent: 0.8 }),
            _ => Err(format!(
                "there is no distribution '{name}': use uniform, gaussian, special, pareto or zipfian"
            )),
        }
    }

    /// sysbench's options for it: names and values.
    pub fn options(self) -> Vec<(&'static str, String)> {
        let kind = |name: &str| ("rand-type", name.to_owned());
        match self {
            Self::Uniform => vec![kind("uniform")],
            Self::Gaussian { iterations } => {
                vec![kind("gaussian"), ("rand-spec-iter", iterations.to_string())]
            }
            Self::Special { iterations, share, draws } => vec![
                kind("special"),
                ("rand-spec-iter", iterations.to_string()),
                ("rand-spec-pct", share.to_string()),
                ("rand-spec-res", draws.to_string()),
            ],
            Self::Pareto { h } => vec![kind("pareto"), ("rand-pareto-h", h.to_string())],
            Self::Zipfian { exponent } => vec![kind("zipfian"), ("rand-zipfian-exp", exponent.to_string())],
        }
    }

    /// Over a range, ready to draw from.
    pub fn over(self, low: i64, high: i64) -> Keys {
        let zipf = match self {
            Self::Zipfian { exponent } => Zipf::new((high - low + 1) as f64, exponent),
            _ => Zipf::default(),
        };
        Keys { distribution: self, low, high, zipf }
    }
}

/// A distribution over a range.
#[derive(Debug, Clone, Copy)]
pub struct Keys {
    distribution: Distribution,
    low: i64,
    high: i64,
    zipf: Zipf,
}

impl Keys {
    /// The next value.
    pub fn draw(&self, random: &mut Random) -> i64 {
        let Self { low, high, .. } = *self;
        let (distance, values) = ((high - low) as f64, (high - low + 1) as f64);
        match self.distribution {
            Distribution::Uniform => random.between(low, high),
            Distribution::Gaussian { iterations } => low + (mean(random, iterations) * values) as i64,
            Distribution::Special { iterations, share, draws } => {
                // One draw decides: below `distance` it is an ordinary value, above a special one.
                let uniform = random.unit();
                if uniform * distance * 100.0 / (100.0 - f64::from(draws)) < distance {
                    return low + (mean(random, iterations) * distance) as i64;
                }
                // The same draw's place among all becomes its place in the middle part.
                let special = distance * f64::from(share) / 100.0;
                low + (uniform * (special + 1.0) + (distance - special) / 2.0) as i64
            }
            Distribution::Pareto { h } => low + (values * random.unit().powf(h.ln() / (1.0 - h).ln())) as i64,
            Distribution::Zipfian { .. } => low + self.zipf.draw(random) - 1,
        }
    }
}

/// The mean of so many uniform values.
fn mean(random: &mut Random, iterations: u32) -> f64 {
    (0..iterations).map(|_| random.unit()).sum::<f64>() / f64::from(iterations)
}

/// Zipf's distribution for any exponent: rejection-inversion, W. Hörmann and G. Derflinger, "Rejection-inversion to
/// generate variates from monotone discrete distributions", ACM TOMACS 6.3 (1996), with the integral of the hat function
/// written so that it has a limit at exponent 1.
#[derive(Debug, Clone, Copy, Default)]
struct Zipf {
    values: f64,
    exponent: f64,
    /// The hat's integral at both ends.
    from: f64,
    to: f64,
    /// Below this distance no test is needed.
    shortcut: f64,
}

impl Zipf {
    fn new(values: f64, exponent: f64) -> Self {
        let mut zipf = Self { values, exponent, ..Self::default() };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(values + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.hat(2.0));
        zipf
    }

    fn draw(&self, random: &mut Random) -> i64 {
        loop {
            let area = self.to + random.unit() * (self.from - self.to);
            let point = self.inverse(area);
            let value = (point + 0.5).floor().clamp(1.0, self.values);
            if value - point <= self.shortcut || area >= self.integral(value + 0.5) - self.hat(value) {
                return value as i64;
            }
        }
    }

    fn hat(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// (x^(1 - exponent) - 1) / (1 - exponent); ln x at exponent 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        if power == 0.0 { log } else { power.exp_m1() / power * log }
    }

    fn inverse(&self, area: f64) -> f64 {
        // Rounding must not take it below -1, the integral's limit at 0.
        let t = (area * (1.0 - self.exponent)).max(-1.0);
        let log = if t == 0.0 { area } else { t.ln_1p() / t * area };
        log.exp()
    }
}
