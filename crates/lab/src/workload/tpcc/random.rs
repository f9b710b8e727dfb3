//! TPC-C's random values: NURand (2.1.6), random strings (4.3.2.2) and last names (4.3.2.3).

use crate::client::Random;

/// NURand's constants C (2.1.6): any would do. Those of last names must differ between load and run
/// by 65 to 119, but not by 96 or 112 (2.1.6.1).
const C_LAST_LOAD: i64 = 157;
const C_LAST_RUN: i64 = 230;
const C_CUSTOMER: i64 = 259;
const C_ITEM: i64 = 7911;

const _: () = {
    let delta = (C_LAST_RUN - C_LAST_LOAD).abs();
    assert!(delta >= 65 && delta <= 119 && delta != 96 && delta != 112);
};

fn nurand(random: &mut Random, a: i64, c: i64, low: i64, high: i64) -> i64 {
    let bits = random.between(0, a) | random.between(low, high);
    (bits + c) % (high - low + 1) + low
}

pub(super) fn customer(random: &mut Random) -> i64 {
    nurand(random, 1023, C_CUSTOMER, 1, super::CUSTOMERS)
}

pub(super) fn item(random: &mut Random) -> i64 {
    nurand(random, 8191, C_ITEM, 1, super::ITEMS)
}

/// The number of a last name, among the initial data.
pub(super) fn loaded_name(random: &mut Random) -> i64 {
    nurand(random, 255, C_LAST_LOAD, 0, 999)
}

/// The number of a last name for a transaction's inputs.
pub(super) fn asked_name(random: &mut Random) -> i64 {
    nurand(random, 255, C_LAST_RUN, 0, 999)
}

/// Letters and digits, from `low` to `high` of them: an a-string.
pub(super) fn letters(random: &mut Random, low: i64, high: i64, to: &mut String) {
    let count = random.between(low, high);
    characters(random, b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", count, to);
}

/// This many digits: an n-string.
pub(super) fn digits(random: &mut Random, count: i64, to: &mut String) {
    characters(random, b"0123456789", count, to);
}

fn characters(random: &mut Random, set: &[u8], count: i64, to: &mut String) {
    to.extend((0..count).map(|_| char::from(set[random.between(0, set.len() as i64 - 1) as usize])));
}

/// I_DATA and S_DATA (4.3.3.1): 26 to 50 letters, with ORIGINAL somewhere in one of ten.
pub(super) fn goods(random: &mut Random, to: &mut String) {
    const MARK: &str = "ORIGINAL";
    let start = to.len();
    letters(random, 26, 50, to);
    if random.between(1, 10) == 1 {
        let at = random.between(start as i64, (to.len() - MARK.len()) as i64) as usize;
        to.replace_range(at..at + MARK.len(), MARK);
    }
}

/// The last name of a number from 0 to 999: a syllable for each of its three digits.
pub(super) fn last_name(number: i64, to: &mut String) {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    to.extend([number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut String)) -> String {
        let mut text = String::new();
        write(&mut text);
        text
    }

    #[test]
    fn names_and_texts_are_those_of_the_specification() {
        // The example of 4.3.2.3.
        let name = |number| text(|to| last_name(number, to));
        assert_eq!(name(371), "PRICALLYOUGHT");
        assert_eq!([name(0), name(777)], ["BARBARBAR", "CALLYCALLYCALLY"]);
        let mut random = Random::new(1, 1);
        let mut marked = 0;
        for _ in 0..10_000 {
            let text = text(|to| goods(&mut random, to));
            assert!((26..=50).contains(&text.len()));
            marked += u32::from(text.contains("ORIGINAL"));
        }
        assert!((900..=1100).contains(&marked), "{marked}");
        let digits = text(|to| digits(&mut random, 16, to));
        assert!(digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_digit()));
    }

    #[test]
    fn some_customers_and_items_are_asked_for_far_more_often() {
        let mut random = Random::new(2, 1);
        let mut seen = vec![0_u32; 3001];
        for _ in 0..300_000 {
            let number = customer(&mut random);
            assert!((1..=3000).contains(&number));
            seen[number as usize] += 1;
        }
        // Numbers with an OR of random bits in them favour those with many bits set by a large
        // factor.
        let most = *seen[1..].iter().max().unwrap();
        let least = *seen[1..].iter().min().unwrap();
        assert!(most > 5 * least.max(1), "{most} {least}");
        assert!((0..100_000).all(|_| (1..=100_000).contains(&item(&mut random))));
        assert!((0..10_000).all(|_| (0..1000).contains(&asked_name(&mut random))));
    }
}
