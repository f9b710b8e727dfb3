//! Randomness: a fast generator for each core, and the machine's own.

use std::cell::Cell;
use std::io;

use sync::core_local;

use crate::os;

core_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// A fast random number, not for secrets: splitmix64, seeded for each core by the machine.
pub fn u64() -> u64 {
    STATE.with(|state| {
        let mut at = state.get();
        if at == 0 {
            let mut seed = [0; 8];
            fill(&mut seed).expect("the machine gives randomness");
            at = u64::from_le_bytes(seed) | 1;
        }
        at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(at);
        let mut mixed = at;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

/// Fills with the machine's randomness: for secrets.
///
/// # Errors
/// Where the machine gives none.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    os::random::fill(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_and_bytes_are_filled() {
        assert_ne!(u64(), u64());
        let mut bytes = [0; 64];
        fill(&mut bytes).unwrap();
        assert_ne!(bytes, [0; 64]);
    }
}
