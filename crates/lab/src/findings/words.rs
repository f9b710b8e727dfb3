//! Figures in sentences.

pub(super) use crate::report::figures::{clients, list};

/// A number as one reads it: `12,345`, `123`, `4.57`.
pub(super) fn number(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |digits| ("-", digits));
    let grouped: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    format!("{sign}{}", grouped.join(","))
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // Half a percent is not nothing, and 99.7% not all.
    if (percent > 0.0 && percent < 1.0) || (percent > 99.0 && percent < 100.0) {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.0}%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_grouped() {
        let seen = [0.0, 4.567, 9.999, 12.3, 999.6, 12_345.0, 1_234_567.0, -4_321.0].map(number);
        assert_eq!(seen, ["0.00", "4.57", "10.00", "12", "1,000", "12,345", "1,234,567", "-4,321"]);
        assert_eq!([0.0, 0.004, 0.71, 0.997, 1.0].map(percent), ["0%", "0.4%", "71%", "99.7%", "100%"]);
        let items: Vec<String> = ["1", "2", "4"].map(String::from).into();
        assert_eq!(
            [list(&items[..0]), list(&items[..1]), list(&items[..2]), list(&items)],
            ["", "1", "1 and 2", "1, 2 and 4"]
        );
    }
}
