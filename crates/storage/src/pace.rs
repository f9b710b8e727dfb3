//! The pace of a core's page writer: how many frames it looks at in a round.
//!
//! After PostgreSQL's `BgBufferSync`. The writer knows how many frames its core has taken from the
//! reserve of free ones, since the reserve lacks them. It does not know how far the hand of the
//! sweep has to go for as many. So it keeps the density of the pool: frames looked at for each one
//! that came free or was written. It is an average over the last rounds. A pool of pages that are
//! much used has a high one. There a round of fixed length finds few dirty pages, and each of its
//! writes takes as long as a write of many.
//!
//! A function of counts, without a clock. What must hold: a round looks at `least` frames or more
//! if it finds too few in them, and at `most` at most.

/// Rounds over which the density is averaged, as in `BgBufferSync`.
const ROUNDS: f32 = 16.0;

/// The pace of one core's writer.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    least: usize,
    most: usize,
    density: f32,
}

impl Pace {
    /// The pace of a writer that looks at `least` to `most` frames a round.
    pub(crate) fn new(least: usize, most: usize) -> Pace {
        Pace { least, most: most.max(least), density: 1.0 }
    }

    /// Frames to look at in a round that wants so many.
    pub(crate) fn look_at(&self, wanted: usize) -> usize {
        ((wanted as f32 * self.density) as usize).clamp(self.least, self.most)
    }

    /// Takes a round into account that looked at frames and found so many to free or to write.
    pub(crate) fn after(&mut self, looked: usize, found: usize) {
        if looked > 0 {
            let density = looked as f32 / found.max(1) as f32;
            self.density += (density - self.density) / ROUNDS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::tests::Seeded;

    #[test]
    fn a_round_stays_within_its_bounds_whatever_came_before() {
        for seed in 1..200_u64 {
            let mut random = Seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let (least, most) = (1 + random.below(100), 1 + random.below(2000));
            let mut pace = Pace::new(least, most);
            for _ in 0..200 {
                let looked = random.below(3000);
                pace.after(looked, random.below(looked + 1));
                let frames = pace.look_at(random.below(300));
                assert!((least..=most.max(least)).contains(&frames), "seed {seed}: {frames}");
            }
        }
    }

    #[test]
    fn a_writer_of_a_steady_pool_finds_what_it_wants_in_one_round() {
        for density in [1, 3, 10, 25] {
            let mut pace = Pace::new(64, 10_000);
            for _ in 0..100 {
                let looked = pace.look_at(40);
                pace.after(looked, looked / density);
            }
            let found = pace.look_at(40) / density;
            let wanted = 40.max(64 / density);
            assert!((wanted - 2..=wanted + 4).contains(&found), "density {density}: {found}");
        }
    }

    #[test]
    fn one_round_without_a_find_does_not_move_the_pace_far() {
        let mut pace = Pace::new(64, 1024);
        (0..100).for_each(|_| pace.after(128, 64));
        pace.after(128, 0);
        assert!(pace.look_at(40) < 8 * 40 + 80, "{}", pace.look_at(40));
        (0..100).for_each(|_| pace.after(128, 64));
        assert!((78..=82).contains(&pace.look_at(40)), "{}", pace.look_at(40));
    }

    #[test]
    fn a_pool_without_a_free_page_is_walked_as_far_as_may_be() {
        let mut pace = Pace::new(64, 1024);
        (0..50).for_each(|_| pace.after(pace.clone().look_at(40), 0));
        assert_eq!(pace.look_at(40), 1024);
        // A round that looked at nothing says nothing.
        let before = pace.look_at(1);
        pace.after(0, 0);
        assert_eq!(pace.look_at(1), before);
    }
}
