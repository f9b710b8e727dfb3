//! The fixed loop: arithmetic that takes the same time whenever the machine is the same. The lab
//! times it before each round. Its times show whether the machine changed over a run, or other
//! programs shared it.

use std::hint::black_box;
use std::time::Instant;

/// Steps of the loop: some 32 ms on a CPU of 3 GHz, long enough for others' time slices to show.
const STEPS: u64 = 16_000_000;

/// Runs the fixed loop once; returns its time in milliseconds.
pub fn fixed_loop() -> f64 {
    let began = Instant::now();
    black_box(arithmetic(black_box(STEPS)));
    began.elapsed().as_secs_f64() * 1e3
}

/// Each step waits for the one before, so that neither wider nor reordered execution makes a
/// difference. (xorshift)
fn arithmetic(steps: u64) -> u64 {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..steps {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_does_its_steps() {
        assert_ne!(arithmetic(1_000), arithmetic(1_001));
        // No machine does 16 million dependent steps in less than a millisecond: the compiler kept
        // the loop.
        assert!(fixed_loop() > 1.0);
    }
}
