//! Long numbers to decimal digits and back, in pieces with a safe point after each.
//!
//! The library converts a number in one call whose time grows with the square of its length:
//! 147,000 digits take 80 ms.

use num_bigint::BigUint;
use runtime::work;

use super::LONG_DIGITS;
use crate::error::SqlError;

/// Digits that one call of the library converts.
const PIECE: usize = 2000;
const ZEROS: [u8; PIECE] = [b'0'; PIECE];

/// The decimal digits of a number. Yields, but leaves an interrupt to the next safe point.
pub(crate) fn to_digits(number: &BigUint) -> Vec<u8> {
    // A digit takes more than three bits.
    if number.bits() <= 3 * LONG_DIGITS {
        return number.to_str_radix(10).into_bytes();
    }
    let base = BigUint::from(10u32).pow(PIECE as u32);
    let (mut rest, mut pieces) = (number.clone(), Vec::new());
    while rest >= base {
        let quotient = &rest / &base;
        pieces.push((rest - &quotient * &base).to_str_radix(10));
        work::yield_after(product_work(&quotient, &base));
        rest = quotient;
    }
    let mut digits = rest.to_str_radix(10).into_bytes();
    for piece in pieces.iter().rev() {
        digits.extend_from_slice(&ZEROS[piece.len()..]);
        digits.extend_from_slice(piece.as_bytes());
    }
    digits
}

/// The number that decimal digits stand for; None when a byte is no digit.
pub(crate) fn from_digits(digits: &[u8]) -> Result<Option<BigUint>, SqlError> {
    if digits.is_empty() {
        return Ok(Some(BigUint::ZERO));
    }
    // The pieces start with the least significant. Each round joins two neighbours.
    let Some(mut pieces) = digits
        .rchunks(PIECE)
        .map(|piece| BigUint::parse_bytes(piece, 10).filter(|_| piece[0].is_ascii_digit()))
        .collect::<Option<Vec<BigUint>>>()
    else {
        return Ok(None);
    };
    let mut base = BigUint::from(10u32).pow(PIECE as u32);
    while pieces.len() > 1 {
        let mut joined = Vec::with_capacity(pieces.len().div_ceil(2));
        let mut rest = pieces.into_iter();
        while let Some(low) = rest.next() {
            let Some(high) = rest.next() else {
                joined.push(low);
                break;
            };
            crate::work::tick(product_work(&high, &base))?;
            joined.push(high * &base + low);
        }
        pieces = joined;
        if pieces.len() > 1 {
            crate::work::tick(product_work(&base, &base))?;
            base = &base * &base;
        }
    }
    Ok(pieces.pop())
}

/// The work of a product in the unit of safe points: a byte for each product of two words.
pub(super) fn product_work(left: &BigUint, right: &BigUint) -> usize {
    let words = |number: &BigUint| (number.bits() / 64 + 1) as usize;
    words(left).saturating_mul(words(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_become_their_number_and_come_back() {
        for length in [1, 1999, 2000, 2001, 4000, 5000, 6001, 20_000] {
            for text in ["9".repeat(length), format!("1{}", "0".repeat(length - 1)), "1203".repeat(length)] {
                let number = from_digits(text.as_bytes()).unwrap().unwrap();
                assert_eq!(number, BigUint::parse_bytes(text.as_bytes(), 10).unwrap());
                assert_eq!(to_digits(&number), text.as_bytes());
            }
        }
        assert_eq!(from_digits(b"").unwrap(), Some(BigUint::ZERO));
        assert_eq!(from_digits(b"12a").unwrap(), None);
        assert_eq!(from_digits(b"+12").unwrap(), None);
    }
}
