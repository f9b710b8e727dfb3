//! Row `pinned-memory`: sessions come, reach shared memory and go, as processes with an address
//! space each, or as the engine's threads in one.
//!
//! FreeBSD kept a list of mappings for each page. Linux keeps a count, so its cost for a page
//! should not grow with processes. Each page of each mapping still has its work: an entry made by a
//! fault, its count, and both taken back. Huge pages of the kernel's pool have a 512th of it.
//! Locked ordinary pages cannot be swapped out either, and are tracked all the same.

use calls::memory::{Mapping, PageKind, Toucher, WITH_NOTHING};
use runtime::memory::HugePages;
use sync::Mutex;

use super::fault_path::{BYTES, Shared, begin, region};
use super::{Arm, Part, Row, Started};
use crate::round::{Subject, Worker};

/// [`processes`] with locked pages.
const LOCKED: bool = true;
/// [`processes`] with pages that can be swapped out.
const PAGED: bool = false;

/// The row.
pub(super) const ROW: Row = Row {
    id: "pinned-memory",
    report: "B14",
    about: "mappings of shared memory: of pages that the kernel tracks and can swap out, against pages that stay",
    operation: "reach 4 KiB of 4 MiB of resident memory, which a session's process maps before and unmaps \
                after. The engine's sessions share one mapping",
    needs: None,
    code: "crates/calls/src/memory",
    arms: &[
        Arm {
            name: "ordinary",
            part: Part::Stock,
            start: |threads| processes(threads, PageKind::Ordinary, PAGED),
        },
        Arm {
            name: "locked",
            part: Part::Step,
            start: |threads| processes(threads, PageKind::Ordinary, LOCKED),
        },
        Arm {
            name: "transparent huge",
            part: Part::Step,
            start: |threads| processes(threads, PageKind::Transparent, PAGED),
        },
        Arm {
            name: "reserved huge",
            part: Part::Published,
            start: |threads| processes(threads, PageKind::Reserved, PAGED),
        },
        Arm { name: "Region", part: Part::Allcore, start: |_| region(HugePages::Try) },
    ],
};

fn processes(threads: usize, kind: PageKind, locked: bool) -> Started {
    let shared = Shared::new(kind)?;
    // The processes inherit a mapping that they do not touch.
    let idle = Mapping::of(&shared.object, WITH_NOTHING)?;
    let begins = |thread| begin(thread, shared.all.steps());
    let start = |thread| Toucher::start(&shared.object, &idle, begins(thread)).map(Mutex::new);
    let touchers = (0..threads).map(start).collect::<Result<_, _>>()?;
    Ok(Box::new(Processes { shared, touchers, locked }))
}

/// Processes that map the memory for each pass.
#[derive(Debug)]
struct Processes {
    /// Keeps the pages, and counts.
    shared: Shared,
    touchers: Box<[Mutex<Toucher>]>,
    locked: bool,
}

impl Subject for Processes {
    fn work(&self, worker: &mut Worker<'_>) {
        let toucher = self.touchers[worker.number()].lock();
        // A refusal stays until the end of the round.
        let mut is_refused = false;
        worker.repeat_many(|_| {
            is_refused |= !toucher.remap(self.locked);
            if is_refused { 0 } else { self.shared.all.steps() as u64 }
        });
        if is_refused {
            let limit = "for locked pages, see RLIMIT_MEMLOCK (ulimit -l)";
            worker.refuse(format!("the kernel refuses a process a mapping of {BYTES} bytes; {limit}"));
        }
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn is_within(&self) -> bool {
        false
    }

    fn check(&self, operations: u64) -> Result<(), String> {
        self.shared.check(operations)
    }

    fn shoots_down(&self) -> bool {
        true
    }
}
