//! Axes of plots: the position of a value, and the labels.

use crate::figures;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Equal differences take equal room.
    Linear,
    /// Each doubling takes as much room.
    Logarithmic,
}

/// One axis of a plot.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// Values of lines, with their labels.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis from 0 (or from the least value, if that is negative) to the greatest of these
    /// values.
    pub fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = span(values).unwrap_or((0.0, 1.0));
        let (low, high) = (low.min(0.0), if high > 0.0 { high } else { 1.0 });
        let step = nice_step((high - low) / 5.0);
        let count = ((high - low) / step).ceil().clamp(1.0, 12.0) as usize;
        let first = (low / step).floor();
        let ticks = (0..=count).map(|at| (first + at as f64) * step);
        let ticks: Vec<_> = ticks.map(|at| (at, figures::short(at))).collect();
        let high = ticks.last().map_or(high, |(at, _)| at.max(high));
        Self { scale: Scale::Linear, low: first * step, high, ticks }
    }

    /// A logarithmic axis over those of these values that are above zero.
    pub fn logarithmic(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = span(values.filter(|value| *value > 0.0)).unwrap_or((1.0, 10.0));
        let steps = |steps: &'static [f64]| {
            let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
            decades.flat_map(|ten| steps.iter().map(move |step| step * 10f64.powi(ten))).collect::<Vec<_>>()
        };
        let all = steps(&[1.0, 2.0, 5.0]);
        let below = all.iter().copied().rfind(|tick| *tick <= low).unwrap_or(low);
        let above = all.iter().copied().find(|tick| *tick >= high && *tick > below).unwrap_or(high * 2.0);
        let marked = if (above / below).log10() > 2.5 { steps(&[1.0]) } else { all };
        let within = marked.into_iter().filter(|tick| (below..=above).contains(tick));
        let mut ticks: Vec<_> = within.map(|at| (at, figures::short(at))).collect();
        let every = ticks.len().div_ceil(9);
        ticks = ticks.into_iter().step_by(every.max(1)).collect();
        Self { scale: Scale::Logarithmic, low: below, high: above, ticks }
    }

    /// An axis over numbers of clients (rising), with a tick at each.
    pub fn clients(clients: &[usize]) -> Self {
        let low = clients.first().copied().unwrap_or(1).max(1) as f64;
        let high = clients.last().copied().unwrap_or(1).max(1) as f64;
        let scale = if high / low > 8.0 { Scale::Logarithmic } else { Scale::Linear };
        let ticks = clients.iter().map(|clients| (*clients as f64, clients.to_string())).collect();
        let (low, high) = if low == high { (low * 0.5, low * 1.5) } else { (low, high) };
        Self { scale, low, high, ticks }
    }

    /// An axis from 0 to 1 without labels.
    pub fn unmarked() -> Self {
        Self { scale: Scale::Linear, low: 0.0, high: 1.0, ticks: Vec::new() }
    }

    /// An axis over this many seconds.
    pub fn seconds(count: usize) -> Self {
        let high = count.max(2) as f64 - 1.0;
        let step = nice_step(high / 5.0).max(1.0);
        let ticks = (0..=(high / step) as usize).map(|at| at as f64 * step);
        let ticks = ticks.map(|at| (at, figures::short(at))).collect();
        Self { scale: Scale::Linear, low: 0.0, high, ticks }
    }

    /// The position of a value, from 0 at the low end to 1 at the high one; `None` where it has
    /// none.
    pub fn place(&self, value: f64) -> Option<f64> {
        let at = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Logarithmic => return None,
        };
        (at.is_finite() && (-0.001..=1.001).contains(&at)).then(|| at.clamp(0.0, 1.0))
    }

    /// As [`Axis::place`], with values beyond an end moved to that end.
    pub fn place_within(&self, value: f64) -> Option<f64> {
        let least = if self.scale == Scale::Linear { f64::NEG_INFINITY } else { 0.0 };
        if value.is_nan() || value < least {
            return None;
        }
        self.place(value.clamp(self.low, self.high))
    }

    /// Values from end to end, evenly spread over the axis.
    pub fn samples(&self, count: usize) -> impl Iterator<Item = f64> + '_ {
        (0..=count).map(move |at| {
            let share = at as f64 / count as f64;
            match self.scale {
                Scale::Linear => self.low + (self.high - self.low) * share,
                Scale::Logarithmic => self.low * (self.high / self.low).powf(share),
            }
        })
    }
}

/// Values above this are no measurements, and would leave no room for the others.
const GREATEST: f64 = 1e15;

fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let plausible =
        values.filter(|value| value.abs() < GREATEST && (*value == 0.0 || value.abs() > 1.0 / GREATEST));
    plausible.fold(None, |span, value| match span {
        None => Some((value, value)),
        Some((low, high)) => Some((f64::min(low, value), f64::max(high, value))),
    })
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn nice_step(least: f64) -> f64 {
    let ten = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * ten >= least * 0.999);
    step.unwrap_or(10.0) * ten
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers_and_enclose_the_values() {
        assert_eq!(
            labels(&Axis::from_zero([233_307.0, 16_445.0].into_iter())),
            ["0", "50k", "100k", "150k", "200k", "250k"]
        );
        assert_eq!(labels(&Axis::from_zero([0.93].into_iter())), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(
            labels(&Axis::logarithmic([0.07, 3.0].into_iter())),
            ["0.05", "0.1", "0.2", "0.5", "1", "2", "5"]
        );
        assert_eq!(labels(&Axis::logarithmic([0.07, 900.0].into_iter())), ["0.1", "1", "10", "100", "1k"]);
        assert_eq!(labels(&Axis::seconds(10)), ["0", "2", "4", "6", "8"]);
    }

    #[test]
    fn values_off_the_axis_have_no_place() {
        let axis = Axis::logarithmic([1.0, 100.0].into_iter());
        assert_eq!(axis.place(10.0).map(|at| (at * 100.0).round()), Some(50.0));
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(axis.place(value), None, "{value}");
        }
        for axis in
            [Axis::from_zero(std::iter::empty()), Axis::clients(&[]), Axis::seconds(0), Axis::clients(&[8])]
        {
            assert!(axis.samples(4).all(|value| axis.place(value).is_some()), "{axis:?}");
        }
    }
}
