//! Row `clean-list`: searches for a victim in a list whose first buffers are in use.
//!
//! The scan without the lock looks at each header twice, which costs a lone thread more. On two
//! cores at most one thread runs beside the holder, and the others sleep. In the report many cores
//! wait for one scan, so its gain needs those cores.

use runtime::topology::Topology;
use storage::apart::CleanPages;
use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use variants::caller::Caller;
use variants::clean_list::{CleanList, HeldList, ScannedList};

use super::clock_hand::Turn;
use super::{Arm, Machine, Part, Row, Started, compute, next_random};
use crate::round::{Subject, Worker};

/// Buffers on the list: their headers fit the cache of a core.
const BUFFERS: usize = 4096;
/// Buffers that are in use where they lie, at the front of the list. A search passes over them.
const BUSY: usize = 64;
/// Looks of the engine's search: more than a page survives.
const LOOKS: usize = 8 * BUFFERS;
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
        Arm { name: "Sweep", part: Part::Allcore, start: |threads| list(Own::new(threads)?, threads) },
    ],
};

/// The engine's search: no list. Its sweep goes round all frames, and a frame's state word says
/// whether its page is in use. A page that was used where it lies survives one more pass.
#[derive(Debug)]
struct Own(CleanPages);

impl Own {
    fn new(threads: usize) -> Result<Self, String> {
        let machine = Topology::of_machine();
        let processors = machine.processors().len();
        let sweep = storage::apart::sweep(BUFFERS, threads, machine.nodes(), processors, None);
        CleanPages::new(BUFFERS, sweep).map(Self).map_err(|error| format!("no headers: {error}"))
    }
}

impl CleanList for Own {
    type Kept = Turn;

    #[inline]
    fn victim(&self, me: &mut Caller, turn: &mut Turn) -> Option<usize> {
        (0..LOOKS).find_map(|_| self.0.look(me.number(), turn.now()))
    }

    #[inline]
    fn put(&self, _: &mut Caller, buffer: usize) {
        self.0.put(buffer);
    }

    #[inline]
    fn enter(&self, buffer: usize) -> bool {
        self.0.pin(buffer)
    }

    #[inline]
    fn leave(&self, buffer: usize) {
        self.0.unpin(buffer);
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
    /// How many threads have taken each buffer: at most one.
    owners: Box<[CachePadded<AtomicU64>]>,
    /// Whether every search must find a buffer.
    has_enough: bool,
    is_shared: AtomicBool,
    /// A search has found none.
    is_missed: AtomicBool,
}

impl<L: CleanList> Clean<L> {
    /// Computes with a buffer in hand, and looks whether another thread has taken it too.
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

impl<L: CleanList> Clean<L> {
    /// Computes with a buffer where it lies, and looks whether a thread has taken it. The engine
    /// lets several threads use one at once.
    fn see(&self, buffer: usize) {
        // Relaxed, all: as above.
        let before = self.owners[buffer].load(Ordering::Relaxed);
        compute(STEPS);
        if before + self.owners[buffer].load(Ordering::Relaxed) != 0 {
            self.is_shared.store(true, Ordering::Relaxed);
        }
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
                    self.see(buffer);
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
