//! Row `shared-page-tables`: bytes of page tables for memory that all threads or processes have
//! reached.
//!
//! Linux has no processes that share the tables of ordinary pages. Threads of one address space
//! stand for DragonFly's.

use calls::memory::{Mapping, Object, PageKind, Toucher, WITH_NOTHING, table_bytes};

use super::{Arm, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// The memory that all reach.
const BYTES: usize = 64 << 20;
/// Steps of an operation: the tables are counted, not the time.
const STEPS: u32 = 1000;

/// The row.
pub(super) const ROW: Row = Row {
    id: "shared-page-tables",
    report: "DragonFly, in B14",
    about: "page tables of 64 MiB that all reach: one for each process, against one for all",
    operation: "none: the figure is the bytes of all page tables, and less is better",
    needs: None,
    code: "crates/calls/src/memory",
    arms: &[
        Arm { name: "processes", part: Part::Stock, start: |threads| processes(threads, PageKind::Ordinary) },
        Arm {
            name: "processes, huge",
            part: Part::Step,
            start: |threads| processes(threads, PageKind::Transparent),
        },
        Arm {
            name: "processes, reserved",
            part: Part::Step,
            start: |threads| processes(threads, PageKind::Reserved),
        },
        Arm { name: "threads", part: Part::Published, start: |_| threads() },
    ],
};

/// Memory that has been reached, with the size of the tables for it.
#[derive(Debug)]
struct Tables {
    mapping: Mapping,
    /// By processes, which have tables as long as they live.
    _touchers: Box<[Toucher]>,
    bytes: u64,
    /// The least that tables of ordinary pages can have.
    least: u64,
    touches: u64,
}

fn processes(threads: usize, kind: PageKind) -> Started {
    let object = Object::new(BYTES, kind)?;
    let mapping = Mapping::of(&object, WITH_NOTHING)?;
    let touchers =
        (0..threads).map(|_| Toucher::start(&object, &mapping, 0)).collect::<Result<Box<[_]>, _>>()?;
    let grow = |toucher: &Toucher| {
        let before = toucher.table_bytes();
        toucher.touch();
        toucher.table_bytes().saturating_sub(before)
    };
    let bytes = touchers.iter().map(grow).sum();
    let touches = (threads * mapping.steps()) as u64;
    // An entry of 8 bytes a page.
    let least = if kind == PageKind::Ordinary { touches * 8 } else { 0 };
    Ok(Box::new(Tables { mapping, _touchers: touchers, bytes, least, touches }))
}

fn threads() -> Started {
    let object = Object::new(BYTES, PageKind::Ordinary)?;
    let mapping = Mapping::of(&object, WITH_NOTHING)?;
    let before = table_bytes();
    // One thread for all: the others would find the entries that it makes.
    (0..mapping.steps()).for_each(|step| mapping.touch(step));
    let bytes = table_bytes().saturating_sub(before);
    let touches = mapping.steps() as u64;
    // Other threads of this process change its tables too, so there is no least.
    Ok(Box::new(Tables { mapping, _touchers: Box::default(), bytes, least: 0, touches }))
}

impl Subject for Tables {
    fn work(&self, worker: &mut Worker<'_>) {
        worker.repeat(|_| compute(STEPS));
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn is_within(&self) -> bool {
        false
    }

    fn check(&self, _: u64) -> Result<(), String> {
        let touches = self.mapping.touches();
        if touches != self.touches {
            return Err(format!("{} touches have added up to {touches}", self.touches));
        }
        if self.bytes < self.least {
            return Err(format!("{} bytes of page tables, where {} are needed", self.bytes, self.least));
        }
        Ok(())
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
