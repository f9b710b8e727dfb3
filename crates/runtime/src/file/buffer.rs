//! Memory aligned for direct I/O.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::fail_stop::{Cause, fail_stop};

/// Zeroed bytes at a multiple of 4 KiB, as direct I/O wants them.
#[derive(Debug)]
pub struct AlignedBuf {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer owns its memory alone.
unsafe impl Send for AlignedBuf {}
// SAFETY: shared access only reads.
unsafe impl Sync for AlignedBuf {}

impl AlignedBuf {
    /// The start is a multiple of this.
    pub const ALIGNMENT: usize = 4096;

    /// `len` zeroed bytes; `len` is rounded up to a multiple of 4 KiB. Ends the process where the
    /// system has no memory for them.
    pub fn new(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout's size is not zero (at least one page).
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            fail_stop(Cause::System, format_args!("no memory for a buffer of {} bytes", layout.size()))
        };
        Self { start, len: layout.size() }
    }

    fn layout(len: usize) -> Layout {
        let size = len.max(1).next_multiple_of(Self::ALIGNMENT);
        Layout::from_size_align(size, Self::ALIGNMENT).expect("a buffer fits in memory")
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `start` owns `len` initialized bytes until drop.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBuf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for Deref, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), Self::layout(self.len)) };
    }
}
