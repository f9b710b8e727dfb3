//! Axes of plots: the position of a value, and the labels.

use crate::figures;

#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// The identity, or the logarithm: equal differences of it take equal room.
    scale: fn(f64) -> f64,
    low: f64,
    high: f64,
    /// Values of lines, with their labels.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    fn new(scale: fn(f64) -> f64, low: f64, high: f64, ticks: impl IntoIterator<Item = f64>) -> Self {
        let ticks = ticks.into_iter().map(|at| (at, figures::short(at))).collect();
        Self { scale, low, high, ticks }
    }

    /// An axis from 0 (or from the least value, if that is negative) to the greatest of these
    /// values.
    pub fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = span(values).unwrap_or((0.0, 1.0));
        let (low, high) = (low.min(0.0), if high > 0.0 { high } else { 1.0 });
        let step = nice_step((high - low) / 5.0);
        let count = ((high - low) / step).ceil().clamp(1.0, 12.0) as usize;
        let first = (low / step).floor();
        let ticks: Vec<f64> = (0..=count).map(|at| (first + at as f64) * step).collect();
        Self::new(|value| value, ticks[0], high.max(ticks[count]), ticks)
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
        Self::new(f64::ln, below, above, marked.into_iter().filter(|tick| (below..=above).contains(tick)))
    }

    /// A logarithmic axis over numbers of clients (rising), with a tick at each.
    pub fn clients(clients: &[usize]) -> Self {
        let low = clients.first().copied().unwrap_or(1).max(1) as f64;
        let high = clients.last().copied().unwrap_or(1).max(1) as f64;
        let (low, high) = if low == high { (low * 0.5, low * 1.5) } else { (low, high) };
        let ticks = clients.iter().map(|clients| (*clients as f64, clients.to_string())).collect();
        Self { scale: f64::ln, low, high, ticks }
    }

    /// The position of a value: 0 at the low end, 1 at the high one, outside of these beyond an
    /// end. `None` where it has none.
    pub fn position(&self, value: f64) -> Option<f64> {
        let (low, high) = ((self.scale)(self.low), (self.scale)(self.high));
        Some(((self.scale)(value) - low) / (high - low)).filter(|at| at.is_finite())
    }

    /// As [`Axis::position`]; `None` beyond an end, too.
    pub fn place(&self, value: f64) -> Option<f64> {
        // A value at an end may be rounded beyond it.
        self.position(value).filter(|at| (-0.001..=1.001).contains(at)).map(|at| at.clamp(0.0, 1.0))
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
    use crate::tests::golden_cases;

    #[test]
    fn ticks_are_round_numbers_and_enclose_the_values() {
        let axes = [
            ("from 0 to 233,307", Axis::from_zero([233_307.0, 16_445.0].into_iter())),
            ("from 0 to 0.93", Axis::from_zero([0.93].into_iter())),
            ("logarithmic, 0.07 to 3", Axis::logarithmic([0.07, 3.0].into_iter())),
            ("logarithmic, 0.07 to 900", Axis::logarithmic([0.07, 900.0].into_iter())),
            ("clients", Axis::clients(&[1, 8, 64])),
        ];
        let labels = |axis: Axis| axis.ticks.into_iter().map(|tick| tick.1).collect();
        golden_cases("html_ticks", axes.map(|(name, axis)| (name, labels(axis))));
    }

    #[test]
    fn values_off_the_axis_have_no_place() {
        let axis = Axis::logarithmic([1.0, 100.0].into_iter());
        assert_eq!(axis.place(10.0).map(|at| (at * 100.0).round()), Some(50.0));
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(axis.place(value), None, "{value}");
        }
        assert_eq!(axis.position(1e4), Some(2.0));
        for axis in [Axis::from_zero(std::iter::empty()), Axis::clients(&[]), Axis::clients(&[8])] {
            assert!(axis.place(1.0).is_some() || axis.place(8.0).is_some(), "{axis:?}");
        }
    }
}
