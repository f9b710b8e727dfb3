//! Stacks of fibers: mapped with a guard page below, so that an overflow faults instead of writing elsewhere.

use std::io;
use std::num::NonZeroUsize;
use std::ptr;

use corosensei::stack::StackPointer;

/// Usable bytes of a fiber's stack. Only what is touched takes memory.
pub(crate) const STACK_BYTES: usize = 4 << 20;
const GUARD_BYTES: usize = 4096;
const MAPPED_BYTES: usize = STACK_BYTES + GUARD_BYTES;

/// One mapped stack.
pub(crate) struct Stack {
    mapping: NonZeroUsize,
}

impl Stack {
    pub(crate) fn map() -> io::Result<Self> {
        // SAFETY: a new anonymous mapping touches no existing memory. MAP_STACK and MAP_NORESERVE: pages come as
        // they are touched.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                MAPPED_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self { mapping: NonZeroUsize::new(start as usize).expect("a mapping is not at zero") };
        // A huge page for the first word that is touched would take 2 MiB a fiber. Advice: kernels without huge pages refuse it.
        // SAFETY: our own mapping, whole.
        unsafe { libc::madvise(start, MAPPED_BYTES, libc::MADV_NOHUGEPAGE) };
        // SAFETY: the lowest page of our own mapping.
        crate::os::check(unsafe { libc::mprotect(start, GUARD_BYTES, libc::PROT_NONE) })?;
        Ok(stack)
    }

    /// The lowest address that may be used.
    pub(crate) fn lowest(&self) -> usize {
        self.mapping.get() + GUARD_BYTES
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: our own mapping, whole, and no fiber runs on it any more.
        unsafe { libc::munmap(self.mapping.get() as *mut libc::c_void, MAPPED_BYTES) };
    }
}

// SAFETY: the mapping has a guard page at its low end and far more than the minimum size; base and limit are page-aligned.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.mapping.checked_add(MAPPED_BYTES).expect("a mapping does not wrap")
    }

    fn limit(&self) -> StackPointer {
        self.mapping
    }
}
