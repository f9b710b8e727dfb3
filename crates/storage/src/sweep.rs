//! The clock sweep: the order in which frames are looked at.
//!
//! One hand goes round all frames for ever. A core claims a batch of consecutive frames with one
//! add on the shared hand and walks it alone. So the hand's cache line moves between cores once a
//! batch and not once a frame. What must hold:
//!
//! 1. Exactly one core visits each frame in a pass. The frame loses one usage count there, and is
//!    evicted only at zero.
//! 2. Hand and complete passes are consistent (one word, see `BatchCursor`).
//! 3. All cores together hold at most half the pool in unfinished batches. So no core walks frames
//!    that a core has claimed but not looked at yet.
//!
//! A core keeps the rest of its batch for its next search. Under light load it looks at those
//! frames late: they keep their usage count longer, by at most the time until that core's next
//! search.

use sync::{BatchCursor, Claim, PerCore, Position, SpinLock};

/// Frames a core claims at a time. More cores take longer batches, since each claim costs a
/// transfer of the hand's line. The tiers are those of the published work; `cores * batch` is
/// capped at half the pool.
pub(crate) fn batch_size(frames: usize, cores: usize, wanted: Option<usize>) -> usize {
    let tier = match cores {
        0..=1 => 1,
        2..=8 => 8,
        9..=32 => 16,
        33..=96 => 32,
        _ => 64,
    };
    wanted.unwrap_or(tier).min(frames / (2 * cores.max(1))).max(1)
}

/// The sweep of one pool.
#[derive(Debug)]
pub struct Sweep {
    cursor: BatchCursor,
    /// The rest of each core's batch. The lock is the core's own: fibers of one core never contend
    /// for it.
    claimed: PerCore<SpinLock<Option<Claim>>>,
}

impl Sweep {
    /// A sweep over `frames` by `cores`. `batch` overrides the size that follows from them.
    pub fn new(frames: usize, cores: usize, batch: Option<usize>) -> Sweep {
        Sweep {
            cursor: BatchCursor::new(frames, batch_size(frames, cores, batch)),
            claimed: PerCore::new(cores, |_| SpinLock::new(None)),
        }
    }

    /// The frame that `core` looks at next.
    pub fn next(&self, core: usize) -> usize {
        let mut claimed = self.claimed.get(core).lock();
        loop {
            if let Some(frame) = claimed.as_mut().and_then(Iterator::next) {
                return frame;
            }
            *claimed = Some(self.cursor.claim());
        }
    }

    /// Frames that a core claims at a time.
    pub fn batch(&self) -> usize {
        self.cursor.batch()
    }

    /// Hand and complete passes.
    pub fn position(&self) -> Position {
        self.cursor.position()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Frame, USAGE_MAX};

    /// A small seeded generator, so that a failure replays.
    struct Seeded(u64);

    impl Seeded {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % bound as u64) as usize
        }
    }

    #[test]
    fn batches_leave_half_the_pool_unclaimed() {
        for cores in [1, 2, 3, 8, 9, 64, 384] {
            for frames in [1, 2, 16, 100, 384, 1000, 100_000] {
                for wanted in [None, Some(1), Some(64), Some(1 << 20)] {
                    let batch = batch_size(frames, cores, wanted);
                    assert!(batch >= 1);
                    assert!(batch == 1 || batch * cores <= frames / 2, "{batch} x {cores} of {frames}");
                }
            }
        }
        assert_eq!(batch_size(1 << 20, 384, None), 64);
        assert_eq!(batch_size(1 << 20, 1, None), 1);
    }

    /// Cores take steps in a random order; the invariants are those of the published mechanism.
    #[test]
    fn each_frame_is_visited_once_a_pass_and_falls_only_at_zero() {
        for seed in 1..200u64 {
            let mut random = Seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let cores = 1 + random.below(6);
            let frames = 2 * cores + random.below(300);
            let wanted = [None, Some(1 + random.below(40))][random.below(2)];
            let sweep = Sweep::new(frames, cores, wanted);
            let headers: Vec<Frame> = (0..frames).map(|_| Frame::new()).collect();
            let mut usage: Vec<u8> =
                (0..frames).map(|_| random.below(usize::from(USAGE_MAX) + 1) as u8).collect();
            headers.iter().zip(&usage).for_each(|(header, &usage)| header.set_usage(usage));
            let mut visits = vec![0u64; frames];
            for _ in 0..frames * 8 {
                let frame = sweep.next(random.below(cores));
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
    fn cores_at_once_visit_each_frame_once() {
        let (frames, cores, per_core) = (1024, 4, 1024);
        let sweep = Sweep::new(frames, cores, Some(16));
        let visits: Vec<SpinLock<u32>> = (0..frames).map(|_| SpinLock::new(0)).collect();
        std::thread::scope(|scope| {
            for core in 0..cores {
                let (sweep, visits) = (&sweep, &visits);
                scope.spawn(move || (0..per_core).for_each(|_| *visits[sweep.next(core)].lock() += 1));
            }
        });
        assert!(visits.iter().all(|count| *count.lock() == (cores * per_core / frames) as u32));
        assert_eq!(sweep.position().passes, (cores * per_core / frames) as u64);
    }
}
