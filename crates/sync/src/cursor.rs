//! A shared cursor that goes round an array for ever and is claimed in batches (the hand of the
//! clock sweep).
//!
//! The hand and the number of complete passes are one endless 64-bit position. Position modulo size
//! is the hand, and position divided by size is the number of complete passes. So the two cannot
//! disagree, and the wrap needs no lock. A batch that spans the end counts its pass, and each place
//! is claimed exactly once a pass.

use crate::atomic::{AtomicU64, Ordering};
use crate::{CachePadded, assert_apart};

/// Where the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Next place to be claimed.
    pub hand: usize,
    /// How often the whole array has been claimed.
    pub passes: u64,
}

/// Places claimed by one caller, in order, wrapping at the end of the array.
#[derive(Debug, Clone)]
pub struct Claim {
    next: usize,
    left: usize,
    size: usize,
}

/// The cursor: `size` places, claimed `batch` at a time.
#[derive(Debug)]
pub struct BatchCursor {
    /// Each claim writes it, so it lies apart from the sizes, which every search reads, and from
    /// the fields of the struct around the cursor.
    position: CachePadded<AtomicU64>,
    size: u64,
    batch: u64,
}

assert_apart!(BatchCursor: position from size, batch);

impl BatchCursor {
    /// A cursor at place 0 of `size` places; a batch never exceeds the array.
    pub fn new(size: usize, batch: usize) -> Self {
        assert!(size > 0, "a cursor needs places to go round");
        let size = size as u64;
        Self { position: CachePadded::new(AtomicU64::new(0)), size, batch: (batch as u64).clamp(1, size) }
    }

    /// Claims the next batch for the caller alone.
    pub fn claim(&self) -> Claim {
        // Relaxed: the claim is the number itself; what lies at the places has its own latches.
        let start = self.position.fetch_add(self.batch, Ordering::Relaxed);
        Claim { next: (start % self.size) as usize, left: self.batch as usize, size: self.size as usize }
    }

    /// Hand and complete passes, consistent with each other.
    pub fn position(&self) -> Position {
        // Relaxed: one load of one word.
        let position = self.position.load(Ordering::Relaxed);
        Position { hand: (position % self.size) as usize, passes: position / self.size }
    }

    /// The endless count of places claimed so far (`passes * size + hand`).
    pub fn total(&self) -> u64 {
        // Relaxed: one load of one word.
        self.position.load(Ordering::Relaxed)
    }

    /// Places in a batch.
    pub fn batch(&self) -> usize {
        self.batch as usize
    }
}

impl Iterator for Claim {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let place = self.next;
        self.next = if place + 1 == self.size { 0 } else { place + 1 };
        Some(place)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Claim {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_place_once_a_pass_and_passes_counted() {
        for (size, batch) in [(1, 1), (7, 3), (64, 64), (10, 99), (1000, 64)] {
            let cursor = BatchCursor::new(size, batch);
            let mut seen = vec![0u64; size];
            let mut claimed = 0u64;
            for _ in 0..500 {
                for place in cursor.claim() {
                    seen[place] += 1;
                    claimed += 1;
                }
                let position = cursor.position();
                assert_eq!(position.passes * size as u64 + position.hand as u64, claimed);
                let (low, high) = (seen.iter().min().unwrap(), seen.iter().max().unwrap());
                assert!(high - low <= 1, "size {size} batch {batch}: {low}..{high}");
                assert_eq!(*low, position.passes);
            }
        }
    }
}
