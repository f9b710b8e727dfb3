//! Stacks of fibers. What must hold: each has a guard page below, so that an overflow faults
//! instead of writing elsewhere.

use std::cell::{Cell, RefCell};
use std::io;
use std::num::NonZeroUsize;

use corosensei::stack::StackPointer;
use sync::core_local;

use crate::device::Purpose;
use crate::os::mapping;

/// Usable bytes of a fiber's stack. Only what is touched takes memory.
pub(crate) const STACK_BYTES: usize = 4 << 20;
const GUARD_BYTES: usize = 4096;
const MAPPED_BYTES: usize = STACK_BYTES + GUARD_BYTES;
/// Further stacks that the fibers of one core may have at a time. Each takes two of the 65,530
/// mappings that Linux grants a process, and at least 8 KiB of memory.
pub(crate) const FURTHER_MAX: usize = 2048;

/// Stacks kept without a fiber, on each core.
const SPARE_MAX: usize = 64;

core_local! {
    /// Further stacks in use on this core.
    static FURTHER: Cell<usize> = const { Cell::new(0) };
    /// Stacks without a fiber.
    static SPARE: RefCell<Vec<Stack>> = const { RefCell::new(Vec::new()) };
}

/// A stack from the core's stock.
pub(crate) fn take() -> Option<Stack> {
    SPARE.with_borrow_mut(Vec::pop)
}

/// Puts a stack into the core's stock, which holds some.
pub(crate) fn keep(stack: Stack) {
    // A thread that is ending has no stock, so the stack is unmapped.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.push(stack);
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
}

/// Gives the memory of the lowest `bytes` of a stack back, in whole pages; they are zero when they
/// are used again. Nothing may stand there.
pub(crate) fn shed(lowest: usize, bytes: usize) {
    let bytes = bytes & !(GUARD_BYTES - 1);
    if bytes > 0 {
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
