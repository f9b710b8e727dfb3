//! The format of numbers and names, the same in every output and every finding. A value that is no
//! number becomes a dash.

use indicatif::HumanCount;

use crate::record::{Interval, Verdict};

/// Stands for a missing number.
pub(crate) const NONE: &str = "–";

/// Three significant digits, whole from 100 on: transactions a second, milliseconds, counts for
/// each transaction.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 99.95 || size == 0.0 => return whole(value),
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size.is_nan() => return NONE.into(),
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// A number rounded to a whole, with a comma between thousands: `12,345`.
pub(crate) fn whole(value: f64) -> String {
    let sign = if value <= -0.5 { "-" } else { "" };
    match value.abs() {
        size if !size.is_finite() => NONE.into(),
        size if size >= 1e15 => format!("{value:.2e}"),
        size => format!("{sign}{}", HumanCount(size.round() as u64)),
    }
}

/// A text on one line, without characters that move a cursor or change colours.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
}

/// As [`number`]; [`NONE`] for `None`.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map_or(NONE.into(), number)
}

/// A number that may be very small, such as a coefficient.
pub(crate) fn small(value: f64) -> String {
    match value.abs() {
        size if size.is_finite() && size != 0.0 && size < 0.01 => format!("{value:.1e}"),
        _ => number(value),
    }
}

/// A number of clients in words.
pub(crate) fn clients(count: usize) -> String {
    if count == 1 { "1 client".into() } else { format!("{} clients", whole(count as f64)) }
}

/// `1 client`, `8 clients`, `1, 8 and 64 clients`.
pub(crate) fn counted(counts: &[usize]) -> String {
    match counts {
        [one] => clients(*one),
        several => {
            let mut sorted = several.to_vec();
            sorted.sort_unstable();
            format!("{} clients", list(&sorted.iter().map(usize::to_string).collect::<Vec<_>>()))
        }
    }
}

/// `1`, `1 and 2`, `1, 2 and 4`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// A share of 1 as a percentage. Nearly all is not rounded to all.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        size if !size.is_finite() => NONE.into(),
        size if (size < 9.95 && size != 0.0) || (99.0 < size && size < 99.95) => format!("{percent:.1}%"),
        size if size < 1e9 => format!("{percent:.0}%"),
        _ => format!("{percent:.1e}%"),
    }
}

/// The distance of the farther bound from the value, as a share of the value; empty where the
/// bounds are unknown.
pub fn spread(of: &Interval) -> String {
    let far = of.bounds().map(|(low, high)| (of.value - low).max(high - of.value) / of.value.abs());
    far.filter(|far| far.is_finite()).map_or(String::new(), |far| format!("±{}", wide(far)))
}

/// A share as a percentage; from 10 on, `>999%`.
pub(crate) fn wide(share: f64) -> String {
    if share < 10.0 { percent(share) } else { ">999%".into() }
}

/// A ratio with its interval. It is "no difference" inside the noise, and has a mark where the
/// noise is unknown.
pub fn ratio(of: &Interval) -> String {
    match of.verdict() {
        Verdict::None => "no difference".into(),
        Verdict::Unknown if of.value.is_finite() => format!("{}, unproven", factor(of.value)),
        _ => bounded(of, factor),
    }
}

/// A factor, with two decimals from 0.1 to 100.
pub(crate) fn factor(value: f64) -> String {
    if (0.095..99.995).contains(&value) { format!("{value:.2}") } else { number(value) }
}

/// A value with its bounds in brackets, written by `with`; without an upper bound, it names the
/// lower one.
pub(crate) fn bounded(of: &Interval, with: fn(f64) -> String) -> String {
    let value = with(of.value);
    match of.bounds() {
        Some((low, high)) => format!("{value} ({} to {})", with(low), with(high)),
        None if of.low.is_finite() => format!("{value} ({} or more)", with(of.low)),
        None => value,
    }
}

/// A label of an axis: three significant digits, with a unit for thousands and beyond.
pub(crate) fn short(value: f64) -> String {
    const UNITS: [(f64, &str); 3] = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (size, unit) = UNITS.into_iter().find(|(size, _)| value.abs() >= *size).unwrap_or((1.0, ""));
    match format!("{:.2e}", value / size).parse::<f64>() {
        Ok(rounded) if rounded.is_finite() => format!("{rounded}{unit}"),
        _ => NONE.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits_and_dashes_stand_for_none() {
        let all = [0.0, 0.1234, 1.0, 9.996, 99.96, 190_030.4, f64::NAN, f64::INFINITY, 1e300];
        let texts: Vec<_> = all.into_iter().map(number).collect();
        assert_eq!(texts, ["0", "0.123", "1.00", "10.0", "100", "190,030", "–", "–", "1.00e300"]);
        assert_eq!(
            [999.6, 1_234_567.0, -4_321.0, -432.0, 31.4].map(whole),
            ["1,000", "1,234,567", "-4,321", "-432", "31"]
        );
        assert_eq!(
            [0.0, 0.0123, 0.5, 0.997, 1.0, f64::NAN].map(percent),
            ["0%", "1.2%", "50%", "99.7%", "100%", "–"]
        );
        assert_eq!([0.00002, 0.02, 0.0].map(small), ["2.0e-5", "0.020", "0"]);
        let items: Vec<String> = ["1", "2", "4"].map(String::from).into();
        let lists = [list(&items[..0]), list(&items[..1]), list(&items[..2]), list(&items)];
        assert_eq!(lists, ["", "1", "1 and 2", "1, 2 and 4"]);
        assert_eq!([1, 64, 1_000].map(clients), ["1 client", "64 clients", "1,000 clients"]);
        assert_eq!(plain("a\nb\u{1b}[2J"), "a b [2J");
        assert_eq!([1500.0, 200_000.0, 2.5e6, 0.05, 0.0].map(short), ["1.5k", "200k", "2.5M", "0.05", "0"]);
    }

    #[test]
    fn a_ratio_inside_the_noise_is_called_none() {
        let of = |value, low, high| ratio(&Interval { value, low, high });
        assert_eq!(of(1.02, 0.97, 1.05), "no difference");
        assert_eq!(of(1.02, 1.01, 1.05), "1.02 (1.01 to 1.05)");
        assert_eq!(ratio(&Interval::alone(0.5)), "0.50, unproven");
        assert_eq!(ratio(&Interval::alone(f64::INFINITY)), "–");
        assert_eq!(spread(&Interval { value: 100.0, low: 98.0, high: 101.0 }), "±2.0%");
        assert_eq!(spread(&Interval::alone(3.0)), "");
        let bounded = |low, high| bounded(&Interval { value: 167.0, low, high }, whole);
        assert_eq!(bounded(120.0, 210.0), "167 (120 to 210)");
        // The second bound as the stored form reads it back.
        assert_eq!([f64::INFINITY, f64::NAN].map(|high| bounded(120.0, high)), ["167 (120 or more)"; 2]);
        assert_eq!(bounded(f64::NAN, f64::NAN), "167");
    }
}
