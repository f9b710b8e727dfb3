//! A sweep's numbers of clients or threads, from the command line's text.

/// More connections than any one machine opens.
const MOST: usize = 1_000_000;

/// Parses an option's `1..256` (doubling, the end included), `1,8,64`, or both mixed: `1..16,100`.
/// The steps come out in order, each once. A step less than a quarter below the end of its range
/// gives way to the end.
///
/// # Errors
/// The text's fault, and the expected form.
pub fn steps(option: &str, text: &str) -> Result<Vec<usize>, String> {
    let wrong = |why: String| format!("{option} {text}: {why}; write 1..256, or 1,8,64");
    let mut steps = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => steps.push(number(part).map_err(wrong)?),
            Some((from, to)) => {
                let (from, to) = (number(from).map_err(wrong)?, number(to).map_err(wrong)?);
                if from > to {
                    return Err(wrong(format!("{from} is more than {to}")));
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

fn number(part: &str) -> Result<usize, String> {
    match part.trim().parse() {
        Ok(0) => Err("begin at 1, not at 0".into()),
        Ok(number) if number <= MOST => Ok(number),
        Ok(number) => Err(format!("{number} is more than {MOST}")),
        Err(_) => Err(format!("'{}' is no number", part.trim())),
    }
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
            assert_eq!(steps("--clients", text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for (text, why) in [
            ("", "'' is no number"),
            ("1..x", "'x' is no number"),
            ("0..8", "--clients 0..8: begin at 1, not at 0"),
            ("8..1", "8 is more than 1"),
            ("1..9999999", "9999999 is more than 1000000"),
            ("1...4", "'.4' is no number"),
        ] {
            let said = steps("--clients", text).unwrap_err();
            assert!(said.contains(why) && said.ends_with("write 1..256, or 1,8,64"), "{said}");
        }
    }

    proptest! {
        #[test]
        fn a_range_goes_from_its_beginning_to_its_end_in_even_steps(from in 1usize..2000, more in 0usize..5000) {
            let to = from + more;
            let steps = steps("--clients", &format!("{from}..{to}")).unwrap();
            prop_assert_eq!((steps[0], steps[steps.len() - 1]), (from, to));
            for pair in steps.windows(2) {
                prop_assert!(pair[0] < pair[1] && pair[1] <= pair[0] * 5 / 2 + 1);
            }
        }
    }
}
