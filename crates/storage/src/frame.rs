//! The header of one frame: who lives in it, whether somebody changes it, and what of it is not on disk yet.
//!
//! The state word is `[version 43 | latch 1 | pins 20]`. What must hold:
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

use sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence, spin_loop};
use sync::held;

use crate::page::{Lsn, PageNo};

/// Highest usage count: a page survives at most so many passes of the sweep after its last use.
pub const USAGE_MAX: u8 = 5;
/// `rec_lsn` of a frame whose page is as it is on disk.
const CLEAN: u64 = u64::MAX;
/// `rec_lsn` of a changed page that is never logged: a temporary page, which no checkpoint has to write.
const UNLOGGED: u64 = u64::MAX - 1;
/// Attempts to see an unlatched frame before the caller is told to unwind: a latch is held for well under a
/// microsecond, so the holder is about to finish, or its thread was preempted and waiting here is wasted.
const SPINS: u32 = 200;

const PIN: u64 = 1;
const PIN_MASK: u64 = (1 << 20) - 1;
const LATCH: u64 = 1 << 20;
const VERSION: u64 = 1 << 21;

/// A frame's state word at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State(u64);

impl State {
    /// Somebody changes the frame.
    #[inline]
    pub fn is_latched(self) -> bool {
        self.0 & LATCH != 0
    }

    /// Somebody needs the page to stay.
    #[inline]
    pub fn is_pinned(self) -> bool {
        self.0 & PIN_MASK != 0
    }

    /// Version and latch, without the pins: what an optimistic reader compares.
    #[inline]
    pub fn version(self) -> u64 {
        self.0 & !PIN_MASK
    }
}

/// Header of a frame, on a cache line of its own and apart from the page.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Frame {
    state: AtomicU64,
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
            state: AtomicU64::new(0),
            rec_lsn: AtomicU64::new(CLEAN),
            again: AtomicU64::new(CLEAN),
            page_no: AtomicU32::new(PageNo::NONE.0),
            next_free: AtomicU32::new(0),
            usage: AtomicU8::new(0),
            writing: AtomicBool::new(false),
        }
    }

    /// The state word now.
    #[inline]
    pub(crate) fn state(&self) -> State {
        // Acquire: what the last holder of the latch wrote (page number, bytes) is seen by whoever sees its word.
        State(self.state.load(Ordering::Acquire))
    }

    /// The state word once it is unlatched, after a bounded spin.
    #[inline]
    pub(crate) fn unlatched(&self) -> Option<State> {
        let state = self.state();
        if !state.is_latched() {
            return Some(state);
        }
        self.unlatched_after_spin()
    }

    #[cold]
    fn unlatched_after_spin(&self) -> Option<State> {
        for _ in 0..SPINS {
            spin_loop();
            let state = self.state();
            if !state.is_latched() {
                return Some(state);
            }
        }
        None
    }

    /// Whether nothing changed since `seen`.
    #[inline]
    pub(crate) fn is_unchanged(&self, seen: State) -> bool {
        // Acquire: the racy reads before this stay before the load below (the reader's half of a sequence lock).
        fence(Ordering::Acquire);
        // Relaxed: ordered by the fence.
        State(self.state.load(Ordering::Relaxed)).version() == seen.version()
    }

    /// The page that lives here. Means something only together with the state word.
    #[inline]
    pub(crate) fn page_no(&self) -> PageNo {
        // Relaxed: validated by the version, see rule 1.
        PageNo(self.page_no.load(Ordering::Relaxed))
    }

    /// Gives the frame to `page_no`. Under the latch, which is then released as changed.
    pub(crate) fn set_page_no(&self, page_no: PageNo) {
        debug_assert!(self.state().is_latched(), "a frame's page changes under its latch");
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

    /// Takes the latch if version and latch are as `seen`; pins may come and go.
    #[inline]
    pub(crate) fn try_latch(&self, seen: State) -> bool {
        // Relaxed: the exchange below acquires.
        let mut now = self.state.load(Ordering::Relaxed);
        while now & !PIN_MASK == seen.version() && now & LATCH == 0 {
            // Acquire: what the last holder wrote is seen. Relaxed on failure: looked at again.
            match self.state.compare_exchange_weak(now, now | LATCH, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    self.latched();
                    return true;
                }
                Err(found) => now = found,
            }
        }
        false
    }

    /// Takes the latch if the whole word is as `seen` and nobody has pinned the frame: for taking its page away.
    pub(crate) fn try_latch_idle(&self, seen: State) -> bool {
        if seen.is_latched() || seen.is_pinned() {
            return false;
        }
        // Acquire and Relaxed: as in `try_latch`.
        let taken =
            self.state.compare_exchange(seen.0, seen.0 | LATCH, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if taken {
            self.latched();
        }
        taken
    }

    #[inline]
    fn latched(&self) {
        held::acquire();
        // Release: the latch bit is seen before any byte written under it (the writer's half of a sequence lock).
        fence(Ordering::Release);
    }

    /// Gives the latch back and raises the version.
    #[inline]
    pub(crate) fn unlatch_changed(&self) {
        held::release();
        // Release: who sees the new word sees what was written. The version wraps after 2^43 changes of one frame,
        // far beyond what one optimistic read can sleep through.
        self.state.fetch_add(VERSION - LATCH, Ordering::Release);
    }

    /// Gives the latch back; the page's bytes and its place are as they were.
    #[inline]
    pub(crate) fn unlatch_unchanged(&self) {
        held::release();
        // Release: what was written in the header is seen by the next holder.
        self.state.fetch_sub(LATCH, Ordering::Release);
    }

    /// Adds a pin if version and latch are as `seen`.
    pub(crate) fn try_pin(&self, seen: State) -> bool {
        // Relaxed: the exchange below acquires.
        let mut now = self.state.load(Ordering::Relaxed);
        while now & !PIN_MASK == seen.version() && now & LATCH == 0 && now & PIN_MASK < PIN_MASK {
            // Acquire: the page this pin keeps is seen whole. Relaxed on failure: looked at again.
            match self.state.compare_exchange_weak(now, now + PIN, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(found) => now = found,
            }
        }
        false
    }

    /// Takes a pin off.
    pub(crate) fn unpin(&self) {
        // Release: what the pin's owner read is read before the frame can go to another page.
        let before = self.state.fetch_sub(PIN, Ordering::Release);
        debug_assert!(before & PIN_MASK != 0, "a pin is taken off once");
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
    fn a_changed_frame_fails_its_readers_and_a_pin_does_not() {
        let frame = Frame::new();
        let seen = frame.unlatched().unwrap();
        assert!(frame.try_pin(seen));
        assert!(frame.is_unchanged(seen));
        assert!(!frame.try_latch_idle(frame.state()), "a pinned frame keeps its page");
        assert!(frame.try_latch(seen));
        assert!(!frame.is_unchanged(seen));
        assert!(frame.unlatched().is_none());
        frame.unlatch_unchanged();
        assert!(frame.is_unchanged(seen));
        assert!(frame.try_latch(seen));
        frame.unlatch_changed();
        assert!(!frame.is_unchanged(seen) && !frame.try_latch(seen) && !frame.try_pin(seen));
        frame.unpin();
        assert!(frame.try_latch_idle(frame.state()));
        frame.unlatch_unchanged();
        assert_eq!(held::count(), 0);
    }

    #[test]
    fn the_word_seen_is_the_word_compared() {
        let frame = Frame::new();
        let chosen = frame.state();
        assert!(frame.try_pin(chosen));
        assert!(!frame.try_latch_idle(chosen), "pinned since");
        frame.unpin();
        assert!(frame.try_latch(chosen));
        frame.unlatch_changed();
        assert!(!frame.try_latch_idle(chosen), "changed since");
    }

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
