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

/// A short text, on the stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; N], len: 0 }
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).expect("only whole characters are put in")
    }

    /// Adds as much of a text as there is room for.
    pub(super) fn push(&mut self, text: &str) {
        let mut taken = text.len().min(N - self.len);
        while !text.is_char_boundary(taken) {
            taken -= 1;
        }
        self.bytes[self.len..self.len + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.len += taken;
    }

    pub(super) fn push_int(&mut self, value: i64) {
        self.push(itoa::Buffer::new().format(value));
    }

    /// A text of `low` to `high` characters from this set.
    fn of(random: &mut Random, set: &[u8], low: usize, high: usize) -> Self {
        let mut text = Self::new();
        text.len = random.between(low as i64, high as i64) as usize;
        for byte in &mut text.bytes[..text.len] {
            *byte = set[random.between(0, set.len() as i64 - 1) as usize];
        }
        text
    }
}

/// Letters and digits, from `low` to `high` of them: an a-string.
pub(super) fn letters<const N: usize>(random: &mut Random, low: usize, high: usize) -> Text<N> {
    Text::of(random, b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", low, high)
}

/// This many digits: an n-string.
pub(super) fn digits<const N: usize>(random: &mut Random, count: usize) -> Text<N> {
    Text::of(random, b"0123456789", count, count)
}

/// I_DATA and S_DATA (4.3.3.1): 26 to 50 letters, with ORIGINAL somewhere in one of ten.
pub(super) fn goods(random: &mut Random) -> Text<50> {
    const MARK: &[u8] = b"ORIGINAL";
    let mut text: Text<50> = letters(random, 26, 50);
    if random.between(1, 10) == 1 {
        let at = random.between(0, (text.len - MARK.len()) as i64) as usize;
        text.bytes[at..at + MARK.len()].copy_from_slice(MARK);
    }
    text
}

/// The last name of a number from 0 to 999: a syllable for each of its three digits.
pub(super) fn last_name(number: i64) -> Text<16> {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    let mut name = Text::new();
    for digit in [number / 100, number / 10 % 10, number % 10] {
        name.push(SYLLABLES[digit as usize]);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_those_of_the_specification() {
        // The example of 4.3.2.3.
        assert_eq!(last_name(371).as_str(), "PRICALLYOUGHT");
        assert_eq!((last_name(0).as_str(), last_name(777).as_str()), ("BARBARBAR", "CALLYCALLYCALLY"));
        let mut random = Random::new(1, 1);
        let mut marked = 0;
        for _ in 0..10_000 {
            let text = goods(&mut random);
            assert!((26..=50).contains(&text.as_str().len()));
            marked += u32::from(text.as_str().contains("ORIGINAL"));
        }
        assert!((900..=1100).contains(&marked), "{marked}");
        let digits: Text<16> = digits(&mut random, 16);
        assert!(digits.as_str().len() == 16 && digits.as_str().bytes().all(|byte| byte.is_ascii_digit()));
        let mut cut: Text<4> = Text::new();
        cut.push("abcdef");
        assert_eq!(cut.as_str(), "abcd");
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
