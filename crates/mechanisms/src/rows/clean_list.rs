//! Row `clean-list`: searches for a victim in a list whose first buffers are in use.
//!
//! The scan without the lock looks at each header twice, which costs a lone thread a fifth: 0.82 of
//! the stock state. Two threads on two cores gained 1.5 times. With 64 threads on two cores there
//! was no difference: at most one thread runs beside the holder, and the others sleep. In the
//! report many cores wait for one scan, so its gain needs those cores.

use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::{BatchCursor, CachePadded, Walk};
use variants::caller::Caller;
use variants::clean_list::{CleanList, HeldList, ScannedList};

use super::{Arm, Machine, Part, Row, Started, compute, next_random};
use crate::round::{Subject, Worker};

/// Buffers on the list: their headers fit the cache of a core.
const BUFFERS: usize = 4096;
/// Buffers that are in use where they lie, at the front of the list. A search passes over them.
const BUSY: usize = 64;
/// Buffers that the engine's hand claims at a time, as on a machine of several nodes.
const BATCH: usize = 64;
/// Steps with a victim in hand, some 75 ns, and as many without one.
const STEPS: u32 = 40;
/// Every operation of this number uses a random buffer where it lies.
const USE: u64 = 8;

/// The row.
pub(super) const ROW: Row = Row {
    id: "clean-list",
    report: "B14",
    about: "the search for a victim: the list's lock held through the scan, against a scan without the lock",
    operation: "take the first free buffer behind 64 busy ones, compute for 75 ns, put it at the end, \
                compute again. One in 8 uses it where it lies",
    needs: Some(Machine::Cores(40, "those who wait for the list's lock need cores of their own")),
    code: "crates/variants/src/clean_list",
    arms: &[
        Arm {
            name: "lock held",
            part: Part::Stock,
            start: |threads| list(HeldList::new(BUFFERS, threads), threads),
        },
        Arm {
            name: "unlocked scan",
            part: Part::Published,
            start: |threads| list(ScannedList::new(BUFFERS, threads), threads),
        },
        Arm { name: "BatchCursor", part: Part::Allcore, start: |threads| list(Sweep::new(), threads) },
    ],
};

/// The engine's search: no list. Its hand goes round all buffers, and a change of the buffer's own
/// word takes it.
#[derive(Debug)]
struct Sweep {
    cursor: BatchCursor,
    busy: Box<[CachePadded<AtomicBool>]>,
}

impl Sweep {
    fn new() -> Self {
        let busy = (0..BUFFERS).map(|_| CachePadded::new(AtomicBool::new(false))).collect();
        Self { cursor: BatchCursor::new(BUFFERS, BATCH), busy }
    }
}

impl CleanList for Sweep {
    type Kept = Walk;

    #[inline]
    fn victim(&self, _: &mut Caller, walk: &mut Walk) -> Option<usize> {
        (0..2 * BUFFERS).map(|_| walk.next(&self.cursor)).find(|buffer| self.enter(*buffer))
    }

    #[inline]
    fn put(&self, _: &mut Caller, buffer: usize) {
        self.leave(buffer);
    }

    #[inline]
    fn enter(&self, buffer: usize) -> bool {
        let busy = &self.busy[buffer];
        // Relaxed: the exchange decides. Acquire: what the last user did is seen.
        !busy.load(Ordering::Relaxed)
            && busy.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn leave(&self, buffer: usize) {
        // Release: the next user sees what this one did.
        self.busy[buffer].store(false, Ordering::Release);
    }
}

fn list(list: impl CleanList + 'static, threads: usize) -> Started {
    assert!((0..BUSY).all(|buffer| list.enter(buffer)), "a new list has no user");
    let owners = (0..BUFFERS).map(|_| CachePadded::new(AtomicU64::new(0))).collect();
    // A thread has two buffers at most.
    let has_enough = 2 * threads < BUFFERS - BUSY;
    let (is_shared, is_missed) = (AtomicBool::new(false), AtomicBool::new(false));
    Ok(Box::new(Clean { list, owners, has_enough, is_shared, is_missed }))
}

#[derive(Debug)]
struct Clean<L> {
    list: L,
    /// How many threads have each buffer: at most one.
    owners: Box<[CachePadded<AtomicU64>]>,
    /// Whether every search must find a buffer.
    has_enough: bool,
    is_shared: AtomicBool,
    /// A search has found none.
    is_missed: AtomicBool,
}

impl<L: CleanList> Clean<L> {
    /// Computes with a buffer in hand, and looks whether another thread has it too.
    fn own(&self, buffer: usize) {
        // Relaxed, all: the list orders the owners.
        let others = self.owners[buffer].load(Ordering::Relaxed);
        self.owners[buffer].store(others + 1, Ordering::Relaxed);
        compute(STEPS);
        if self.owners[buffer].load(Ordering::Relaxed) != 1 {
            self.is_shared.store(true, Ordering::Relaxed);
        }
        self.owners[buffer].store(0, Ordering::Relaxed);
    }
}

impl<L: CleanList> Subject for Clean<L> {
    fn work(&self, worker: &mut Worker<'_>) {
        let (mut kept, mut count) = (L::Kept::default(), 0u64);
        let mut random = 1 + worker.number() as u64;
        worker.repeat(|me| {
            count += 1;
            if count.is_multiple_of(USE) {
                random = next_random(random);
                let buffer = random as usize % BUFFERS;
                if self.list.enter(buffer) {
                    self.own(buffer);
                    self.list.leave(buffer);
                }
            } else if let Some(buffer) = self.list.victim(me, &mut kept) {
                self.own(buffer);
                self.list.put(me, buffer);
            } else {
                self.is_missed.store(true, Ordering::Relaxed); // Relaxed: read in the end
            }
            compute(STEPS);
        });
    }

    fn check(&self, _: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        if self.is_shared.load(Ordering::Relaxed) {
            return Err("two threads had one buffer at once".into());
        }
        if self.has_enough && self.is_missed.load(Ordering::Relaxed) {
            return Err("a search found nothing among thousands of free buffers".into());
        }
        let (mut me, mut kept) = (Caller::new(0), L::Kept::default());
        let left = std::iter::from_fn(|| self.list.victim(&mut me, &mut kept)).count();
        if left != BUFFERS - BUSY {
            return Err(format!("{left} of {} buffers are left after the round", BUFFERS - BUSY));
        }
        Ok(())
    }
}
