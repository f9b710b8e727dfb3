//! Thresholds of a comparison of two runs, as `--fail-if` takes them. A point crosses `tps < 0.95`
//! if the second run has less than 0.95 times the first one's throughput.
//!
//! What must hold: a ratio inside the noise crosses no threshold.

use super::interval::{estimate_positive, independent_ratio};
use crate::figures;
use crate::record::{Interval, Point, Round, Verdict};

type Figure = (&'static str, fn(&Round) -> f64);

/// Figures that a threshold can name; all but throughput are latencies.
const FIGURES: [Figure; 8] = [
    ("tps", |round| round.tps),
    ("mean", |round| round.latency.mean),
    ("p50", |round| round.latency.p50),
    ("p90", |round| round.latency.p90),
    ("p95", |round| round.latency.p95),
    ("p99", |round| round.latency.p99),
    ("p999", |round| round.latency.p999),
    ("max", |round| round.latency.max),
];

/// A threshold for the second run's ratio to the first.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    figure: Figure,
    below: bool,
    ratio: f64,
}

impl Limit {
    /// Parses `tps < 0.95` or `p99 > 1.2`.
    ///
    /// # Errors
    /// Describes the form of a threshold.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names: Vec<&str> = FIGURES.iter().map(|figure| figure.0).collect();
        let wrong =
            || format!("write FIGURE < RATIO or FIGURE > RATIO, with a FIGURE of {}", names.join(", "));
        let (name, ratio) = text.split_once(['<', '>']).ok_or_else(wrong)?;
        let figure = FIGURES.into_iter().find(|figure| figure.0 == name.trim()).ok_or_else(wrong)?;
        let ratio = ratio.trim().parse().ok().filter(|ratio: &f64| ratio.is_finite() && *ratio > 0.0);
        Ok(Self { figure, below: text.contains('<'), ratio: ratio.ok_or_else(wrong)? })
    }

    /// The ratio of two points in words, where it crosses the threshold.
    ///
    /// # Errors
    /// Names the figure that a point lacks.
    pub(crate) fn crossed(&self, first: &Point, second: &Point) -> Result<Option<String>, String> {
        let (name, of) = self.figure;
        let figure = |point: &Point| match name {
            "tps" => point.tps,
            _ => estimate_positive(&point.rounds.iter().map(of).collect::<Vec<_>>()),
        };
        let ratio: Interval = independent_ratio(&figure(first), &figure(second));
        if !ratio.value.is_finite() {
            return Err(format!("{name} is missing in one of the runs"));
        }
        let beyond = if self.below { ratio.value < self.ratio } else { ratio.value > self.ratio };
        let sign = if self.below { '<' } else { '>' };
        Ok((beyond && ratio.verdict() != Verdict::None).then(|| {
            let ratio = figures::bounded(&ratio, figures::factor);
            format!("{name}, second / first: {ratio} {sign} {}", self.ratio)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::test_noise::point;

    /// A point whose five rounds have throughputs within this part of `value`, and the same figures
    /// as p99 and as the maximum.
    fn around(value: f64, part: f64) -> Point {
        let rounds = [-1.0, -0.5, 0.0, 0.5, 1.0].map(|off| value * (1.0 + part * off));
        let mut point = point("a", 8, &rounds);
        for round in &mut point.rounds {
            (round.latency.p99, round.latency.max) = (round.tps, round.tps);
        }
        point.tps = estimate_positive(&rounds);
        point
    }

    #[test]
    fn a_threshold_is_crossed_beyond_it_and_beyond_the_noise() {
        for (text, second, noise, crossed) in [
            ("tps < 0.95", 90.0, 0.01, true),
            ("tps<0.95", 96.0, 0.001, false),
            ("tps < 0.95", 90.0, 0.5, false),
            ("tps > 1.5", 160.0, 0.01, true),
            ("p99 > 1.2", 130.0, 0.01, true),
            ("p99 > 1.2", 110.0, 0.01, false),
            (" max < 0.5 ", 60.0, 0.01, false),
        ] {
            let limit = Limit::parse(text).unwrap();
            let found = limit.crossed(&around(100.0, noise), &around(second, noise)).unwrap();
            assert_eq!(found.is_some(), crossed, "{text} of {second}: {found:?}");
        }
        let single = Limit::parse("tps < 0.95").unwrap();
        let said = single.crossed(&point("a", 8, &[100.0]), &point("a", 8, &[90.0]));
        assert_eq!(
            said.unwrap().unwrap(),
            "tps, second / first: 0.90 < 0.95",
            "a single round has no noise to tell"
        );
    }

    #[test]
    fn a_wrong_threshold_is_answered_with_a_right_one() {
        for text in ["", "tps", "tps 0.95", "tpm < 0.9", "tps < x", "tps < -1", "tps < nan", "tps <= 0.9"] {
            let said = Limit::parse(text).unwrap_err();
            assert!(
                said.starts_with("write FIGURE < RATIO") && said.contains("tps, mean, p50"),
                "{text}: {said}"
            );
        }
    }
}
