//! Row `preload`: memory that nobody has touched is made and reached.

use calls::memory::{Mapping, Object, PageKind, STEP, WITH_ALL_PRESENT, WITH_NOTHING, free_huge_pages};
use runtime::memory::{HugePages, Region};
use sync::atomic::{AtomicU64, Ordering};

use super::fault_path::BYTES;
use super::{Arm, Here, Part, Row, Started};
use crate::round::{Subject, Worker};

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// The row.
pub(super) const ROW: Row = Row {
    id: "preload",
    report: "B14",
    about: "new shared memory: a fault at the first touch of each page, against all made present at once",
    operation: "reach 4 KiB of 4 MiB that were just made",
    here: Here::Work,
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
        Arm { name: "runtime::Region", part: Part::Allcore, start: |_| regions() },
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
        let (mut mapping, mut next) = (make(), 0);
        worker.repeat_many(|_| {
            // A refusal stays until the end of the round.
            let Ok(memory) = &mapping else { return 0 };
            memory.touch(next);
            next += 1;
            if next == memory.steps() {
                // Relaxed, here and below: read after the threads' end.
                self.reached.fetch_add(memory.touches(), Ordering::Relaxed);
                (mapping, next) = (make(), 0);
            }
            1
        });
        match mapping {
            Ok(memory) => _ = self.reached.fetch_add(memory.touches(), Ordering::Relaxed),
            Err(reason) => worker.refuse(reason),
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

/// The engine's memory, touched as the engine touches it ahead of use.
#[derive(Debug)]
struct Regions {
    reached: AtomicU64,
}

fn regions() -> Started {
    Ok(Box::new(Regions { reached: AtomicU64::new(0) }))
}

impl Subject for Regions {
    fn work(&self, worker: &mut Worker<'_>) {
        worker.repeat_many(|_| {
            let region = Region::frames(BYTES, HugePages::Try).expect("memory for a region");
            region.touch(0..BYTES);
            let steps = (region.present(0..BYTES) / STEP) as u64;
            // Relaxed: read after the threads' end.
            self.reached.fetch_add(steps, Ordering::Relaxed);
            (BYTES / STEP) as u64
        });
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        has_reached(&self.reached, operations)
    }
}
