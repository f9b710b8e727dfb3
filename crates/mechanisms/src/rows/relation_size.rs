//! Row `relation-size`: planners ask for the size of a table that grows now and then.
//!
//! The report measured prepared plans, which do not ask. They had no such fall from 40 to 56
//! clients as plans made each time, so they are its fix here. `fstat` and the kernel's `lseek`
//! without a mutex are steps, which still ask. The growth of the engine's file also reserves the
//! page on the disk.

use std::fs::File;
use std::path::Path;

use calls::size::{Pages, Seek, Stat, grow};
use storage::datafile::{DataFile, Opening};
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::{CachePadded, Mutex, SpinLock};

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
    about: "a table's pages, which each planner asks for: lseek on one file, against a file for each thread, \
            prepared plans that do not ask, and memory. A file for each thread is asked by lseek and by fstat. \
            The file's mutex stands in for the inode's of 2011",
    operation: "ask for the number of pages, compute for 1 us; 1 in 65,536 adds a page",
    needs: Some(Machine::Cores(64, "those who seek meet at the mutex only if they run at once")),
    code: "crates/calls/src/size.rs",
    arms: &[
        Arm { name: "lseek, shared file", part: Part::Stock, start: |_| table(Seek::shared(file()?)) },
        Arm {
            name: "lseek, own file",
            part: Part::Step,
            start: |threads| table(Seek::own(&file()?, threads).map_err(|error| refused(threads, &error))?),
        },
        Arm {
            name: "fstat, own file",
            part: Part::Step,
            start: |threads| table(Stat::own(&file()?, threads).map_err(|error| refused(threads, &error))?),
        },
        Arm { name: "spin-locked entry", part: Part::Step, start: |_| table(Entry::new(file()?)) },
        Arm {
            name: "prepared",
            part: Part::Published,
            start: |threads| table(Prepared::new(file()?, threads)),
        },
        Arm { name: "DataFile", part: Part::Allcore, start: |_| table(Own::new()?) },
    ],
};

/// A file that goes with its last descriptor, in the folder for temporary files.
pub(super) fn file() -> Result<File, String> {
    tempfile::tempfile().map_err(|error| format!("no temporary file: {error}"))
}

fn refused(threads: usize, error: &std::io::Error) -> String {
    format!("no open file for each of {threads} threads: {error}: see ulimit -n, or name fewer by --threads")
}

/// A cached entry behind one spin lock: no system call, and a lock for all.
#[derive(Debug)]
struct Entry {
    pages: CachePadded<SpinLock<u64>>,
    growth: Mutex<u64>,
    file: File,
}

impl Entry {
    fn new(file: File) -> Self {
        let pages = CachePadded::new(SpinLock::new(&"size entry", 0));
        Self { pages, growth: Mutex::new(0), file }
    }
}

impl Pages for Entry {
    #[inline]
    fn pages(&self, _: usize) -> u64 {
        *self.pages.lock()
    }

    fn grow(&self) {
        let pages = grow(&self.file, &self.growth);
        let mut entry = self.pages.lock();
        // Two growers may come here in either order.
        *entry = pages.max(*entry);
    }
}

/// Prepared plans, which do not ask: a thread keeps the size that its plan was made with. A growth
/// makes all plans anew, so each thread asks once behind it.
#[derive(Debug)]
struct Prepared {
    seek: Seek,
    /// Growths until now: a plan of an older one is made anew.
    growths: CachePadded<AtomicU64>,
    plans: Box<[CachePadded<Plan>]>,
}

/// A thread's plan.
#[derive(Debug, Default)]
struct Plan {
    growths: AtomicU64,
    pages: AtomicU64,
}

impl Prepared {
    fn new(file: File, threads: usize) -> Self {
        let plans = (0..threads).map(|_| CachePadded::default()).collect();
        Self { seek: Seek::shared(file), growths: CachePadded::default(), plans }
    }
}

impl Pages for Prepared {
    #[inline]
    fn pages(&self, thread: usize) -> u64 {
        let plan = &self.plans[thread];
        // Acquire: the file has the page of each growth that is seen.
        let growths = self.growths.load(Ordering::Acquire);
        // Relaxed, here and below: the plan is the thread's own.
        if plan.growths.load(Ordering::Relaxed) != growths {
            plan.pages.store(self.seek.pages(thread), Ordering::Relaxed);
            plan.growths.store(growths, Ordering::Relaxed);
        }
        plan.pages.load(Ordering::Relaxed)
    }

    fn grow(&self) {
        self.seek.grow();
        // Release: as above.
        self.growths.fetch_add(1, Ordering::Release);
    }
}

/// The engine's file of pages, which keeps their number in memory. One thread at a time grows it.
#[derive(Debug)]
struct Own {
    file: DataFile,
    growth: Mutex<()>,
}

impl Own {
    fn new() -> Result<Self, String> {
        let file = DataFile::open(Path::new(""), Opening::Nameless);
        Ok(Self {
            file: file.map_err(|error| format!("no temporary file: {error}"))?,
            growth: Mutex::new(()),
        })
    }
}

impl Pages for Own {
    #[inline]
    fn pages(&self, _: usize) -> u64 {
        self.file.pages().into()
    }

    fn grow(&self) {
        let _alone = self.growth.lock();
        self.file.grow(self.file.pages() + 1).expect("a temporary file grows by a page");
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
