//! Big memory: frames on huge pages, and reserved arrays that are backed as they are touched.

use std::io;
use std::ops::Range;

use sync::atomic::{AtomicU32, AtomicU64};

/// Whether huge pages are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HugePages {
    /// Explicit huge pages if granted, else transparent ones, else ordinary ones.
    #[default]
    Try,
    /// Ordinary pages.
    Off,
}

/// What a region was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionKind {
    /// 2 MiB pages from the kernel's pool.
    Huge,
    /// Ordinary pages the kernel was asked to merge into huge ones.
    Transparent,
    /// Ordinary pages.
    Ordinary,
}

/// Zeroed anonymous memory, mapped until dropped.
#[derive(Debug)]
pub struct Region {
    start: *mut u8,
    len: usize,
    kind: RegionKind,
}

// SAFETY: a region is only an address range; who may touch which byte is up to its owner.
unsafe impl Send for Region {}
// SAFETY: as above: it gives out a raw pointer only.
unsafe impl Sync for Region {}

impl Region {
    /// Memory for `bytes` (rounded up to whole pages of the kind granted).
    pub fn frames(_bytes: usize, _pages: HugePages) -> io::Result<Region> {
        todo!()
    }

    /// First byte: aligned to the page size.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.len
    }

    /// What was granted.
    pub fn kind(&self) -> RegionKind {
        self.kind
    }

    /// Touches every page with several threads, so that serving never faults.
    pub fn prefault(&self, _threads: usize) {
        todo!()
    }
}

/// The atomics an [`AtomicArray`] may hold: valid when all their bytes are zero.
pub trait ZeroAtomic: sealed::Sealed + Send + Sync + 'static {}

mod sealed {
    /// Only the atomics of this crate's choice.
    pub trait Sealed {}
    impl Sealed for super::AtomicU32 {}
    impl Sealed for super::AtomicU64 {}
}

impl ZeroAtomic for AtomicU32 {}
impl ZeroAtomic for AtomicU64 {}

/// A zeroed array of atomics in reserved virtual memory, backed lazily.
#[derive(Debug)]
pub struct AtomicArray<T: ZeroAtomic> {
    start: *mut T,
    len: usize,
}

// SAFETY: shared access gives `&T` to atomics only.
unsafe impl<T: ZeroAtomic> Send for AtomicArray<T> {}
// SAFETY: as above.
unsafe impl<T: ZeroAtomic> Sync for AtomicArray<T> {}

impl<T: ZeroAtomic> AtomicArray<T> {
    /// Reserves room for `len` zeroed elements.
    pub fn reserve(_len: usize) -> io::Result<Self> {
        todo!()
    }

    /// Element `index`. Panics out of bounds.
    #[inline]
    pub fn get(&self, index: usize) -> &T {
        assert!(index < self.len, "index {index} of {}", self.len);
        // SAFETY: inside the mapping, which lives as long as `self`, holds zeroes or what the atomics wrote, and is aligned.
        unsafe { &*self.start.add(index) }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives memory back: elements of the range read zero again (whole pages only; the rest is set to zero singly).
    pub fn release(&self, _range: Range<usize>) {
        todo!()
    }
}
