//! Row `free-queues` (B14): where free frames wait for their next use.
//!
//! FreeBSD keeps one queue of inactive pages for each NUMA node, under a mutex. Taking a buffer and
//! releasing one both change it. The fix splits each node's queue by a factor
//! (`ndomain_split_factor`). [`NodeQueues::stock`] has one segment a node,
//! [`NodeQueues::published`] several. The algorithm is the same.
//!
//! 1. A thread belongs to a node and to one of its segments, by its number.
//! 2. It puts a frame at the end of its segment, under the segment's mutex.
//! 3. It takes the first frame of its segment. If that is empty, it looks at the others in order,
//!    those of its node first. An empty segment costs a load and no mutex.
//!
//! What must hold: a frame is in one queue, or one thread has it. The links of a segment change
//! under its mutex only. The mutex is [`AdaptiveLock`], FreeBSD's `mtx(9)`.
//!
//! Cost in line transfers: 3 to take a frame or to put one. They are the mutex, the ends of the
//! queue and the link of a frame. With n threads on a segment they queue for its mutex. The factor
//! divides n.

use sync::CachePadded;
use sync::atomic::{AtomicUsize, Ordering};

use crate::caller::Caller;
use crate::sleep_lock::AdaptiveLock;
use crate::spin::{Exclusion, Lock};

/// No frame; frame `n` is `n + 1`.
const NONE: usize = 0;

/// Queues of free frames.
pub trait FreeFrames: Sync {
    /// Takes a free frame. `None` if every queue was empty when the thread looked at it.
    fn take(&self, me: &mut Caller) -> Option<usize>;
    /// Gives a frame back. Only for the thread that has it.
    fn put(&self, me: &mut Caller, frame: usize);
}

/// A queue for each part of each node.
#[derive(Debug)]
pub struct NodeQueues {
    nodes: usize,
    segments: Box<[Segment]>,
    /// The frame behind each frame in its queue.
    next: Box<[AtomicUsize]>,
}

#[derive(Debug)]
struct Segment {
    mutex: AdaptiveLock,
    ends: CachePadded<Ends>,
}

#[derive(Debug)]
struct Ends {
    first: AtomicUsize,
    last: AtomicUsize,
}

impl NodeQueues {
    /// One queue a node, all frames free.
    pub fn stock(frames: usize, nodes: usize, threads: usize) -> Self {
        Self::published(frames, nodes, 1, threads)
    }

    /// Each node's queue split by a factor, all frames free.
    pub fn published(frames: usize, nodes: usize, factor: usize, threads: usize) -> Self {
        assert!(nodes > 0 && factor > 0, "a frame needs a queue to wait in");
        let segment = |_| Segment {
            mutex: AdaptiveLock::new(threads),
            ends: CachePadded::new(Ends { first: AtomicUsize::new(NONE), last: AtomicUsize::new(NONE) }),
        };
        let segments: Box<[Segment]> = (0..nodes * factor).map(segment).collect();
        let next = (0..frames).map(|_| AtomicUsize::new(NONE)).collect();
        let queues = Self { nodes, segments, next };
        let mut me = Caller::new(0);
        for frame in 0..frames {
            queues.push(&mut me, frame % queues.segments.len(), frame);
        }
        queues
    }

    /// The segment of a thread: threads alternate between nodes, then between a node's segments.
    fn home(&self, me: &Caller) -> usize {
        let factor = self.segments.len() / self.nodes;
        (me.number() % self.nodes) * factor + me.number() / self.nodes % factor
    }

    fn push(&self, me: &mut Caller, segment: usize, frame: usize) {
        let Segment { mutex, ends } = &self.segments[segment];
        mutex.with(me, || {
            // Relaxed, here and below: ordered by the mutex.
            self.next[frame].store(NONE, Ordering::Relaxed);
            match ends.last.load(Ordering::Relaxed) {
                NONE => ends.first.store(frame + 1, Ordering::Relaxed),
                last => self.next[last - 1].store(frame + 1, Ordering::Relaxed),
            }
            ends.last.store(frame + 1, Ordering::Relaxed);
        });
    }

    fn pop(&self, me: &mut Caller, segment: usize) -> Option<usize> {
        let Segment { mutex, ends } = &self.segments[segment];
        // Relaxed: a hint, so that an empty segment costs no mutex.
        if ends.first.load(Ordering::Relaxed) == NONE {
            return None;
        }
        mutex.with(me, || {
            let frame = ends.first.load(Ordering::Relaxed).checked_sub(1)?;
            let next = self.next[frame].load(Ordering::Relaxed);
            ends.first.store(next, Ordering::Relaxed);
            if next == NONE {
                ends.last.store(NONE, Ordering::Relaxed);
            }
            Some(frame)
        })
    }
}

impl FreeFrames for NodeQueues {
    fn take(&self, me: &mut Caller) -> Option<usize> {
        let (home, count) = (self.home(me), self.segments.len());
        // The order goes round from the own segment. A node's segments lie side by side.
        let factor = count / self.nodes;
        let node = home / factor * factor;
        let own_node = (0..factor).map(|step| node + (home - node + step) % factor);
        let others = (factor..count).map(|step| (node + step) % count);
        own_node.chain(others).find_map(|segment| self.pop(me, segment))
    }

    fn put(&self, me: &mut Caller, frame: usize) {
        self.push(me, self.home(me), frame);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::test_threads::{at_once, rounds, threads};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Threads take and put in a random order: each frame is in one place, and none is lost.
        #[test]
        fn a_frame_is_in_one_queue_or_one_thread_has_it(
            frames in 0usize..40, nodes in 1usize..4, factor in 1usize..4,
            order in prop::collection::vec((0usize..8, any::<bool>()), 0..400),
        ) {
            let queues = NodeQueues::published(frames, nodes, factor, 8);
            let mut held: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); 8];
            for (thread, takes) in order {
                let me = &mut Caller::new(thread);
                let out: usize = held.iter().map(BTreeSet::len).sum();
                if takes {
                    let taken = queues.take(me);
                    prop_assert_eq!(taken.is_some(), out < frames, "a free frame is found");
                    if let Some(frame) = taken {
                        prop_assert!(held.iter().all(|held| !held.contains(&frame)), "taken twice");
                        held[thread].insert(frame);
                    }
                } else if let Some(frame) = held[thread].pop_first() {
                    queues.put(me, frame);
                }
            }
        }
    }

    #[test]
    fn a_thread_takes_from_its_own_segment_then_its_node_then_the_others() {
        // Nodes 0 and 1 with two segments each: frame n waits in segment n.
        let queues = NodeQueues::published(4, 2, 2, 4);
        let all = |number| {
            let mut me = Caller::new(number);
            let taken: Vec<usize> = std::iter::from_fn(|| queues.take(&mut me)).collect();
            let mut home: Vec<usize> = taken.clone();
            home.sort_unstable();
            // Each frame goes back to where it was.
            home.iter().for_each(|frame| queues.push(&mut me, *frame, *frame));
            taken
        };
        assert_eq!(all(0), [0, 1, 2, 3]);
        assert_eq!(all(1), [2, 3, 0, 1]);
        assert_eq!(all(2), [1, 0, 2, 3]);
        assert_eq!(all(3), [3, 2, 0, 1]);
    }

    /// More threads than frames and cores take and put: no frame has two owners.
    fn keeps_frames_apart(queues: &NodeQueues, frames: usize) {
        let owners: Vec<AtomicUsize> = (0..frames).map(|_| AtomicUsize::new(NONE)).collect();
        at_once(|me| {
            for _ in 0..rounds() {
                if let Some(frame) = queues.take(me) {
                    let before = owners[frame].swap(me.number() + 1, Ordering::Relaxed);
                    assert_eq!(before, NONE, "two threads have frame {frame}");
                    owners[frame].store(NONE, Ordering::Relaxed);
                    queues.put(me, frame);
                }
            }
        });
        let me = &mut Caller::new(0);
        let left: BTreeSet<usize> = std::iter::from_fn(|| queues.take(me)).collect();
        assert_eq!(left, (0..frames).collect());
    }

    #[test]
    fn no_frame_of_more_threads_than_cores_has_two_owners() {
        keeps_frames_apart(&NodeQueues::stock(10, 2, threads()), 10);
        keeps_frames_apart(&NodeQueues::published(10, 2, 4, threads()), 10);
    }
}
