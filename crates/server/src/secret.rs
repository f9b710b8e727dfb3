//! The secret that a cancel request must show. A client can so cancel its own session's statement
//! and no other.

use crate::scram::random_bytes;

/// Bytes of a secret from protocol 3.2 on.
const LONG: usize = 32;
/// Bytes of a secret before protocol 3.2.
const SHORT: usize = 4;

/// The secret of a session.
#[derive(Clone, Copy)]
pub struct Secret {
    bytes: [u8; LONG],
    length: usize,
}

impl Secret {
    /// A new secret, as long as protocol 3.`minor` allows.
    pub fn new(minor: u16) -> Self {
        Self { bytes: random_bytes(), length: if minor < 2 { SHORT } else { LONG } }
    }

    /// The bytes that are sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Whether a request shows this secret. Takes the same time wherever the bytes differ.
    pub fn is(&self, shown: &[u8]) -> bool {
        let differences = self.bytes().iter().zip(shown).fold(0, |all, (one, other)| all | (one ^ other));
        shown.len() == self.length && differences == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_as_long_as_the_protocol_allows_and_only_the_whole_of_it_counts() {
        for (minor, length) in [(0, 4), (1, 4), (2, 32)] {
            let secret = Secret::new(minor);
            let shown = secret.bytes().to_vec();
            assert_eq!(shown.len(), length);
            assert!(secret.is(&shown) && !secret.is(&[]) && !secret.is(&shown[..length - 1]));
            assert!(!secret.is(&[&shown[..], &[0]].concat()));
            for at in 0..length {
                let mut other = shown.clone();
                other[at] ^= 1;
                assert!(!secret.is(&other), "byte {at}");
            }
        }
    }
}
