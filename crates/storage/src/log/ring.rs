//! The log's latest bytes in memory: position modulo size. All cores fill it at once, each its own
//! reservation. The gatherer reads it below the filled point. Room is granted so that nothing is
//! overwritten before it is on disk.
//!
//! A helper touches all of it when it is made, from the place of the first append on. So the cores
//! take no page faults in their first lap. A core that is ahead of the helper does not wait for it.

use std::ptr;
use std::sync::Arc;

use runtime::helper::{Helper, Urgency};
use runtime::memory::{HugePages, Region};
use runtime::{Cause, fail_stop};

use super::BLOCK;

/// Bytes that the helper touches at a time: a huge page.
const STEP: usize = 2 << 20;

/// The ring's memory, aligned for direct I/O. Cores reach it only through the unsafe methods, whose
/// callers prove that writers' ranges are disjoint and that nobody writes readers' ranges any more.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Arc<Region>,
    size: usize,
    /// Touches the memory. Kept until the ring is dropped.
    _toucher: Option<Helper>,
}

impl Ring {
    /// Memory for the log's last `size` bytes, filled from position `first` on. Ends the process
    /// where the system has none.
    pub(super) fn new(size: usize, pages: HugePages, first: u64) -> Ring {
        assert!(size.is_power_of_two() && size >= BLOCK as usize);
        match Region::beside_frames(size, pages) {
            Ok(memory) => {
                let memory = Arc::new(memory);
                let toucher = toucher(&memory, size, first);
                Ring { memory, size, _toucher: toucher }
            }
            Err(error) => {
                fail_stop(Cause::System, format_args!("no memory for {size} bytes of the log: {error}"))
            }
        }
    }

    /// The memory. Its first [`Ring::size`] bytes are the ring.
    pub(super) fn memory(&self) -> &Region {
        &self.memory
    }

    pub(super) fn size(&self) -> u64 {
        self.size as u64
    }

    /// Copies `bytes` to `position` and on.
    ///
    /// # Safety
    /// The caller owns this range of positions (reserved, not completed), and the bytes a ring's
    /// size before it are on disk.
    #[inline]
    pub(super) unsafe fn write(&self, position: u64, bytes: &[u8]) {
        assert!(bytes.len() <= self.size);
        let at = (position as usize) & (self.size - 1);
        let first = bytes.len().min(self.size - at);
        // SAFETY: both pieces lie within the memory, and by the caller's promise nothing else
        // touches them.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.as_ptr().add(at), first);
            ptr::copy_nonoverlapping(bytes.as_ptr().add(first), self.memory.as_ptr(), bytes.len() - first);
        }
    }

    /// How many of the `length` bytes from `position` on lie before the ring's memory ends.
    pub(super) fn piece(&self, position: u64, length: usize) -> usize {
        length.min(self.size - ((position as usize) & (self.size - 1)))
    }

    /// The bytes from `position` on: `length` of them, or fewer where the ring's memory ends.
    ///
    /// # Safety
    /// The range is filled, and stays in the ring for as long as the slice is used: it is not
    /// published as durable before.
    pub(super) unsafe fn read(&self, position: u64, length: usize) -> &[u8] {
        let at = (position as usize) & (self.size - 1);
        // SAFETY: within the memory; by the caller's promise nobody writes it meanwhile.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(at), self.piece(position, length)) }
    }
}

/// Starts to touch the ring's memory beside the cores, in the order in which they fill it. The
/// pages are never explicit huge ones, so no core waits for a helper of the lowest priority.
fn toucher(memory: &Arc<Region>, size: usize, first: u64) -> Option<Helper> {
    #[cfg(variants)]
    if variants::chosen::is_stock(variants::chosen::Row::Preload) {
        return None;
    }
    debug_assert!(!memory.kind().is_explicit());
    let memory = Arc::clone(memory);
    let step = STEP.min(size);
    let mut places = (0..size / step).map(move |at| (first as usize + at * step) & (size - 1) & !(step - 1));
    let touch = move || {
        let next = places.next();
        next.inspect(|&place| memory.touch(place..place + step)).is_some()
    };
    Some(Helper::start("touch log", Urgency::Idle, &[], touch))
}
