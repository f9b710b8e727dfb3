//! Row `clock-hand`: searches for a victim among the frames of a pool.
//!
//! The engine chooses its batch by nodes and cores: 1 on one node of up to 4 cores. So its own arm
//! gains nothing there but a count that each thread has for itself. The step shows its batch of 64.
//!
//! With a batch of 1 each look begins a claim anew. A claim divides an endless position by the
//! frames, where the stock hand compares. It stores the three words of the core's walk, and the
//! sweep looks whether a batch has expired. This shows with few threads, where the add on the
//! hand's line is cheap. A batch of 64 has one claim for 64 looks.

use runtime::time;
use runtime::topology::Topology;
use storage::sweep::Sweep;
use sync::ShardedCounter;
use sync::atomic::{AtomicU64, Ordering};
use variants::caller::Caller;
use variants::clock_hand::{Batched, Frames, Hand, OneByOne, Start};

use super::{Arm, Machine, Part, Row, Started, next_random};
use crate::round::{Subject, Worker};

/// Frames of the pool: their headers fit the cache of a core, so that the hand is the bottleneck.
const FRAMES: usize = 4096;
/// Frames of a batch, as on a machine with several NUMA nodes.
const BATCH: usize = 64;
/// Looks of a worker's turn.
const LOOKS: u32 = 256;
/// Frames used between two searches. Each use costs the sweep one more step.
const USES: usize = 3;
/// Nodes of the machine that the published batch is sized for.
const NODES: usize = 2;

/// The row.
pub(super) const ROW: Row = Row {
    id: "clock-hand",
    report: "G26",
    about: "the clock sweep's shared hand: one atomic add a frame, against a batch of 64 frames a claim. \
            With a batch of 1 a look of the engine's Sweep costs more than one of the stock hand. It divides an \
            endless position, and stores the claim in the core's own walk",
    operation: "search for a victim in 4096 frames, use 3 frames",
    needs: Some(Machine::Nodes(6, "the hand's line costs a transfer for each frame")),
    code: "crates/variants/src/clock_hand",
    arms: &[
        Arm { name: "one by one", part: Part::Stock, start: |_| pool(OneByOne::new(FRAMES)) },
        Arm { name: "batch 64", part: Part::Published, start: |_| pool(Batched::published(FRAMES, NODES)) },
        Arm {
            name: "Sweep, batch 64",
            part: Part::Step,
            start: |threads| pool(Own::new(threads, Some(BATCH))),
        },
        Arm { name: "Sweep", part: Part::Allcore, start: |threads| pool(Own::new(threads, None)) },
    ],
};

/// The engine's sweep, with a worker for each thread.
#[derive(Debug)]
struct Own {
    sweep: Sweep,
    allocations: ShardedCounter,
    counted: AtomicU64,
}

impl Own {
    /// The batch is the engine's choice for this machine, or `wanted`.
    fn new(threads: usize, wanted: Option<usize>) -> Self {
        let machine = Topology::of_machine();
        let processors = machine.processors().len();
        Self {
            sweep: storage::apart::sweep(FRAMES, threads, machine.nodes(), processors, wanted),
            allocations: ShardedCounter::new(threads),
            counted: AtomicU64::new(0),
        }
    }
}

impl Hand for Own {
    type Walk = Turn;

    #[inline]
    fn next(&self, me: &mut Caller, turn: &mut Turn) -> usize {
        self.sweep.next(me.number(), turn.now())
    }

    #[inline]
    fn allocated(&self) {
        self.allocations.add(1);
    }

    fn start(&self, _: &mut Caller) -> Start {
        let position = self.sweep.position();
        let sum = self.allocations.sum().max(0) as u64;
        // Relaxed: a count.
        let allocations = sum - self.counted.swap(sum, Ordering::Relaxed);
        Start { hand: position.hand, passes: position.passes, allocations }
    }
}

/// The time of a worker's turn, which it reads once for many looks.
#[derive(Debug, Default)]
pub(super) struct Turn {
    now: u64,
    looks: u32,
}

impl Turn {
    /// The time of the turn under way.
    #[inline]
    pub fn now(&mut self) -> u64 {
        if self.looks.is_multiple_of(LOOKS) {
            self.now = time::precise();
        }
        self.looks = self.looks.wrapping_add(1);
        self.now
    }
}

fn pool(hand: impl Hand + 'static) -> Started {
    Ok(Box::new(Pool { hand, frames: Frames::new([0; FRAMES]), visits: AtomicU64::new(0) }))
}

#[derive(Debug)]
struct Pool<H> {
    hand: H,
    frames: Frames,
    visits: AtomicU64,
}

impl<H: Hand> Subject for Pool<H> {
    fn work(&self, worker: &mut Worker<'_>) {
        let (mut walk, mut visits) = (H::Walk::default(), 0);
        let mut random = 1 + worker.number() as u64;
        worker.repeat(|me| {
            loop {
                let frame = self.hand.next(me, &mut walk);
                visits += 1;
                if self.frames.visit(me, frame) {
                    break self.hand.allocated();
                }
            }
            for _ in 0..USES {
                random = next_random(random);
                self.frames.touch(random as usize % FRAMES);
            }
        });
        // Relaxed: read after the threads' end.
        self.visits.fetch_add(visits, Ordering::Relaxed);
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        let start = self.hand.start(&mut Caller::new(0));
        // Relaxed: the threads have ended.
        let visits = self.visits.load(Ordering::Relaxed);
        let claimed = start.passes * FRAMES as u64 + start.hand as u64;
        if start.allocations != operations {
            return Err(format!("{operations} searches count as {} allocations", start.allocations));
        }
        // A thread ends with a part of its batch.
        if claimed < visits {
            return Err(format!("{visits} frames were visited, and {claimed} claimed"));
        }
        Ok(())
    }
}
