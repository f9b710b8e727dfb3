//! Numbers as short texts.

/// A count or a rate: `0.5`, `12`, `12,345`.
pub(crate) fn count(value: f64) -> String {
    if value < 9.95 && value.fract() != 0.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes: `512 B`, `1.5 KiB`, `64 MiB`.
pub(crate) fn bytes(value: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled >= 1023.5 && unit + 1 < units.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && scaled < 9.95);
    format!("{scaled:.digits$} {}", units[unit])
}

/// Seconds: `0.35 ms`, `12 ms`, `1.2 s`, `5 min`, `3 h`, `2 d`.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        ..0.00995 => format!("{:.2} ms", seconds.max(0.0) * 1000.0),
        ..0.9995 => format!("{:.0} ms", seconds * 1000.0),
        ..99.95 => format!("{seconds:.1} s"),
        ..6000.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.0} h", seconds / 3600.0),
        _ => format!("{:.0} d", seconds / 86_400.0),
    }
}

/// A share of 1 as a whole percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_few_digits_and_a_unit() {
        assert_eq!([0.0, 0.5, 9.96, 999.6, 1_234_567.0].map(count), ["0", "0.5", "10", "1,000", "1,234,567"]);
        assert_eq!(
            [0.0, 1023.0, 1536.0, 6.4e7, 1e30].map(bytes)[..4],
            ["0 B", "1023 B", "1.5 KiB", "61 MiB"]
        );
        let times = [0.000_35, 0.012, 1.24, 99.97, 7200.0, 1e6].map(time);
        assert_eq!(times, ["0.35 ms", "12 ms", "1.2 s", "2 min", "2 h", "12 d"]);
    }
}
