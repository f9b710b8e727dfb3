//! Row `free-queues`: threads take free frames and give them back.

use sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use variants::free_queues::{FreeFrames, NodeQueues};

use super::{Arm, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// Frames for each thread, so that hardly any segment is ever empty.
const FRAMES: usize = 8;
/// NUMA nodes of the queues: this machine is taken for one.
const NODES: usize = 1;
/// Segments of a node: B14 split each node's queue by 8.
const FACTOR: usize = 8;
/// Steps with a frame in hand, some 75 ns, and as many without one.
const STEPS: u32 = 40;

/// The row.
pub(super) const ROW: Row = Row {
    id: "free-queues",
    report: "B14",
    about: "queues of free frames under a mutex: one for each NUMA node, against 8 segments a node",
    operation: "take a frame, compute for 75 ns, give it back, compute for 75 ns",
    needs: None,
    code: "crates/variants/src/free_queues",
    arms: &[
        Arm {
            name: "one a node",
            part: Part::Stock,
            start: |threads| pool(NodeQueues::stock(FRAMES * threads, NODES, threads), threads),
        },
        Arm {
            name: "split by 8",
            part: Part::Published,
            start: |threads| pool(NodeQueues::published(FRAMES * threads, NODES, FACTOR, threads), threads),
        },
    ],
};

fn pool(queues: impl FreeFrames + 'static, threads: usize) -> Started {
    let owners = (0..FRAMES * threads).map(|_| AtomicUsize::new(0)).collect();
    Ok(Box::new(Pool { queues, owners, is_shared: AtomicBool::new(false) }))
}

#[derive(Debug)]
struct Pool<Q> {
    queues: Q,
    /// How many threads have each frame: at most one.
    owners: Box<[AtomicUsize]>,
    is_shared: AtomicBool,
}

impl<Q: FreeFrames> Subject for Pool<Q> {
    fn work(&self, worker: &mut Worker<'_>) {
        worker.repeat(|me| {
            if let Some(frame) = self.queues.take(me) {
                // Relaxed, all: the queues order the owners.
                let others = self.owners[frame].load(Ordering::Relaxed);
                self.owners[frame].store(others + 1, Ordering::Relaxed);
                compute(STEPS);
                if self.owners[frame].load(Ordering::Relaxed) != 1 {
                    self.is_shared.store(true, Ordering::Relaxed);
                }
                self.owners[frame].store(0, Ordering::Relaxed);
                self.queues.put(me, frame);
            }
            compute(STEPS);
        });
    }

    fn check(&self, _: u64) -> Result<(), String> {
        let mut me = variants::caller::Caller::new(0);
        let free = std::iter::from_fn(|| self.queues.take(&mut me)).count();
        // Relaxed: the threads have ended.
        if self.is_shared.load(Ordering::Relaxed) {
            return Err("two threads had one frame at once".into());
        }
        if free != self.owners.len() {
            return Err(format!("{free} of {} frames are free after the round", self.owners.len()));
        }
        Ok(())
    }
}
