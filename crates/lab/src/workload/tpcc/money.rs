//! Amounts as whole cents: read from and written for the server without rounding and without
//! allocation.

use crate::client::Params;

/// An amount from a server, in cents; `None` if it is none or finer than cents.
pub(super) fn cents(text: Option<&str>) -> Option<i64> {
    let text = text?;
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = match part.len() {
        0 => 0,
        1 => part.parse::<i64>().ok()? * 10,
        2 => part.parse().ok()?,
        _ => return None,
    };
    Some(sign * (whole.parse::<i64>().ok()? * 100 + part))
}

/// Adds an amount of cents, at least 0.
pub(super) fn push(params: &mut Params, cents: i64) {
    fixed(params, cents, 100, 2);
}

/// Adds ten-thousandths, as taxes and discounts are.
pub(super) fn push_rate(params: &mut Params, parts: i64) {
    fixed(params, parts, 10_000, 4);
}

fn fixed(params: &mut Params, value: i64, unit: i64, digits: usize) {
    params.number(format_args!("{}.{:0digits$}", value / unit, value % unit));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Param;

    #[test]
    fn amounts_are_exact_both_ways() {
        let read = ["0.00", "12.3", "7", "-10.05", "9999.99"].map(|text| cents(Some(text)));
        assert_eq!(read, [Some(0), Some(1230), Some(700), Some(-1005), Some(999_999)]);
        assert_eq!([None, Some("1.234"), Some("x"), Some("")].map(cents), [None; 4]);
        let mut params = Params::default();
        push(&mut params, 5);
        push(&mut params, 500_000);
        push_rate(&mut params, 123);
        let written: Vec<_> = params.iter().collect();
        assert_eq!(
            written,
            [Param::Verbatim(b"0.05"), Param::Verbatim(b"5000.00"), Param::Verbatim(b"0.0123")]
        );
    }
}
