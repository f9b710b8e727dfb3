//! The header of one frame: who lives in it, whether somebody changes it, and what of it is not on disk yet.
//!
//! The state word is a [`VersionLatch`], `[version 43 | latch 1 | pins 20]`. What must hold:
//!
//! 1. `page_no` changes only under the latch, and every such change raises the version: a reader that saw a word,
//!    then the page number it looked for, then bytes, and then the same version and latch again, read that page (law 8).
//! 2. Pins don't touch the version, so a pin never fails an optimistic reader. A frame with pins keeps its page.
//! 3. The usage count is a byte of its own, so that a hit doesn't touch the word; a hit writes it only below its
//!    maximum, which is once a sweep for a hot page (law 1). Lost updates between a hit and the sweep do no harm.
//! 4. `rec_lsn` is CLEAN, or at most the LSN of the first record of a change that the file doesn't hold. It is
//!    written under the latch only. It stays while a copy is being written (`writing`); changes made meanwhile go to
//!    `again`, which takes its place when the write has succeeded. So one load of `rec_lsn` never misses a change,
//!    and a write that failed needs no repair.
//! 5. A page is written by one writer at a time (`writing` is claimed under the latch), and a frame whose page is
//!    being written is never given to another page (`rec_lsn` isn't CLEAN): an old copy never lands after a newer one.

use sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use sync::{Version, VersionLatch};

use crate::page::{Lsn, PageNo};

/// Highest usage count: a page survives at most so many passes of the sweep after its last use.
pub const USAGE_MAX: u8 = 5;
/// `rec_lsn` of a frame whose page is as it is on disk.
const CLEAN: u64 = u64::MAX;
/// `rec_lsn` of a changed page that is never logged: a temporary page, which no checkpoint has to write.
const UNLOGGED: u64 = u64::MAX - 1;
/// Bits of the state word that count pins; the version has 43.
const PINS: u32 = 20;

/// A frame's state word at one moment.
pub type State = Version<PINS>;

/// Header of a frame, on a cache line of its own and apart from the page.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Frame {
    /// The state word.
    pub(crate) latch: VersionLatch<PINS>,
    rec_lsn: AtomicU64,
    again: AtomicU64,
    page_no: AtomicU32,
    /// The next frame of the free list this one is in. Touched under that list's lock.
    next_free: AtomicU32,
    usage: AtomicU8,
    writing: AtomicBool,
}

const _: () = assert!(size_of::<Frame>() == 64 && align_of::<Frame>() == 64);

impl Frame {
    /// A frame without a page.
    pub(crate) fn new() -> Frame {
        Frame {
            latch: VersionLatch::default(),
            rec_lsn: AtomicU64::new(CLEAN),
            again: AtomicU64::new(CLEAN),
            page_no: AtomicU32::new(PageNo::NONE.0),
            next_free: AtomicU32::new(0),
            usage: AtomicU8::new(0),
            writing: AtomicBool::new(false),
        }
    }

    /// The page that lives here. Means something only together with the state word.
    #[inline]
    pub(crate) fn page_no(&self) -> PageNo {
        // Relaxed: validated by the version, see rule 1.
        PageNo(self.page_no.load(Ordering::Relaxed))
    }

    /// Gives the frame to `page_no`. Under the latch, which is then released as changed.
    pub(crate) fn set_page_no(&self, page_no: PageNo) {
        debug_assert!(self.latch.load().is_locked(), "a frame's page changes under its latch");
        // Relaxed: published by the release of the latch.
        self.page_no.store(page_no.0, Ordering::Relaxed);
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

    /// Notes a use.
    #[inline]
    pub(crate) fn touch(&self) {
        // Relaxed: a hint, see rule 3.
        let usage = self.usage.load(Ordering::Relaxed);
        if usage < USAGE_MAX {
            // Relaxed: as above.
            self.usage.store(usage + 1, Ordering::Relaxed);
        }
    }

    /// Sets the usage count: 1 for a page that has just come, 0 for one that nobody will want.
    pub(crate) fn set_usage(&self, usage: u8) {
        // Relaxed: a hint, see rule 3.
        self.usage.store(usage, Ordering::Relaxed);
    }

    /// The sweep passes by: takes one off the usage count. False when it was zero, so that the page may go.
    pub(crate) fn survives(&self) -> bool {
        // Relaxed: a hint, see rule 3. A plain store is enough: a frame has one sweeper a pass.
        let usage = self.usage.load(Ordering::Relaxed);
        if usage == 0 {
            return false;
        }
        // Relaxed: as above.
        self.usage.store(usage - 1, Ordering::Relaxed);
        true
    }

    /// Whether the file lacks changes of this page.
    pub(crate) fn is_dirty(&self) -> bool {
        // Acquire: who sees the page clean sees the end of its write.
        self.rec_lsn.load(Ordering::Acquire) != CLEAN
    }

    /// Whether the file lacks a logged change whose record may begin before `lsn`.
    pub(crate) fn is_dirty_before(&self, lsn: Lsn) -> bool {
        // Acquire: as in `is_dirty`.
        let rec_lsn = self.rec_lsn.load(Ordering::Acquire);
        rec_lsn < lsn.0.min(UNLOGGED)
    }

    /// Whether a copy of the page is being written.
    pub(crate) fn is_writing(&self) -> bool {
        // Acquire: pairs with the end of the write.
        self.writing.load(Ordering::Acquire)
    }

    /// Marks the page changed, under the latch and BEFORE space for the change's record is reserved; `position` gives
    /// the log's end, `None` for a page that isn't logged. A checkpoint that looked at this frame before the mark was
    /// set began before the reservation, so the record lies behind its redo position (the add on the log's
    /// position word orders the two).
    #[inline]
    pub(crate) fn mark_dirty(&self, position: impl FnOnce() -> Option<Lsn>) {
        // Relaxed: these words change under the latch, which the caller holds.
        let word = match self.rec_lsn.load(Ordering::Relaxed) {
            CLEAN => &self.rec_lsn,
            _ if self.writing.load(Ordering::Relaxed) && self.again.load(Ordering::Relaxed) == CLEAN => {
                &self.again
            }
            _ => return,
        };
        let lsn = position().map_or(UNLOGGED, |lsn| lsn.0.min(UNLOGGED - 1));
        // Release: a checkpoint that sees the mark sees the position it was taken from.
        word.store(lsn, Ordering::Release);
    }

    /// Claims the write of the page, under the latch. False when it is clean or being written already.
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
            // Relaxed: under the latch. Release: who sees the page clean reads the file after the write.
            self.rec_lsn.store(self.again.load(Ordering::Relaxed), Ordering::Release);
        }
        // Release: pairs with `is_writing`.
        self.writing.store(false, Ordering::Release);
    }

    /// Forgets what is not written, under the latch: for a page that was freed. False while it is being written.
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

#[cfg(test)]
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
    fn temporary_changes_are_no_checkpoints_business() {
        let frame = Frame::new();
        frame.mark_dirty(|| None);
        assert!(frame.is_dirty() && !frame.is_dirty_before(Lsn::MAX));
        assert!(frame.forget_changes() && !frame.is_dirty());
    }
}
