//! How numbers are written, in every output alike. What is no number is a dash.

use super::Interval;
use crate::stats::{Verdict, verdict};

/// In place of a number that isn't there.
pub(crate) const NONE: &str = "–";

/// Three significant digits, whole from 100 on: transactions a second, milliseconds, counts for each transaction.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if !size.is_finite() => return NONE.into(),
        size if size >= 99.95 || size == 0.0 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    if value.abs() >= 1e15 { format!("{value:.2e}") } else { format!("{value:.digits$}") }
}

/// As [`number`], where there may be none.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map_or(NONE.into(), number)
}

/// A number that may be very small, such as a coefficient.
pub(crate) fn small(value: f64) -> String {
    match value.abs() {
        size if size.is_finite() && size != 0.0 && size < 0.001 => format!("{value:.1e}"),
        _ => number(value),
    }
}

/// So many clients.
pub(crate) fn clients(count: usize) -> String {
    if count == 1 { "1 client".into() } else { format!("{count} clients") }
}

/// `1`, `1 and 2`, `1, 2 and 4`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// A share of 1 as a percentage.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        size if !size.is_finite() => NONE.into(),
        size if size < 9.95 && size != 0.0 => format!("{percent:.1}%"),
        size if size < 1e9 => format!("{percent:.0}%"),
        _ => format!("{percent:.1e}%"),
    }
}

/// How far the bounds are from the value, at most, as a share of it; empty where no bounds are known.
pub(crate) fn spread(of: &Interval) -> String {
    let far = of.bounds().map(|(low, high)| (of.value - low).max(high - of.value) / of.value.abs());
    far.filter(|far| far.is_finite()).map_or(String::new(), |far| format!("±{}", wide(far)))
}

/// A share as a percentage; what is far beyond the whole is only said to be so.
pub(crate) fn wide(share: f64) -> String {
    if share < 10.0 { percent(share) } else { ">999%".into() }
}

/// A ratio to the first arm; with two digits behind the point, and "no difference" inside the noise.
pub(crate) fn ratio(of: &Interval) -> String {
    match verdict(of) {
        Verdict::None => "no difference".into(),
        _ => factor(of.value),
    }
}

/// A factor, with two digits behind the point from 0.1 to 100.
pub(crate) fn factor(value: f64) -> String {
    if (0.095..99.995).contains(&value) { format!("{value:.2}") } else { number(value) }
}

/// A value with its bounds in brackets, written by `with`.
pub(crate) fn bounded(of: &Interval, with: fn(f64) -> String) -> String {
    let value = with(of.value);
    match of.bounds() {
        Some((low, high)) => format!("{value} ({} to {})", with(low), with(high)),
        None => value,
    }
}

/// What stands at an axis: at most five characters for sizes that occur.
pub(crate) fn short(value: f64) -> String {
    let trimmed = |value: f64| {
        let text = format!("{value:.3}");
        let text = if value.abs() >= 100.0 { format!("{value:.0}") } else { text };
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => text,
        }
    };
    match value.abs() {
        size if !size.is_finite() => NONE.into(),
        size if size >= 1e12 || (size < 1e-3 && size > 0.0) => format!("{value:e}"),
        size if size >= 1e9 => format!("{}G", trimmed(value / 1e9)),
        size if size >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        size if size >= 1e3 => format!("{}k", trimmed(value / 1e3)),
        _ => trimmed(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits_and_dashes_stand_for_none() {
        let all = [0.0, 0.1234, 1.0, 9.996, 99.96, 190_030.4, f64::NAN, f64::INFINITY, 1e300];
        let texts: Vec<_> = all.into_iter().map(number).collect();
        assert_eq!(texts, ["0", "0.123", "1.00", "10.0", "100", "190030", "–", "–", "1.00e300"]);
        assert_eq!([0.0, 0.0123, 0.5, 1.0, f64::NAN].map(percent), ["0%", "1.2%", "50%", "100%", "–"]);
        assert_eq!([0.00002, 0.02, 0.0].map(small), ["2.0e-5", "0.020", "0"]);
        assert_eq!([1500.0, 200_000.0, 2.5e6, 0.05, 0.0].map(short), ["1.5k", "200k", "2.5M", "0.05", "0"]);
    }

    #[test]
    fn a_ratio_inside_the_noise_is_called_none() {
        let of = |value, low, high| ratio(&Interval { value, low, high });
        assert_eq!(of(1.02, 0.97, 1.05), "no difference");
        assert_eq!(of(1.02, 1.01, 1.05), "1.02");
        assert_eq!(ratio(&Interval::alone(0.5)), "0.50");
        assert_eq!(ratio(&Interval::alone(f64::INFINITY)), "–");
        assert_eq!(spread(&Interval { value: 100.0, low: 98.0, high: 101.0 }), "±2.0%");
        assert_eq!(spread(&Interval::alone(3.0)), "");
    }
}
