//! A queue of threads that spin for a latch: the first of them alone tries to take it.
//!
//! Without a queue each release of a latch is seen by all who spin. Each of them moves the line of
//! the latch's word. So a hand-over costs as many transfers as there are waiters, and throughput
//! falls as one over their number (Belousov 2014). Here each waiter polls a line of its own, until
//! its predecessor names it. That is the queue of Mellor-Crummey and Scott ("Algorithms for
//! Scalable Synchronization on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991). The first one
//! polls the word. So a release moves that line to one waiter, at any number of them.
//!
//! The queue holds no latch. A thread that finds the latch free takes it without a look at the
//! queue, and may overtake it. So the queue costs nothing until somebody waits. A waiter that the
//! kernel has preempted delays those behind it, but not newcomers. One window is left: the first
//! one, which has the latch, waits for the address of a waiter that has just entered.
//!
//! What must hold:
//!
//! 1. At most one thread is first. It found the queue empty, or the last first one has named it.
//! 2. A node lies on its thread's stack and is in the queue until [`Spinners::leave`] returns. No
//!    other thread has its address then. Either `last` has changed from this node to none. Or the
//!    successor has stored its own address here, which is its last access of this node.
//! 3. A thread that is first parks nowhere: it counts as the holder of a latch ([`held`]).
//!
//! Cost: 5 line transfers for a waiter's way through the queue, at any number of waiters. They are
//! `last` as it comes, its predecessor's node, its own node twice (its successor's address, its
//! flag), and its successor's flag as it leaves.
//!
//! `tests/loom.rs` checks it below [`crate::SpinLock`] and by itself.

use std::ptr;

use crate::atomic::{AtomicBool, AtomicPtr, Ordering, spin_loop};
use crate::{held, park};

/// Polls before a waiter gives its time slice to the kernel: the holder or its predecessor may be
/// preempted.
const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// The queue. Zeroed memory is an empty one.
#[derive(Debug)]
pub struct Spinners {
    /// The node of the thread that came last; null if there is none.
    last: AtomicPtr<Spinner>,
}

/// A thread in the queue, on lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Spinner {
    /// The node of the thread that came next.
    next: AtomicPtr<Spinner>,
    is_first: AtomicBool,
}

impl Default for Spinners {
    fn default() -> Self {
        Self::new()
    }
}

impl Spinners {
    /// An empty queue.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { last: AtomicPtr::new(ptr::null_mut()) }
    }

    /// An empty queue.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { last: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Waits until the caller is first, runs `first`, and lets the next one be first. `first`
    /// learns whether the caller has waited. It does not park and does not come here again.
    #[cold]
    pub fn in_turn<R>(&self, first: impl FnOnce(bool) -> R) -> R {
        let own = Spinner { next: AtomicPtr::new(ptr::null_mut()), is_first: AtomicBool::new(false) };
        // Nothing from here to the turn can panic, so no node dies in the queue.
        let waits = !self.join(&own);
        if waits {
            // Acquire: pairs with the predecessor's release.
            poll(|| own.is_first.load(Ordering::Acquire));
        }
        held::acquire();
        let _turn = Turn { spinners: self, own: &own };
        first(waits)
    }

    /// Puts a node at the end. Returns whether it is first.
    fn join(&self, own: &Spinner) -> bool {
        let node = ptr::from_ref(own).cast_mut();
        // Release: the successor finds this node as it was made. Acquire: so is the predecessor's.
        let before = self.last.swap(node, Ordering::AcqRel);
        if before.is_null() {
            return true;
        }
        // SAFETY: the predecessor stays in the queue until it has seen this store (rule 2), and a
        // node is reached by shared references alone. Release: the predecessor finds this node as
        // it was made.
        unsafe { (*before).next.store(node, Ordering::Release) };
        false
    }

    /// Takes the first node out, and makes the next one first.
    fn leave(&self, own: &Spinner) {
        let node = ptr::from_ref(own).cast_mut();
        // Acquire: the successor's node is seen as it was made.
        let mut next = own.next.load(Ordering::Acquire);
        if next.is_null() {
            // Release: a thread that finds the queue empty sees what the first one did. Relaxed on
            // failure: nothing is read.
            if self.last.compare_exchange(node, ptr::null_mut(), Ordering::Release, Ordering::Relaxed).is_ok()
            {
                return;
            }
            // A successor has swapped itself in and is about to store its address here.
            poll(|| {
                next = own.next.load(Ordering::Acquire); // Acquire: as above
                !next.is_null()
            });
        }
        // SAFETY: the successor stays in the queue until it has been first.
        // Release: the successor sees what the first one did.
        unsafe { (*next).is_first.store(true, Ordering::Release) };
    }
}

/// Leaves the queue when it is dropped.
struct Turn<'a> {
    spinners: &'a Spinners,
    own: &'a Spinner,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.spinners.leave(self.own);
        held::release();
    }
}

/// Looks until `condition` holds, and gives the time slice away after a number of looks.
pub(crate) fn poll(mut condition: impl FnMut() -> bool) {
    loop {
        for _ in 0..SPINS {
            if condition() {
                return;
            }
            spin_loop();
        }
        park::yield_thread();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::atomic::AtomicU64;

    /// More threads than processors, whose sections are as short as can be.
    #[test]
    fn many_threads_are_first_one_at_a_time() {
        let threads = crate::stress::threads() as u64;
        let each: u64 = if cfg!(miri) { 20 } else { (32_000 / threads).max(20) };
        let (spinners, inside, turns) = (Spinners::new(), AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..each {
                        spinners.in_turn(|_| {
                            assert!(!inside.swap(true, Ordering::Relaxed), "two are first");
                            // Relaxed: the turns order what they do.
                            turns.store(turns.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                            inside.store(false, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(turns.load(Ordering::Relaxed), threads * each);
        assert!(spinners.last.load(Ordering::Relaxed).is_null());
    }

    #[test]
    fn a_panic_in_a_turn_lets_the_next_one_be_first() {
        let spinners = Spinners::new();
        let turn = || spinners.in_turn(|_| panic!("in a turn"));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(turn)).is_err());
        assert_eq!((spinners.in_turn(|_| held::count()), held::count()), (1, 0));
    }
}
