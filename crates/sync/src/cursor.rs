//! A shared cursor that goes round an array for ever and is claimed in batches (the hand of the
//! clock sweep).
//!
//! The hand and the number of complete passes are one endless 64-bit position. Position modulo size
//! is the hand, and position divided by size is the number of complete passes. So the two cannot
//! disagree, and the wrap needs no lock. A batch that spans the end counts its pass, and each place
//! is claimed exactly once a pass.
//!
//! A core visits the places of its claims through a [`Walk`] of its own. What must hold:
//!
//! 1. One core uses a walk, and its code does not suspend within a call. So the walk needs no lock:
//!    its words are atomics only so that misuse visits a place twice and does nothing worse.
//! 2. A place belongs to at most one walk at a time. A walk that has kept the rest of a batch until
//!    the hand comes round again gives the rest up ([`Walk::expire`]). Those places are then
//!    visited by the core that claims them next.

use crate::atomic::{AtomicU64, AtomicUsize, Ordering};
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
    /// The endless position behind the claim.
    end: u64,
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
        Claim {
            next: (start % self.size) as usize,
            left: self.batch as usize,
            size: self.size as usize,
            end: start + self.batch,
        }
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

/// The rest of the batch that one core walks.
#[derive(Debug)]
pub struct Walk {
    next: AtomicUsize,
    left: AtomicUsize,
    end: AtomicU64,
}

impl Default for Walk {
    fn default() -> Self {
        Self { next: AtomicUsize::new(0), left: AtomicUsize::new(0), end: AtomicU64::new(0) }
    }
}

impl Walk {
    /// The next place of this core: the next one of its batch, or the first one of a new batch.
    #[inline]
    pub fn next(&self, cursor: &BatchCursor) -> usize {
        // Relaxed, here and below: one core alone uses the walk.
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return self.begin(cursor);
        }
        let place = self.next.load(Ordering::Relaxed);
        let next = if place + 1 == cursor.size as usize { 0 } else { place + 1 };
        self.next.store(next, Ordering::Relaxed);
        self.left.store(left - 1, Ordering::Relaxed);
        place
    }

    fn begin(&self, cursor: &BatchCursor) -> usize {
        let mut claim = cursor.claim();
        let place = claim.next().expect("a batch has a place");
        self.next.store(claim.next, Ordering::Relaxed);
        self.left.store(claim.left, Ordering::Relaxed);
        self.end.store(claim.end, Ordering::Relaxed);
        place
    }

    /// Gives the rest of the batch up if the hand has gone on by half the array since the batch was
    /// claimed. Returns the number of places given up. Reads the hand, which other cores write, if
    /// there is a rest.
    pub fn expire(&self, cursor: &BatchCursor) -> usize {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 || cursor.total() - self.end.load(Ordering::Relaxed) < cursor.size / 2 {
            return 0;
        }
        self.left.store(0, Ordering::Relaxed);
        left
    }
}

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

    #[test]
    fn a_walk_visits_the_places_of_its_claims_in_order() {
        for (size, batch) in [(1, 1), (7, 3), (64, 64), (10, 99)] {
            let (cursor, walk) = (BatchCursor::new(size, batch), Walk::default());
            let visited: Vec<usize> = (0..500).map(|_| walk.next(&cursor)).collect();
            assert!(visited.iter().enumerate().all(|(at, &place)| place == at % size), "{size} {batch}");
            assert_eq!(cursor.total(), 500_u64.div_ceil(cursor.batch() as u64) * cursor.batch() as u64);
        }
    }

    #[test]
    fn a_walk_gives_up_its_rest_once_the_hand_is_half_the_array_ahead() {
        let cursor = BatchCursor::new(100, 10);
        let (walk, other) = (Walk::default(), Walk::default());
        assert_eq!(walk.expire(&cursor), 0, "it has no batch");
        assert_eq!((walk.next(&cursor), walk.next(&cursor)), (0, 1));
        (0..40).for_each(|_| _ = other.next(&cursor));
        assert_eq!(walk.expire(&cursor), 0);
        assert_eq!(walk.next(&cursor), 2);
        assert_eq!(other.next(&cursor), 50);
        assert_eq!(walk.expire(&cursor), 7);
        assert_eq!(walk.next(&cursor), 60, "a new batch");
        assert_eq!(walk.expire(&cursor), 0);
    }
}
