//! Row `relation-size`: planners ask for the size of a table that grows now and then.

use std::fs::File;

use calls::size::{Pages, Seek, Stat, grow};
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::{CachePadded, Mutex};

use super::{Arm, Machine, Part, Row, Started, compute};
use crate::round::{Subject, Worker};

/// Every operation of this number grows the file, which takes microseconds.
const GROW: u64 = 65_536;
/// Steps of a plan, some 1 us.
const STEPS: u32 = 500;

/// The row.
pub(super) const ROW: Row = Row {
    id: "relation-size",
    report: "H11",
    about: "a table's pages, which each planner asks for: lseek on one file, against lseek and fstat on a \
            file for each thread, against memory. The file's mutex stands in for the inode's of 2011",
    operation: "ask for the number of pages, compute for 1 us; 1 in 65,536 adds a page",
    needs: Some(Machine::Cores(64, "those who seek meet at the mutex only if they run at once")),
    code: "crates/calls/src/size.rs",
    arms: &[
        Arm { name: "lseek, shared file", part: Part::Stock, start: |_| table(Seek::shared(file()?)) },
        Arm {
            name: "lseek, own file",
            part: Part::Published,
            start: |threads| table(Seek::own(&file()?, threads).map_err(|error| refused(threads, &error))?),
        },
        Arm {
            name: "fstat, own file",
            part: Part::Published,
            start: |threads| table(Stat::own(&file()?, threads).map_err(|error| refused(threads, &error))?),
        },
        Arm { name: "in memory", part: Part::Allcore, start: |_| table(Known::new(file()?)) },
    ],
};

/// A file that goes with its last descriptor, in the folder for temporary files.
pub(super) fn file() -> Result<File, String> {
    tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))
}

fn refused(threads: usize, error: &std::io::Error) -> String {
    format!("no open file for each of {threads} threads: {error}: see ulimit -n, or name fewer by --threads")
}

/// The engine's way: a thread that grows the file stores its pages in memory.
#[derive(Debug)]
struct Known {
    pages: CachePadded<AtomicU64>,
    growth: Mutex<u64>,
    file: File,
}

impl Known {
    fn new(file: File) -> Self {
        Self { pages: CachePadded::new(AtomicU64::new(0)), growth: Mutex::new(0), file }
    }
}

impl Pages for Known {
    #[inline]
    fn pages(&self, _: usize) -> u64 {
        // Relaxed: a count; the pages themselves are reached in other ways.
        self.pages.load(Ordering::Relaxed)
    }

    fn grow(&self) {
        let pages = grow(&self.file, &self.growth);
        // Relaxed: as above. Two growers may store in either order, and the larger count stays.
        self.pages.fetch_max(pages, Ordering::Relaxed);
    }
}

fn table(pages: impl Pages + 'static) -> Started {
    Ok(Box::new(Table { pages, grown: AtomicU64::new(0), has_fallen: AtomicBool::new(false) }))
}

#[derive(Debug)]
struct Table<P> {
    pages: P,
    grown: AtomicU64,
    has_fallen: AtomicBool,
}

impl<P: Pages> Subject for Table<P> {
    fn work(&self, worker: &mut Worker<'_>) {
        let (thread, mut count, mut last, mut grown) = (worker.number(), 0u64, 0, 0);
        let mut has_fallen = false;
        worker.repeat(|_| {
            count += 1;
            let is_grower = count.is_multiple_of(GROW);
            if is_grower {
                self.pages.grow();
                grown += 1;
            }
            let pages = self.pages.pages(thread);
            has_fallen |= pages < last + u64::from(is_grower);
            last = pages;
            compute(STEPS);
        });
        // Relaxed, both: read after the threads' end.
        self.grown.fetch_add(grown, Ordering::Relaxed);
        self.has_fallen.fetch_or(has_fallen, Ordering::Relaxed);
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn check(&self, _: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        let (grown, pages) = (self.grown.load(Ordering::Relaxed), self.pages.pages(0));
        if self.has_fallen.load(Ordering::Relaxed) {
            return Err("a thread saw the table shrink".into());
        }
        if pages != grown {
            return Err(format!("{grown} pages were added, and {pages} are there"));
        }
        Ok(())
    }
}
