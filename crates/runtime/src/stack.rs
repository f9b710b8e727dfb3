//! Stacks of fibers. What must hold:
//!
//! 1. Each has a guard page below, so that an overflow faults instead of writing elsewhere.
//! 2. A core that serves the same load again and again neither maps nor unmaps a stack. To unmap
//!    one interrupts every core of the process, and the next fiber faults its pages in again. So a
//!    core's stock keeps what the core has needed lately, and falls slowly afterwards.

use std::cell::{Cell, RefCell};
use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;

use corosensei::stack::StackPointer;
use sync::core_local;

use crate::device::Purpose;
use crate::os::mapping;
use crate::timer;

/// Usable bytes of a fiber's stack. Only what is touched takes memory.
pub(crate) const STACK_BYTES: usize = 4 << 20;
const GUARD_BYTES: usize = 4096;
const MAPPED_BYTES: usize = STACK_BYTES + GUARD_BYTES;
/// Further stacks that the fibers of one core may have at a time. Each takes two of the 65,530
/// mappings that Linux grants a process, and at least 8 KiB of memory.
pub(crate) const FURTHER_MAX: usize = 2048;

/// Stacks without a fiber that each core keeps, at least.
const SPARE_LEAST: usize = 64;
/// Time between two looks at a stock of more: stacks that were spare all the time are unneeded.
const BETWEEN: Duration = Duration::from_secs(10);
/// Unneeded stacks that one look unmaps, at most. It takes the kernel about 1 ms.
const UNMAPPED_MOST: usize = 128;
/// A full stock keeps no stack of which more than this many bytes were used: its memory would stay.
const KEPT_BYTES: usize = 128 << 10;

core_local! {
    /// Further stacks in use on this core.
    static FURTHER: Cell<usize> = const { Cell::new(0) };
    /// Stacks without a fiber.
    static SPARE: RefCell<Stock> = const { RefCell::new(Stock::EMPTY) };
}

/// The stacks without a fiber on one core.
struct Stock {
    stacks: Vec<Stack>,
    /// The fewest stacks since the last look.
    fewest: usize,
    /// Whether a timer is set for the next look.
    is_watched: bool,
}

impl Stock {
    const EMPTY: Stock = Stock { stacks: Vec::new(), fewest: 0, is_watched: false };

    fn take(&mut self) -> Option<Stack> {
        let taken = self.stacks.pop();
        self.fewest = self.fewest.min(self.stacks.len());
        taken
    }

    /// Unmaps unneeded stacks. Returns whether there are enough for another look.
    fn look(&mut self) -> bool {
        let unneeded = self.fewest.saturating_sub(SPARE_LEAST).min(UNMAPPED_MOST);
        // The oldest ones: their pages are in no cache.
        self.stacks.drain(..unneeded);
        self.fewest = self.stacks.len();
        self.is_watched = self.fewest > SPARE_LEAST;
        self.is_watched
    }
}

/// A stack from the core's stock.
pub(crate) fn take() -> Option<Stack> {
    SPARE.with_borrow_mut(Stock::take)
}

/// Puts a stack into the core's stock.
pub(crate) fn keep(stack: Stack) {
    // A thread that is ending has no stock, so the stack is unmapped.
    let is_begun = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        let is_full = spare.stacks.len() >= SPARE_LEAST;
        // A stock that no timer watches would keep its stacks for ever.
        if is_full && (!timer::is_fired() || stack.has_been_deep()) {
            return false;
        }
        spare.stacks.push(stack);
        let begins = is_full && !spare.is_watched;
        if begins {
            spare.is_watched = true;
            spare.fewest = spare.stacks.len();
        }
        begins
    });
    if is_begun.unwrap_or(false) {
        watch();
    }
}

/// Looks at the stock from time to time, until it is small.
fn watch() {
    timer::after(BETWEEN, || {
        if SPARE.with_borrow_mut(Stock::look) {
            watch();
        }
    });
}

/// One mapped stack.
pub(crate) struct Stack {
    mapping: NonZeroUsize,
}

impl Stack {
    pub(crate) fn map() -> io::Result<Self> {
        let start = mapping::map(MAPPED_BYTES, Purpose::Stack)?;
        let stack = Self { mapping: NonZeroUsize::new(start.addr()).expect("a mapping is not at zero") };
        // A huge page for the first word that is touched would take 2 MiB a fiber. Kernels without
        // huge pages refuse the advice, and need none.
        // SAFETY: our own mapping, whole.
        unsafe { mapping::advise_huge(start, MAPPED_BYTES, false) };
        // SAFETY: the lowest page of our own mapping.
        unsafe { mapping::forbid(start, GUARD_BYTES) }?;
        Ok(stack)
    }

    /// The lowest address that may be used.
    pub(crate) fn lowest(&self) -> usize {
        self.mapping.get() + GUARD_BYTES
    }

    /// Whether memory stands behind the page that lies [`KEPT_BYTES`] below the beginning. Code
    /// touches each page of a stack on its way down. Costs a system call, which interrupts nobody.
    fn has_been_deep(&self) -> bool {
        let page = self.mapping.get() + MAPPED_BYTES - KEPT_BYTES - GUARD_BYTES;
        mapping::is_resident(page as *const u8)
    }
}

/// Gives the memory of the lowest `bytes` of a stack back, in whole pages; they are zero when they
/// are used again. Nothing may stand there. A stack of which no more than `kept` bytes were ever
/// used keeps its pages. To give them back interrupts every core of the process; to ask whether
/// they are there interrupts none.
pub(crate) fn shed(lowest: usize, bytes: usize, kept: usize) {
    let bytes = bytes & !(GUARD_BYTES - 1);
    let Some(highest) = bytes.min(STACK_BYTES - kept).checked_sub(GUARD_BYTES) else { return };
    // Code touches each page of a stack on its way down.
    if mapping::is_resident((lowest + highest) as *const u8) {
        // SAFETY: the caller says that these pages of a stack's own mapping are not in use. Nothing
        // changes where it fails.
        unsafe { mapping::discard(lowest as *mut u8, bytes) };
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: our own mapping, whole, and no fiber runs on it any more.
        unsafe { mapping::unmap(self.mapping.get() as *mut u8, MAPPED_BYTES) };
    }
}

// SAFETY: the mapping has a guard page at its low end and far more than the minimum size; base and
// limit are page-aligned.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.mapping.checked_add(MAPPED_BYTES).expect("a mapping does not wrap")
    }

    fn limit(&self) -> StackPointer {
        self.mapping
    }
}

/// A stack that a fiber has besides its own.
pub(crate) struct FurtherStack {
    /// None only while it is dropped.
    stack: Option<Stack>,
    /// It goes back to the core's stock.
    kept: bool,
}

impl FurtherStack {
    /// A stack for code that may use all of it, so that its memory is given back with it. Fails
    /// when the core has too many, or the kernel maps no more.
    pub(crate) fn deep() -> io::Result<Self> {
        Self::with(|| None, false)
    }

    /// A stack from the core's stock, or as [`FurtherStack::deep`].
    pub(crate) fn kept() -> io::Result<Self> {
        Self::with(take, true)
    }

    fn with(stock: impl FnOnce() -> Option<Stack>, kept: bool) -> io::Result<Self> {
        if FURTHER.get() >= FURTHER_MAX {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let stack = stock().map_or_else(Stack::map, Ok)?;
        FURTHER.set(FURTHER.get() + 1);
        Ok(Self { stack: Some(stack), kept })
    }

    /// The lowest address that may be used.
    pub(crate) fn lowest(&self) -> usize {
        self.there().lowest()
    }

    fn there(&self) -> &Stack {
        self.stack.as_ref().expect("a stack that is not dropped")
    }
}

impl Drop for FurtherStack {
    fn drop(&mut self) {
        FURTHER.set(FURTHER.get() - 1);
        if let (true, Some(stack)) = (self.kept, self.stack.take()) {
            keep(stack);
        }
    }
}

// SAFETY: as for the stack it holds.
unsafe impl corosensei::stack::Stack for FurtherStack {
    fn base(&self) -> StackPointer {
        self.there().base()
    }

    fn limit(&self) -> StackPointer {
        self.there().limit()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use sync::WaitQueue;
    use sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::tests::start;

    #[test]
    fn a_stack_gives_pages_back_only_if_it_was_used_deeply() {
        const USED: usize = 8 << 10;
        const KEPT: usize = 64 << 10;
        let stack = Stack::map().unwrap();
        let base = stack.lowest() + STACK_BYTES;
        let touch = |depth: usize| {
            // SAFETY: the stack's own mapping, which nobody uses.
            (1..=depth / 4096).for_each(|page| unsafe { ((base - page * 4096) as *mut u8).write(1) });
        };
        let is_there = |depth: usize| mapping::is_resident((base - depth) as *const u8);
        touch(KEPT);
        shed(stack.lowest(), STACK_BYTES - USED, KEPT);
        assert!(is_there(USED) && is_there(KEPT));
        touch(KEPT + 4096);
        shed(stack.lowest(), STACK_BYTES - USED, KEPT);
        assert!(is_there(USED) && !is_there(USED + 4096) && !is_there(KEPT + 4096));
        // More is in use than is kept.
        touch(4 * KEPT);
        shed(stack.lowest(), STACK_BYTES - 2 * KEPT, KEPT);
        assert!(is_there(2 * KEPT) && !is_there(2 * KEPT + 4096) && !is_there(4 * KEPT));
        // Nothing is free.
        shed(stack.lowest(), 0, KEPT);
    }

    #[test]
    fn a_burst_of_fibers_finds_the_stacks_of_the_last_one() {
        const FIBERS: usize = 400;
        let runtime = start(1);
        let burst = || {
            let (queue, opened) = (Arc::new(WaitQueue::new(&"test")), Arc::new(AtomicBool::new(false)));
            let (told, ends) = channel();
            for _ in 0..FIBERS {
                let (queue, opened, told) = (queue.clone(), opened.clone(), told.clone());
                runtime.spawn(0, move || {
                    queue.wait_until(|| opened.load(Ordering::Acquire));
                    told.send(()).unwrap();
                });
            }
            // Behind the fibers, in the same mailbox: each of them waits by now.
            runtime.call(0, || ());
            opened.store(true, Ordering::Release);
            runtime.call(0, || queue.wake_all());
            (0..FIBERS).for_each(|_| ends.recv().unwrap());
        };
        burst();
        let spare_after = || runtime.call(0, || SPARE.with_borrow(|spare| spare.stacks.len()));
        let first = spare_after();
        assert!(first > SPARE_LEAST, "{first} stacks are spare");
        for _ in 0..3 {
            burst();
            assert_eq!(spare_after(), first, "a burst maps and unmaps nothing");
        }
        // A stack that was used deeply is not kept, so the next burst maps another one.
        runtime.call(0, || {
            assert!(SPARE.with_borrow(|spare| spare.stacks.iter().all(|one| !one.has_been_deep())))
        });
        let deep = runtime.call(0, || {
            let stack = Stack::map().unwrap();
            // SAFETY: the stack's own mapping, which nobody uses.
            unsafe { (stack.lowest() as *mut u8).add(STACK_BYTES - KEPT_BYTES - 1).write(1) };
            let is_deep = stack.has_been_deep();
            keep(stack);
            is_deep
        });
        assert!(deep);
        assert_eq!(spare_after(), first, "the deep stack is unmapped");
        // Two looks without a burst between them.
        let look = || runtime.call(0, || SPARE.with_borrow_mut(Stock::look));
        assert!(look());
        assert!(look());
        assert_eq!(spare_after(), first - UNMAPPED_MOST);
        while look() {}
        assert!(spare_after() <= SPARE_LEAST);
        runtime.shutdown();
    }
}
