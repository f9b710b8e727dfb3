//! The clock hand's variants in the sweep, in a build with `--cfg variants`.
//!
//! The hand is the variant's own type (`variants::clock_hand`): one frame an add, or a batch. The
//! published batch has 64 frames on several NUMA nodes and 1 on one, unless a setting names its
//! size. What must hold beyond that: a core walks its batch alone. The lock of its walk is never
//! contended, since the core's fibers take turns. It adds one atomic change to each frame of the
//! published hand, on a line of the core's own.

use sync::{PerCore, Position, SpinLock};
use variants::caller::Caller;
use variants::chosen::{Arm, Row, arm};
use variants::clock_hand::{Batched, Hand as _, OneByOne, Walk};
use variants::runs;

/// A hand in place of the engine's.
#[derive(Debug)]
pub(super) enum Hand {
    /// One frame an add.
    Stock(OneByOne),
    /// A batch an add, and the rests that the cores have.
    Published(Batched, PerCore<SpinLock<Walk>>),
}

impl Hand {
    /// The hand that this process runs, on so many NUMA nodes; `None` for the engine's own.
    /// `wanted` replaces the published size of a batch.
    pub(super) fn new(frames: usize, workers: usize, nodes: usize, wanted: Option<usize>) -> Option<Hand> {
        match arm(Row::ClockHand) {
            Arm::Stock => Some(Hand::Stock(OneByOne::new(frames))),
            Arm::Published => {
                let walks = PerCore::new(workers, |_| SpinLock::new(&"clock walk", Walk::default()));
                let published = || Batched::published(frames, nodes);
                let hand = wanted.map_or_else(published, |batch| Batched::new(frames, batch));
                Some(Hand::Published(hand, walks))
            }
            Arm::Step | Arm::Allcore => None,
        }
    }

    /// The frame that `core` looks at next. Called on that core.
    pub(super) fn next(&self, core: usize) -> usize {
        runs::count(Row::ClockHand);
        let me = &mut Caller::new(core);
        match self {
            Hand::Stock(hand) => hand.next(me, &mut ()),
            Hand::Published(hand, walks) => hand.next(me, &mut walks.get(core).lock()),
        }
    }

    /// Frames that a core claims at a time.
    pub(super) fn batch(&self) -> usize {
        match self {
            Hand::Stock(_) => 1,
            Hand::Published(hand, _) => hand.batch(),
        }
    }

    /// Counts an allocation.
    pub(super) fn allocated(&self) {
        match self {
            Hand::Stock(hand) => hand.allocated(),
            Hand::Published(hand, _) => hand.allocated(),
        }
    }

    /// Hand and complete passes.
    pub(super) fn position(&self) -> Position {
        let me = &mut Caller::new(0);
        let start = match self {
            Hand::Stock(hand) => hand.start(me),
            Hand::Published(hand, _) => hand.start(me),
        };
        Position { hand: start.hand, passes: start.passes }
    }
}
