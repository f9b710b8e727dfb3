//! The clock sweep: the order in which frames are looked at.
//!
//! One hand goes round all frames for ever. A core claims a batch of consecutive frames with one
//! add on the shared hand and walks it alone. So the hand's cache line moves between cores once a
//! batch and not once a frame. What must hold:
//!
//! 1. At most one core visits a frame in a pass. The frame loses one usage count there, and is
//!    evicted only at zero.
//! 2. Hand and complete passes are consistent (one word, see `BatchCursor`).
//! 3. All cores together hold at most half the pool in unfinished batches. So no core walks frames
//!    that a core has claimed but not looked at yet.
//! 4. A core walks its batch without a lock: its fibers take turns, and none suspends within
//!    [`Sweep::next`].
//!
//! A core keeps the rest of its batch for its next search. Under light load that search may come
//! late, after other cores have moved the hand round. Such a rest expires: its frames keep their
//! usage count for one pass more, and belong to the cores that claim them next. A rest expires at
//! most [`BETWEEN`] after the hand is half the pool ahead. If the hand stands still, so does the
//! rest, and no frame is passed over. Until then its core may visit frames that another core has
//! claimed anew: 1 and 3 do not hold for such a rest.

use sync::atomic::{AtomicU64, Ordering};
use sync::{BatchCursor, PerCore, Position, Walk};

/// Nanoseconds between two looks of a core at whether its batch has expired. A look reads the hand,
/// which other cores write, so it does not come with each frame.
const BETWEEN: u64 = 10_000_000;

#[cfg(variants)]
mod hand;

/// Frames that each of `workers` workers claims at a time. The tiers are those of the published
/// work: a claim costs a transfer of the hand's line, which is dearest between NUMA nodes. `wanted`
/// replaces the tier. All claims together are at most half the pool.
pub(crate) fn batch_size(frames: usize, machine: Machine, workers: usize, wanted: Option<usize>) -> usize {
    let tier = match machine {
        Machine { nodes: 2.., .. } => 64,
        Machine { cores: 0..=4, .. } => 1,
        Machine { cores: 5..=8, .. } => 8,
        Machine { cores: 9..=16, .. } => 16,
        Machine { .. } => 32,
    };
    wanted.unwrap_or(tier).min(frames / (2 * workers.max(1))).max(1)
}

/// The part of the machine that a pool's cores run on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    pub(crate) nodes: usize,
    pub(crate) cores: usize,
}

/// The state of one core.
#[derive(Debug, Default)]
struct Core {
    walk: Walk,
    /// Time of the last look at whether the batch has expired.
    looked: AtomicU64,
}

/// The sweep of one pool.
#[derive(Debug)]
pub struct Sweep {
    cursor: BatchCursor,
    cores: PerCore<Core>,
    #[cfg(variants)]
    hand: Option<hand::Hand>,
}

impl Sweep {
    /// A sweep over `frames` frames by so many workers, which claim `batch` frames at a time.
    pub(crate) fn new(frames: usize, workers: usize, batch: usize) -> Sweep {
        Sweep {
            cursor: BatchCursor::new(frames, batch),
            cores: PerCore::new(workers, |_| Core::default()),
            #[cfg(variants)]
            hand: None,
        }
    }

    /// The sweep with the hand that this process runs on so many NUMA nodes.
    #[cfg(variants)]
    pub(crate) fn with_hand(mut self, frames: usize, nodes: usize, wanted: Option<usize>) -> Sweep {
        self.hand = hand::Hand::new(frames, self.cores.len(), nodes, wanted);
        self
    }

    /// The frame that `core` looks at next. Called on that core, at the time `now`.
    #[inline]
    pub fn next(&self, core: usize, now: u64) -> usize {
        #[cfg(variants)]
        if let Some(hand) = &self.hand {
            return hand.next(core);
        }
        let own = self.cores.get(core);
        // Relaxed: only this core uses the time.
        if now.wrapping_sub(own.looked.load(Ordering::Relaxed)) >= BETWEEN {
            // Relaxed: as above.
            own.looked.store(now, Ordering::Relaxed);
            own.walk.expire(&self.cursor);
        }
        own.walk.next(&self.cursor)
    }

    /// Frames that a core claims at a time.
    pub fn batch(&self) -> usize {
        #[cfg(variants)]
        if let Some(hand) = &self.hand {
            return hand.batch();
        }
        self.cursor.batch()
    }

    /// Counts an allocation on the line of the hand, as the variants do.
    #[cfg(variants)]
    pub(crate) fn allocated(&self) {
        if let Some(hand) = &self.hand {
            hand.allocated();
        }
    }

    /// Hand and complete passes.
    pub fn position(&self) -> Position {
        #[cfg(variants)]
        if let Some(hand) = &self.hand {
            return hand.position();
        }
        self.cursor.position()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use sync::SpinLock;

    use super::*;
    use crate::frame::{Frame, USAGE_MAX};

    /// A small seeded generator, so that a failure replays.
    pub(crate) struct Seeded(pub(crate) u64);

    impl Seeded {
        pub(crate) fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % bound as u64) as usize
        }
    }

    fn batch_of(frames: usize, nodes: usize, cores: usize, wanted: Option<usize>) -> usize {
        batch_size(frames, Machine { nodes, cores }, cores, wanted)
    }

    #[test]
    fn batches_leave_half_the_pool_unclaimed() {
        for (nodes, cores) in [(1, 1), (1, 2), (1, 3), (1, 8), (1, 9), (2, 64), (6, 384)] {
            for frames in [1, 2, 16, 100, 384, 1000, 100_000] {
                for wanted in [None, Some(1), Some(64), Some(1 << 20)] {
                    let batch = batch_of(frames, nodes, cores, wanted);
                    assert!(batch >= 1);
                    assert!(batch == 1 || batch * cores <= frames / 2, "{batch} x {cores} of {frames}");
                }
            }
        }
    }

    #[test]
    fn the_batch_follows_nodes_and_cores_as_published() {
        let tiers = [1, 4, 5, 8, 9, 16, 17, 384].map(|cores| batch_of(1 << 20, 1, cores, None));
        assert_eq!(tiers, [1, 1, 8, 8, 16, 16, 32, 32]);
        assert_eq!([2, 384].map(|cores| batch_of(1 << 20, 2, cores, None)), [64, 64]);
        assert_eq!(batch_of(1 << 20, 6, 384, Some(7)), 7, "a setting replaces the tier");
    }

    /// Cores take steps in a random order; the invariants are those of the published mechanism.
    #[test]
    fn each_frame_is_visited_once_a_pass_and_falls_only_at_zero() {
        for seed in 1..200u64 {
            let mut random = Seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let cores = 1 + random.below(6);
            let frames = 2 * cores + random.below(300);
            let wanted = [None, Some(1 + random.below(40))][random.below(2)];
            let sweep = Sweep::new(frames, cores, batch_of(frames, 1 + random.below(2), cores, wanted));
            let headers: Vec<Frame> = (0..frames).map(|_| Frame::new()).collect();
            let mut usage: Vec<u8> =
                (0..frames).map(|_| random.below(usize::from(USAGE_MAX) + 1) as u8).collect();
            headers.iter().zip(&usage).for_each(|(header, &usage)| header.set_usage(usage));
            let mut visits = vec![0u64; frames];
            for _ in 0..frames * 8 {
                let frame = sweep.next(random.below(cores), 0);
                visits[frame] += 1;
                let falls = !headers[frame].survives();
                assert_eq!(falls, usage[frame] == 0, "seed {seed}: falls exactly at zero");
                usage[frame] = usage[frame].saturating_sub(1);
            }
            let position = sweep.position();
            let held = (cores * sweep.batch()) as u64;
            let walked = (frames * 8) as u64;
            let claimed = position.passes * frames as u64 + position.hand as u64;
            assert!(claimed >= walked && claimed - walked <= held, "seed {seed}");
            // Batches that cores still hold may be a pass behind. No frame is visited more often
            // than it was claimed.
            let most = position.passes + 1;
            assert!(visits.iter().all(|&count| count <= most), "seed {seed}");
            let missing: u64 = visits.iter().map(|&count| position.passes.saturating_sub(count)).sum();
            assert!(missing <= held, "seed {seed}: {missing} visits missing, {held} frames can be held");
        }
    }

    #[test]
    fn a_page_survives_as_many_passes_as_its_usage_count() {
        let frame = Frame::new();
        (0..100).for_each(|_| frame.touch());
        let passes = (0..100).take_while(|_| frame.survives()).count();
        assert_eq!(passes, usize::from(USAGE_MAX));
    }

    #[test]
    fn an_old_batch_expires_once_the_hand_is_half_the_pool_ahead() {
        let sweep = Sweep::new(1000, 2, 64);
        assert_eq!(sweep.next(0, 1), 0);
        assert_eq!((0..64).map(|_| sweep.next(1, 1)).last(), Some(127));
        assert_eq!(sweep.next(0, BETWEEN), 1, "the hand is near");
        (0..500).for_each(|_| _ = sweep.next(1, 1));
        assert_eq!(sweep.next(0, BETWEEN + 1), 2, "looked a moment ago");
        assert_eq!(sweep.next(0, 2 * BETWEEN), 640, "a new batch");
    }

    #[test]
    fn cores_at_once_visit_each_frame_once() {
        // Batches of 16 leave at least half the frames unclaimed. Four passes use up the batches.
        let (cores, per_core) = (sync::stress::threads(), 256);
        let frames = 64 * cores;
        let sweep = Sweep::new(frames, cores, 16);
        let visits: Vec<SpinLock<u32>> = (0..frames).map(|_| SpinLock::new(&"test", 0)).collect();
        std::thread::scope(|scope| {
            for core in 0..cores {
                let (sweep, visits) = (&sweep, &visits);
                scope.spawn(move || (0..per_core).for_each(|_| *visits[sweep.next(core, 0)].lock() += 1));
            }
        });
        assert!(visits.iter().all(|count| *count.lock() == (cores * per_core / frames) as u32));
        assert_eq!(sweep.position().passes, (cores * per_core / frames) as u64);
    }
}
