//! Row `free-queues`: threads take free frames and give them back.
//!
//! On a machine of several NUMA nodes the threads are dealt out to the nodes, and each runs on the
//! processors of its own. The engine has a list for each worker, so here a thread is one.

use runtime::topology::{Topology, Workers};
use storage::apart::FreeLists;
use sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use variants::caller::Caller;
use variants::free_queues::{FreeFrames, NodeQueues};

use super::{Arm, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// Frames for each thread, so that hardly any segment is ever empty.
const FRAMES: usize = 8;
/// Segments of a node: B14 split each node's queue by 8.
const FACTOR: usize = 8;
/// Steps with a frame in hand, some 75 ns, and as many without one.
const STEPS: u32 = 40;

/// The row.
pub(super) const ROW: Row = Row {
    id: "free-queues",
    report: "B14",
    about: "queues of free frames under a mutex: one for each NUMA node, against 8 segments a node, against a list for each worker",
    operation: "take a frame, compute for 75 ns, give it back, compute for 75 ns",
    needs: None,
    code: "crates/variants/src/free_queues",
    arms: &[
        Arm {
            name: "one a node",
            part: Part::Stock,
            start: |threads| {
                pool(threads, |machine| Ok(NodeQueues::stock(FRAMES * threads, machine.nodes(), threads)))
            },
        },
        Arm {
            name: "split by 8",
            part: Part::Published,
            start: |threads| {
                pool(threads, |machine| {
                    Ok(NodeQueues::published(FRAMES * threads, machine.nodes(), FACTOR, threads))
                })
            },
        },
        Arm {
            name: "FreeFrames",
            part: Part::Allcore,
            start: |threads| pool(threads, |machine| Own::new(threads, machine)),
        },
    ],
};

/// The engine's lists, with a worker for each thread.
#[derive(Debug)]
struct Own(FreeLists);

impl Own {
    fn new(threads: usize, machine: &Topology) -> Result<Self, String> {
        let nodes: Vec<usize> = (0..threads).map(|thread| node_of(thread, machine.nodes())).collect();
        let workers = Workers::new(machine, &[], threads, threads);
        let lists = FreeLists::new(FRAMES * threads, &nodes, |from, to| workers.distance(from, to));
        lists.map(Self).map_err(|error| format!("no headers: {error}"))
    }
}

impl FreeFrames for Own {
    #[inline]
    fn take(&self, me: &mut Caller) -> Option<usize> {
        self.0.take(me.number())
    }

    #[inline]
    fn put(&self, me: &mut Caller, frame: usize) {
        self.0.put(me.number(), frame);
    }
}

/// The node of a thread, on a machine of so many: as the variants have it.
fn node_of(thread: usize, nodes: usize) -> usize {
    thread % nodes
}

fn pool<Q: FreeFrames + 'static>(
    threads: usize,
    queues: impl FnOnce(&Topology) -> Result<Q, String>,
) -> Started {
    let machine = Topology::of_machine();
    let owners = (0..FRAMES * threads).map(|_| AtomicUsize::new(0)).collect();
    let queues = queues(&machine)?;
    Ok(Box::new(Pool { machine, queues, owners, is_shared: AtomicBool::new(false) }))
}

#[derive(Debug)]
struct Pool<Q> {
    machine: Topology,
    queues: Q,
    /// How many threads have each frame: at most one.
    owners: Box<[AtomicUsize]>,
    is_shared: AtomicBool,
}

impl<Q: FreeFrames> Subject for Pool<Q> {
    fn work(&self, worker: &mut Worker<'_>) {
        let nodes = self.machine.nodes();
        if nodes > 1 {
            self.machine.confine_thread(node_of(worker.number(), nodes));
        }
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
        let mut me = Caller::new(0);
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
