//! The header of one frame: which page lives in it, whether a writer holds it, and which changes
//! are not on disk yet.
//!
//! The state word is a [`VersionLatch`], `[version 43 | latch 1 | pins 20]`. What must hold:
//!
//! 1. `page_no` changes only under the latch, and every such change raises the version. A reader
//!    sees a word, then the wanted page number, then bytes, then the same version and latch again.
//!    So it has read that page.
//! 2. Pins do not touch the version, so a pin never fails an optimistic reader. A frame with pins
//!    keeps its page.
//! 3. The usage count is a byte of its own, so that a hit does not touch the word. A hit writes it
//!    only below its maximum, which is once a sweep for a hot page. An update lost between a hit
//!    and the sweep does no harm.
//! 4. `rec_lsn` is CLEAN, or at most the LSN of the first record of a change that the file does not
//!    hold. It is written under the latch only. It stays while a copy is being written (`writing`).
//!    Changes made meanwhile go to `again`, which takes its place when the write has succeeded. So
//!    one load of `rec_lsn` never misses a change, and a failed write needs no repair.
//! 5. One writer at a time writes a page: it claims `writing` under the latch. The frame of a page
//!    that is being written is never given to another page, because its `rec_lsn` is not CLEAN. So
//!    an old copy never lands after a newer one.
//! 6. Zeroed memory is a frame without a page, so headers need no initialization. Page number and
//!    LSNs are stored as complements for that.
//!
//! `tests/loom_frame.rs` runs this file under loom.

use sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use sync::{Spinners, Version, VersionLatch};

use crate::page::{Lsn, PageNo};

/// The highest usage count: a page survives at most this many passes of the sweep after its last
/// use.
pub(crate) const USAGE_MAX: u8 = 5;
/// `rec_lsn` of a frame whose page equals the one on disk: the highest number, as it is stored.
const CLEAN: u64 = !u64::MAX;
/// `rec_lsn` of a changed page that is never logged: a temporary page, which no checkpoint must
/// write.
const UNLOGGED: u64 = u64::MAX - 1;
/// Bits of the state word that count pins; the version has 43 bits.
const PINS: u32 = 20;

/// A frame's state word at one moment.
pub type State = Version<PINS>;

/// Header of a frame, on a cache line of its own and apart from the page.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Frame {
    /// The state word.
    pub(crate) latch: VersionLatch<PINS>,
    /// The complement of `rec_lsn`, and that of `again`.
    rec_lsn: AtomicU64,
    again: AtomicU64,
    /// The complement of the page's number.
    page_no: AtomicU32,
    /// The next frame of the free list that holds this one. That list's lock guards it.
    next_free: AtomicU32,
    usage: AtomicU8,
    writing: AtomicBool,
    /// The threads that lost the latch to others while they walked to it, in order.
    pub(crate) losers: Spinners,
}

#[cfg(not(loom))] // whose atomics are larger
const _: () = assert!(size_of::<Frame>() == 64 && align_of::<Frame>() == 64);
const _: () = assert!(CLEAN == 0 && !PageNo::NONE.0 == 0, "zeroed memory is a frame without a page");

impl Frame {
    /// A frame without a page.
    #[cfg(test)] // a pool's headers are zeroed memory
    pub(crate) fn new() -> Frame {
        Frame {
            latch: VersionLatch::default(),
            rec_lsn: AtomicU64::new(CLEAN),
            again: AtomicU64::new(CLEAN),
            page_no: AtomicU32::new(!PageNo::NONE.0),
            next_free: AtomicU32::new(0),
            usage: AtomicU8::new(0),
            writing: AtomicBool::new(false),
            losers: Spinners::new(),
        }
    }

    /// The page that lives here. It counts only together with the state word.
    #[inline]
    pub(crate) fn page_no(&self) -> PageNo {
        // Relaxed: validated by the version, see rule 1.
        PageNo(!self.page_no.load(Ordering::Relaxed))
    }

    /// Gives the frame to `page_no`. The caller holds the latch and then releases it as changed.
    pub(crate) fn set_page_no(&self, page_no: PageNo) {
        debug_assert!(self.latch.load().is_locked(), "a frame's page changes under its latch");
        // Relaxed: published by the release of the latch.
        self.page_no.store(!page_no.0, Ordering::Relaxed);
    }

    /// The frame after this one in its free list.
    pub(crate) fn next_free(&self) -> u32 {
        // Relaxed: under the list's lock.
        self.next_free.load(Ordering::Relaxed)
    }

    /// Links this frame into a free list.
    pub(crate) fn set_next_free(&self, next: u32) {
        // Relaxed: under the list's lock.
        self.next_free.store(next, Ordering::Relaxed);
    }

    /// Records a use.
    #[inline]
    pub(crate) fn touch(&self) {
        // Relaxed: a hint, see rule 3.
        let usage = self.usage.load(Ordering::Relaxed);
        if usage < USAGE_MAX {
            // Relaxed: as above.
            self.usage.store(usage + 1, Ordering::Relaxed);
        }
    }

    /// Sets the usage count: 1 for a page that has just come, 0 for one that nobody is likely to
    /// want.
    pub(crate) fn set_usage(&self, usage: u8) {
        // Relaxed: a hint, see rule 3.
        self.usage.store(usage, Ordering::Relaxed);
    }

    /// Takes one off the usage count as the sweep passes. False when it was zero: then the page may
    /// go.
    pub(crate) fn survives(&self) -> bool {
        // Relaxed: a hint, see rule 3. A plain store is enough: one sweeper visits a frame in a
        // pass.
        let usage = self.usage.load(Ordering::Relaxed);
        if usage == 0 {
            return false;
        }
        // Relaxed: as above.
        self.usage.store(usage - 1, Ordering::Relaxed);
        true
    }

    /// Whether the sweep passes over the frame, whose state word it saw: there is no page, or it is
    /// in use, or was used lately.
    #[inline]
    pub(crate) fn stays(&self, state: State) -> bool {
        state.is_locked() || state.is_pinned() || self.page_no() == PageNo::NONE || self.survives()
    }

    /// Whether the file lacks changes of this page.
    pub(crate) fn is_dirty(&self) -> bool {
        // Acquire: a reader that sees the page clean sees the end of its write.
        self.rec_lsn.load(Ordering::Acquire) != CLEAN
    }

    /// Whether the file lacks a logged change whose record may begin before `lsn`.
    pub(crate) fn is_dirty_before(&self, lsn: Lsn) -> bool {
        // Acquire: as in `is_dirty`.
        let rec_lsn = !self.rec_lsn.load(Ordering::Acquire);
        rec_lsn < lsn.0.min(UNLOGGED)
    }

    /// Whether a copy of the page is being written.
    pub(crate) fn is_writing(&self) -> bool {
        // Acquire: pairs with the end of the write.
        self.writing.load(Ordering::Acquire)
    }

    /// Marks the page changed, under the latch and BEFORE the change reserves space for its record.
    /// `position` returns the log's end, `None` for a page that is not logged.
    ///
    /// A checkpoint that looked at this frame before the mark was set began before the reservation.
    /// So the record lies behind its redo position: the add on the log's position word orders the
    /// two.
    #[inline]
    pub(crate) fn mark_dirty(&self, position: impl FnOnce() -> Option<Lsn>) {
        // Relaxed: these words change under the latch only, which the caller holds.
        let word = match self.rec_lsn.load(Ordering::Relaxed) {
            CLEAN => &self.rec_lsn,
            _ if self.writing.load(Ordering::Relaxed) && self.again.load(Ordering::Relaxed) == CLEAN => {
                &self.again
            }
            _ => return,
        };
        let lsn = position().map_or(UNLOGGED, |lsn| lsn.0.min(UNLOGGED - 1));
        // Release: a checkpoint that sees the mark sees the position it was taken from.
        word.store(!lsn, Ordering::Release);
    }

    /// Claims the write of the page, under the latch. False when the page is clean or is being
    /// written already.
    pub(crate) fn begin_write(&self) -> bool {
        // Relaxed: under the latch.
        if self.rec_lsn.load(Ordering::Relaxed) == CLEAN || self.writing.load(Ordering::Relaxed) {
            return false;
        }
        // Relaxed: published by the release of the latch.
        self.again.store(CLEAN, Ordering::Relaxed);
        self.writing.store(true, Ordering::Relaxed);
        true
    }

    /// Ends the write, under the latch. After a failure the page is as dirty as before.
    pub(crate) fn end_write(&self, written: bool) {
        if written {
            // Relaxed: under the latch. Release: a reader that sees the page clean reads the file
            // after the write.
            self.rec_lsn.store(self.again.load(Ordering::Relaxed), Ordering::Release);
        }
        // Release: pairs with `is_writing`.
        self.writing.store(false, Ordering::Release);
    }

    /// Drops unwritten changes of a freed page, under the latch. False while the page is being
    /// written.
    pub(crate) fn forget_changes(&self) -> bool {
        // Relaxed: under the latch.
        if self.writing.load(Ordering::Relaxed) {
            return false;
        }
        // Release: as in `end_write`.
        self.rec_lsn.store(CLEAN, Ordering::Release);
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn changes_during_a_write_stay_dirty() {
        let frame = Frame::new();
        assert!(!frame.begin_write(), "nothing to write");
        frame.mark_dirty(|| Some(Lsn(100)));
        frame.mark_dirty(|| unreachable!("dirty already"));
        assert!(frame.is_dirty_before(Lsn(101)) && !frame.is_dirty_before(Lsn(100)));
        assert!(frame.begin_write() && !frame.begin_write());
        assert!(frame.is_dirty_before(Lsn(101)), "not written yet");
        frame.mark_dirty(|| Some(Lsn(200)));
        frame.end_write(true);
        assert!(!frame.is_dirty_before(Lsn(200)) && frame.is_dirty_before(Lsn(201)));
        assert!(frame.begin_write());
        assert!(!frame.forget_changes(), "being written");
        frame.end_write(true);
        assert!(!frame.is_dirty());
    }

    #[test]
    fn a_failed_write_loses_nothing() {
        let frame = Frame::new();
        frame.mark_dirty(|| Some(Lsn(100)));
        assert!(frame.begin_write());
        frame.mark_dirty(|| Some(Lsn(200)));
        frame.end_write(false);
        assert!(frame.is_dirty_before(Lsn(101)));
        assert!(frame.begin_write());
        frame.end_write(true);
        assert!(!frame.is_dirty());
    }

    #[test]
    fn a_checkpoint_ignores_temporary_pages() {
        let frame = Frame::new();
        frame.mark_dirty(|| None);
        assert!(frame.is_dirty() && !frame.is_dirty_before(Lsn::MAX));
        assert!(frame.forget_changes() && !frame.is_dirty());
    }
}
