//! G26's invariants, as properties over random pools, batches and orders of steps, and under more
//! threads than cores.

use proptest::prelude::*;
use sync::atomic::{AtomicU64, Ordering};

use super::batched::Walk;
use super::*;
use crate::test_threads::{at_once, threads};

/// The claims, visits and falls of a sweep, counted beside it.
struct Sweep<'a, H: Hand> {
    hand: &'a H,
    frames: Frames,
    /// The usage counts as they should be.
    usage: Vec<u8>,
    visits: Vec<u64>,
    victims: u64,
    me: Caller,
}

impl<'a, H: Hand> Sweep<'a, H> {
    fn new(hand: &'a H, usage: Vec<u8>) -> Self {
        let (frames, visits) = (Frames::new(usage.iter().copied()), vec![0; usage.len()]);
        Self { hand, frames, usage, visits, victims: 0, me: Caller::new(0) }
    }

    /// A step of a thread: it looks at its next frame.
    fn step(&mut self, walk: &mut H::Walk) {
        let frame = self.hand.next(&mut self.me, walk);
        self.visits[frame] += 1;
        let falls = self.frames.visit(&mut self.me, frame);
        assert_eq!(falls, self.usage[frame] == 0, "a frame falls exactly at usage 0");
        self.usage[frame] = self.usage[frame].checked_sub(1).unwrap_or(1);
        if falls {
            self.hand.allocated();
            self.victims += 1;
        }
    }
}

/// Steps of several threads in a given order. Returns the sweep once all batches are walked.
fn walked<H: Hand>(
    hand: &H,
    usage: Vec<u8>,
    order: &[usize],
    left: impl Fn(&H::Walk) -> usize,
) -> Result<(), TestCaseError> {
    let size = usage.len() as u64;
    let mut walks: Vec<H::Walk> = (0..8).map(|_| H::Walk::default()).collect();
    let mut sweep = Sweep::new(hand, usage);
    let (mut allocations, mut steps) = (0, 0);
    for &thread in order {
        sweep.step(&mut walks[thread]);
        steps += 1;
        // The page writer looks at every moment: nothing claimed is missing, nothing counts twice.
        let held: usize = walks.iter().map(&left).sum();
        let start = hand.start(&mut sweep.me);
        prop_assert_eq!(start.passes * size + start.hand as u64, steps + held as u64);
        allocations += start.allocations;
        prop_assert_eq!(allocations, sweep.victims, "an allocation counts once");
    }
    for walk in &mut walks {
        while left(walk) > 0 {
            sweep.step(walk);
        }
    }
    let start = hand.start(&mut sweep.me);
    for (frame, visits) in sweep.visits.iter().enumerate() {
        let claims = start.passes + u64::from(frame < start.hand);
        prop_assert_eq!(*visits, claims, "frame {} once a pass", frame);
    }
    Ok(())
}

fn usage() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..=USAGE_MAX, 1..200)
}

/// The numbers of the threads that take the steps, 0 to 7.
fn order() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..8, 0..1500)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_hand_one_by_one_visits_each_frame_once_a_pass(usage in usage(), order in order()) {
        walked(&OneByOne::new(usage.len()), usage, &order, |()| 0)?;
    }

    #[test]
    fn a_batched_hand_visits_each_frame_once_a_pass(
        usage in usage(), batch in 1usize..300, order in order(),
    ) {
        let hand = Batched::new(usage.len(), batch);
        prop_assert_eq!(hand.batch(), batch.min(usage.len()), "a batch is no longer than the pool");
        walked(&hand, usage, &order, Walk::left)?;
    }
}

/// Searches until frame 0, which nobody uses again, falls. Returns how often it was visited.
fn visits_of_frame_0(hand: &impl Hand) -> usize {
    let frames = Frames::new([USAGE_MAX; 10]);
    let (mut me, mut walk) = (Caller::new(0), Default::default());
    let mut visits = 0;
    loop {
        match hand.next(&mut me, &mut walk) {
            0 => {
                visits += 1;
                if frames.visit(&mut me, 0) {
                    return visits;
                }
            }
            other => frames.touch(other),
        }
    }
}

#[test]
fn a_page_survives_five_visits_after_its_last_use_and_falls_at_the_sixth() {
    assert_eq!(visits_of_frame_0(&OneByOne::new(10)), 6);
    assert_eq!(visits_of_frame_0(&Batched::new(10, 4)), 6);
}

#[test]
fn a_batch_has_64_frames_on_several_nodes_and_one_on_one_node() {
    let batch = |frames, nodes| Batched::published(frames, nodes).batch();
    assert_eq!([batch(1000, 1), batch(1000, 2), batch(40, 6)], [1, 64, 40]);
}

/// Threads at once walk a pool of 100 frames: it has each frame as often as the hand says.
fn walks_at_once<H: Hand>(hand: &H, left: impl Fn(&H::Walk) -> usize + Sync) {
    let visits: Vec<AtomicU64> = (0..100).map(|_| AtomicU64::new(0)).collect();
    let frames = Frames::new([3; 100]);
    let victims: u64 = at_once(|me| {
        let (mut walk, mut victims) = (H::Walk::default(), 0);
        for step in 0.. {
            if step >= 2_000 && left(&walk) == 0 {
                return victims;
            }
            let frame = hand.next(me, &mut walk);
            visits[frame].fetch_add(1, Ordering::Relaxed);
            if frames.visit(me, frame) {
                hand.allocated();
                victims += 1;
            }
        }
        unreachable!("the steps end")
    })
    .into_iter()
    .sum();
    let start = hand.start(&mut Caller::new(0));
    assert!(start.passes >= threads() as u64 * 2_000 / 100);
    for (frame, visits) in visits.iter().enumerate() {
        assert_eq!(visits.load(Ordering::Relaxed), start.passes + u64::from(frame < start.hand), "{frame}");
    }
    assert_eq!(start.allocations, victims);
}

#[test]
fn more_threads_than_cores_visit_each_frame_once_a_pass() {
    walks_at_once(&OneByOne::new(100), |()| 0);
    walks_at_once(&Batched::new(100, 64), Walk::left);
    walks_at_once(&Batched::new(100, 7), Walk::left);
}
