//! Counts the pages that the running fiber looks at in the pool, and those that it reads from disk.
//! EXPLAIN (BUFFERS) shows them for each node of a plan.
//!
//! What must hold: a thread's counters are its running fiber's. A fiber that suspends takes them
//! along, so what others do meanwhile is not counted for it. Only differences mean something.

use std::cell::Cell;
use std::ops::{Add, Sub};

use sync::core_local;

/// Numbers of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Looks at pages in the pool.
    pub looked: u64,
    /// Pages read from disk.
    pub read: u64,
}

impl PageCounts {
    /// Looks that found the page in the pool. A page that was read is looked at again.
    #[must_use]
    pub fn hit(self) -> u64 {
        self.looked.saturating_sub(self.read)
    }
}

core_local! {
    static COUNTS: Cell<PageCounts> = const { Cell::new(PageCounts { looked: 0, read: 0 }) };
}

impl Sub for PageCounts {
    type Output = PageCounts;

    fn sub(self, before: PageCounts) -> PageCounts {
        PageCounts {
            looked: self.looked.wrapping_sub(before.looked),
            read: self.read.wrapping_sub(before.read),
        }
    }
}

impl Add for PageCounts {
    type Output = PageCounts;

    fn add(self, more: PageCounts) -> PageCounts {
        PageCounts { looked: self.looked + more.looked, read: self.read + more.read }
    }
}

/// Counts a look at a page in the pool.
#[inline]
pub fn looked() {
    COUNTS.with(|counts| {
        let now = counts.get();
        counts.set(PageCounts { looked: now.looked.wrapping_add(1), ..now });
    });
}

/// Counts pages read from disk.
pub fn read(pages: usize) {
    COUNTS.with(|counts| {
        let now = counts.get();
        counts.set(PageCounts { read: now.read.wrapping_add(pages as u64), ..now });
    });
}

/// The running fiber's counters.
#[must_use]
pub fn now() -> PageCounts {
    COUNTS.with(Cell::get)
}

/// Sets the counters to those of the fiber that runs from here on.
pub(crate) fn set(counts: PageCounts) {
    COUNTS.with(|own| own.set(counts));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Runtime, fiber};

    #[test]
    fn a_fiber_does_not_count_what_others_do_while_it_is_suspended() {
        let runtime = Runtime::start(Options { cores: Some(1), pin: false, ..Options::default() }).unwrap();
        let own = runtime.call(0, || {
            let before = now();
            looked();
            fiber::spawn_local(|| {
                (0..10).for_each(|_| looked());
                read(5);
            });
            fiber::yield_now();
            read(2);
            now() - before
        });
        assert_eq!(own, PageCounts { looked: 1, read: 2 });
        runtime.shutdown();
    }
}
