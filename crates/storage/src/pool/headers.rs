//! The frames' headers, in zeroed memory that is backed as it is touched.

use std::ops::Deref;
use std::sync::Arc;

use runtime::memory::Region;

use crate::frame::Frame;

/// One header a frame. Zeroed memory is a frame without a page.
#[derive(Debug)]
pub(crate) struct Headers {
    /// The region's beginning, kept here so that a look at a header does not first load it.
    start: *const Frame,
    frames: usize,
    /// Keeps the memory mapped.
    region: Arc<Region>,
}

// SAFETY: as a shared slice of frames, which are atomics.
unsafe impl Send for Headers {}
// SAFETY: as above.
unsafe impl Sync for Headers {}

impl Headers {
    /// Headers of so many frames without pages, in a new region of zeroed memory.
    ///
    /// # Panics
    /// When the region is too small.
    pub(crate) fn new(region: Arc<Region>, frames: usize) -> Headers {
        let start: *const Frame = region.as_ptr().cast();
        assert!(frames * size_of::<Frame>() <= region.len() && start.is_aligned());
        Headers { start, frames, region }
    }

    /// The memory they lie in.
    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }
}

impl Deref for Headers {
    type Target = [Frame];

    #[inline]
    fn deref(&self) -> &[Frame] {
        // SAFETY: the region is aligned, large enough, and mapped as long as `self`. It was zeroed
        // and is changed through these atomics only, for which all bytes zero are a value.
        unsafe { std::slice::from_raw_parts(self.start, self.frames) }
    }
}
