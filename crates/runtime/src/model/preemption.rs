//! How long an access takes, and where a thread loses its processor. The seed draws the rates for
//! a run, and then each loss. What must hold:
//!
//! 1. Every run has losses of both kinds: at accesses, and at preemption points.
//! 2. The host pays one switch for a loss, however long, and the spins of those that wait for the
//!    thread. So a loss may be long enough for others to change what the thread reads.

use super::generator::Generator;

/// Most that an access without a loss takes, in nanoseconds.
const ACCESS_MOST: u64 = 16;
/// One access in so many is slow: the thread loses its processor for a moment. Where many accesses
/// are slow, a run hits short windows between two of them. Where few are, it hits long ones.
const SLOW_ONE_IN: [u64; 4] = [16, 64, 256, 2048];
/// Most that the slow accesses take together, in nanoseconds for each access.
const SLOW_EACH: u64 = 16;
/// At one preemption point in so many the thread loses its processor for up to [`LOSS_MOST`].
const LOSS_ONE_IN: [u64; 4] = [32, 64, 128, 256];
/// Longest loss at a preemption point, in nanoseconds: others change many rows meanwhile.
const LOSS_MOST: u64 = 100_000;

/// The rates of a run.
#[derive(Debug)]
pub(super) struct Preemption {
    slow_one_in: u64,
    loss_one_in: u64,
}

impl Preemption {
    /// Draws the rates of a run.
    pub(super) fn draw(generator: &Generator) -> Preemption {
        let one_of = |rates: [u64; 4]| rates[generator.between(0, rates.len() as u64 - 1) as usize];
        Preemption { slow_one_in: one_of(SLOW_ONE_IN), loss_one_in: one_of(LOSS_ONE_IN) }
    }

    /// Nanoseconds that the next access takes.
    pub(super) fn access(&self, generator: &Generator) -> u64 {
        let drawn = generator.next();
        let is_slow = drawn.is_multiple_of(self.slow_one_in);
        let most = if is_slow { SLOW_EACH * self.slow_one_in } else { ACCESS_MOST };
        1 + (drawn >> 32) % most
    }

    /// Nanoseconds for which the thread loses its processor at a preemption point: mostly 0.
    pub(super) fn point(&self, generator: &Generator) -> u64 {
        let drawn = generator.next();
        if drawn.is_multiple_of(self.loss_one_in) { 1 + (drawn >> 32) % LOSS_MOST } else { 0 }
    }
}
