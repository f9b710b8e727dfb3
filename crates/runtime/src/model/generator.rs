//! The random numbers of a simulation: one generator, from which every choice is drawn.

use std::cell::Cell;

/// A splitmix64 generator.
#[derive(Debug)]
pub(super) struct Generator(Cell<u64>);

impl Generator {
    /// The generator of this seed.
    pub(super) fn new(seed: u64) -> Generator {
        Generator(Cell::new(seed))
    }

    /// The next random number.
    pub(super) fn next(&self) -> u64 {
        let next = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A random number from `least` to `most`.
    pub(super) fn between(&self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }
}
