//! The published spin lock: a queue in which each waiter polls a line of its own (MCS,
//! Mellor-Crummey and Scott 1991, section 2.4).
//!
//! 1. A thread resets its node and swaps itself into `tail`. If the queue was empty, it has the
//!    lock.
//! 2. Otherwise it writes its number into its predecessor's node and polls its own node.
//! 3. The release clears its successor's flag. If no successor is known, it empties the queue by a
//!    compare-and-exchange on `tail`. If that fails, a successor is about to write its number, and
//!    the holder waits for it.
//!
//! What must hold: a node is in the queue from the swap to the release. One thread has one node a
//! lock, so it must not take the lock twice. Nodes lie in the lock, by thread number. The original
//! keeps them on its callers' stacks, which costs the same transfers and needs raw pointers.
//!
//! Orderings: the swap releases the reset node to the successor and acquires the predecessor's.
//! Clearing the flag releases the section to the poll, which acquires it. The exchange that empties
//! the queue releases it to the next swap.
//!
//! Cost in line transfers: 1 for an uncontended lock (`tail`). Contended, about 4 a hand-over at
//! any number of waiters: `tail`, the predecessor's node, the successor's number, its flag.

use sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use sync::{CachePadded, profile};

use super::Lock;
use crate::caller::{Caller, wait_until};

/// No thread; thread `n` is `n + 1`.
const NOBODY: usize = 0;

/// The MCS lock.
#[derive(Debug)]
pub struct Mcs {
    tail: CachePadded<AtomicUsize>,
    nodes: Box<[CachePadded<Node>]>,
}

#[derive(Debug)]
struct Node {
    successor: AtomicUsize,
    waits: AtomicBool,
}

impl Lock for Mcs {
    fn new(threads: usize) -> Self {
        let node =
            |_| CachePadded::new(Node { successor: AtomicUsize::new(NOBODY), waits: AtomicBool::new(false) });
        Self { tail: CachePadded::new(AtomicUsize::new(NOBODY)), nodes: (0..threads).map(node).collect() }
    }

    #[inline]
    fn lock(&self, me: &mut Caller) {
        let own = &self.nodes[me.number()];
        // Relaxed: the swap below publishes the node.
        own.successor.store(NOBODY, Ordering::Relaxed);
        own.waits.store(true, Ordering::Relaxed);
        // Release: the successor finds the node reset. Acquire: the predecessor's node, or what the
        // last holder of an empty queue wrote.
        let before = self.tail.swap(me.number() + 1, Ordering::AcqRel);
        if before == NOBODY {
            return;
        }
        // Release: the predecessor finds this node reset when it learns of it.
        self.nodes[before - 1].successor.store(me.number() + 1, Ordering::Release);
        // Acquire: what the last holder wrote is seen.
        profile::wait(&"queue lock", || wait_until(|| !own.waits.load(Ordering::Acquire)));
    }

    #[inline]
    fn unlock(&self, me: &mut Caller) {
        let own = &self.nodes[me.number()];
        // Acquire: the successor's node is reset.
        let mut successor = own.successor.load(Ordering::Acquire);
        if successor == NOBODY {
            // Release: the next holder sees what this one wrote. Relaxed on failure: nothing is
            // read.
            let last = me.number() + 1;
            if self.tail.compare_exchange(last, NOBODY, Ordering::Release, Ordering::Relaxed).is_ok() {
                return;
            }
            me.retried();
            profile::wait(&"successor in a queue lock", || {
                wait_until(|| {
                    // Acquire: as above.
                    successor = own.successor.load(Ordering::Acquire);
                    successor != NOBODY
                });
            });
        }
        // Release: the next holder sees what this one wrote.
        self.nodes[successor - 1].waits.store(false, Ordering::Release);
    }
}
