//! A sweep's numbers of clients, from the command line's text.

/// More connections than any one machine opens.
const MOST: usize = 1_000_000;

/// Parses `1..256` (doubling, the end included), `1,8,64`, or both mixed: `1..16,100`. The steps
/// come out in order, each once. A step less than a quarter below the end of its range gives way to
/// the end.
///
/// # Errors
/// The text's fault, and the expected form.
pub fn steps(text: &str) -> Result<Vec<usize>, String> {
    let mut steps = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => steps.push(number(text, part)?),
            Some((from, to)) => {
                let (from, to) = (number(text, from)?, number(text, to)?);
                if from > to {
                    return Err(wrong(text, &format!("{from} is more than {to}")));
                }
                steps.push(from);
                let doubling = std::iter::successors(Some(1usize), |step| step.checked_mul(2));
                steps.extend(doubling.skip_while(|step| *step <= from).take_while(|step| step * 5 <= to * 4));
                steps.push(to);
            }
        }
    }
    steps.sort_unstable();
    steps.dedup();
    Ok(steps)
}

fn number(text: &str, part: &str) -> Result<usize, String> {
    match part.trim().parse() {
        Ok(0) => Err(wrong(text, "there is no load without clients")),
        Ok(number) if number <= MOST => Ok(number),
        Ok(number) => Err(wrong(text, &format!("{number} is more than {MOST}"))),
        Err(_) => Err(wrong(text, &format!("'{}' is no number", part.trim()))),
    }
}

fn wrong(text: &str, why: &str) -> String {
    format!("--clients {text}: {why}; write 1..256, or 1,8,64")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_double_and_end_where_they_end_and_lists_are_put_in_order() {
        for (text, expected) in [
            ("1..256", &[1, 2, 4, 8, 16, 32, 64, 128, 256][..]),
            ("3..40", &[3, 4, 8, 16, 32, 40]),
            // 32 and 36 are nearly the same.
            ("1..36", &[1, 2, 4, 8, 16, 36]),
            ("7..7", &[7]),
            ("64, 1,8,8", &[1, 8, 64]),
            ("1..4,100", &[1, 2, 4, 100]),
        ] {
            assert_eq!(steps(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for (text, why) in [
            ("", "'' is no number"),
            ("1..x", "'x' is no number"),
            ("0..8", "there is no load without clients"),
            ("8..1", "8 is more than 1"),
            ("1..9999999", "9999999 is more than 1000000"),
            ("1...4", "'.4' is no number"),
        ] {
            let said = steps(text).unwrap_err();
            assert!(said.contains(why) && said.ends_with("write 1..256, or 1,8,64"), "{said}");
        }
    }

    proptest! {
        #[test]
        fn a_range_goes_from_its_beginning_to_its_end_in_even_steps(from in 1usize..2000, more in 0usize..5000) {
            let to = from + more;
            let steps = steps(&format!("{from}..{to}")).unwrap();
            prop_assert_eq!((steps[0], steps[steps.len() - 1]), (from, to));
            for pair in steps.windows(2) {
                prop_assert!(pair[0] < pair[1] && pair[1] <= pair[0] * 5 / 2 + 1);
            }
        }
    }
}
