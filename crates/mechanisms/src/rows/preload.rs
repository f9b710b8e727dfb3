//! Row `preload`: memory is made, and a session reaches it.
//!
//! The making does not count. The fix moves the cost of a page from the sessions to a server's
//! start, where it may well be higher. Each thread makes its memory just before it reaches it. So a
//! thread that made pages present finds their zeroes in the processor's caches. The engine's pages
//! are huge by default. The arm that stands for it has ordinary ones, as the published fix has.

use std::io;

use calls::memory::{Mapping, Object, PageKind, STEP, WITH_ALL_PRESENT, WITH_NOTHING, free_huge_pages};
use calls::thread_time;
use runtime::memory::AtomicArray;
use sync::atomic::{AtomicU64, Ordering};

use super::fault_path::BYTES;
use super::{Arm, Part, Row, Started};
use crate::round::{Subject, Worker};

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;
/// Bytes of a word.
const WORD: usize = size_of::<u64>();
/// The word of a page that a session reaches: in another line than the one that the engine touches
/// ahead.
const REACHED: usize = STEP / 2 / WORD;

/// The row.
pub(super) const ROW: Row = Row {
    id: "preload",
    report: "B14",
    about: "new shared memory: a fault at the first touch of each page, against all made present at once",
    operation: "reach 4 KiB of 4 MiB that the thread has just made. Pages are ordinary, except in the arms \
                named huge. Pages made present are in the caches, and touched ones in the TLB, too. Seconds \
                are of processor time, without the making",
    needs: None,
    code: "crates/calls/src/memory",
    arms: &[
        Arm {
            name: "first touch",
            part: Part::Stock,
            start: |threads| new(threads, PageKind::Ordinary, WITH_NOTHING),
        },
        Arm {
            name: "populated",
            part: Part::Published,
            start: |threads| new(threads, PageKind::Ordinary, WITH_ALL_PRESENT),
        },
        Arm {
            name: "transparent huge",
            part: Part::Step,
            start: |threads| new(threads, PageKind::Transparent, WITH_NOTHING),
        },
        Arm {
            name: "reserved huge",
            part: Part::Step,
            start: |threads| new(threads, PageKind::Reserved, WITH_NOTHING),
        },
        Arm { name: "touched ahead", part: Part::Allcore, start: |_| arrays(AtomicArray::reserve) },
        Arm { name: "touched ahead, huge", part: Part::Step, start: |_| arrays(AtomicArray::reserve_huge) },
    ],
};

/// New shared memory for each pass.
#[derive(Debug)]
struct New {
    kind: PageKind,
    present: bool,
    reached: AtomicU64,
}

fn new(threads: usize, kind: PageKind, present: bool) -> Started {
    // A first one shows whether the machine has such memory.
    Object::new(BYTES, kind)?;
    if kind == PageKind::Reserved && free_huge_pages() < threads * (BYTES / HUGE) {
        return Err(format!("{} free huge pages are too few for {threads} threads", free_huge_pages()));
    }
    Ok(Box::new(New { kind, present, reached: AtomicU64::new(0) }))
}

impl Subject for New {
    fn work(&self, worker: &mut Worker<'_>) {
        let make = || Object::new(BYTES, self.kind).and_then(|object| Mapping::of(&object, self.present));
        let mut refused = None;
        worker.repeat_timed(|_| {
            let memory = match make() {
                Ok(memory) => memory,
                // A refusal stays until the end of the round.
                Err(reason) => {
                    refused = Some(reason);
                    return (0, None);
                }
            };
            let begin = thread_time();
            (0..memory.steps()).for_each(|step| memory.touch(step));
            let took = thread_time() - begin;
            // Relaxed: read after the threads' end.
            self.reached.fetch_add(memory.touches(), Ordering::Relaxed);
            (memory.steps() as u64, Some(took))
        });
        if let Some(reason) = refused {
            worker.refuse(reason);
        }
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        has_reached(&self.reached, operations)
    }
}

fn has_reached(reached: &AtomicU64, operations: u64) -> Result<(), String> {
    // Relaxed: the threads have ended.
    match reached.load(Ordering::Relaxed) {
        reached if reached == operations => Ok(()),
        reached => Err(format!("{operations} touches have reached {reached} steps")),
    }
}

/// Makes memory for so many words.
type Reserve = fn(usize) -> io::Result<AtomicArray<AtomicU64>>;

/// The engine's memory, touched as the engine touches it ahead of use.
#[derive(Debug)]
struct Arrays {
    reserve: Reserve,
    reached: AtomicU64,
}

fn arrays(reserve: Reserve) -> Started {
    Ok(Box::new(Arrays { reserve, reached: AtomicU64::new(0) }))
}

impl Subject for Arrays {
    fn work(&self, worker: &mut Worker<'_>) {
        worker.repeat_timed(|_| {
            let words = (self.reserve)(BYTES / WORD).expect("memory for an array");
            words.touch(words.len());
            let each = || (REACHED..words.len()).step_by(STEP / WORD).map(|word| words.get(word));
            let begin = thread_time();
            // Relaxed, all: counts, read by this thread or after the threads' end.
            each().for_each(|word| _ = word.fetch_add(1, Ordering::Relaxed));
            let took = thread_time() - begin;
            let touches = each().map(|word| word.load(Ordering::Relaxed)).sum();
            self.reached.fetch_add(touches, Ordering::Relaxed);
            ((BYTES / STEP) as u64, Some(took))
        });
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        has_reached(&self.reached, operations)
    }
}
