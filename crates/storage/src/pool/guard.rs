//! The three holds on a page: an optimistic view, the exclusive latch, and a pin.
//!
//! A [`PageRef`] holds nothing: bytes read through it count only once a later [`PageRef::validate`]
//! has succeeded. A [`PageMut`] holds the latch and may not live across a park; its drop releases
//! the latch. A panic that drops it after a write ends the process: recovery restores what the log
//! has. A [`Pinned`] only keeps the page in its frame. It may live across parks, but few may exist
//! at a time.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use runtime::{Cause, fail_stop};
use sync::profile::Hold;
use sync::racy::RacyBytes;

use crate::frame::State;
use crate::page::{self, Lsn, PAGE_SIZE, PageNo};
use crate::pool::{Pool, yield_for_latch};

/// The page cannot be looked at now. `Pool::resolve` waits for it, with no latch held; then the
/// caller begins again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Miss {
    /// The page is not in the pool.
    Absent,
    /// The page stayed latched through a bounded spin.
    Busy,
}

/// The bytes read may be torn, or another fiber was faster: release everything and begin again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restart;

/// An optimistic view on a resident page.
#[cfg_attr(not(variants), derive(Clone, Copy))]
pub struct PageRef<'p> {
    pub(crate) pool: &'p Pool,
    pub(crate) frame: u32,
    pub(crate) seen: State,
    #[cfg(variants)]
    pub(super) _view: super::views::View<'p>,
}

impl<'p> PageRef<'p> {
    /// The bytes, which may change while they are read: hostile until [`PageRef::validate`]
    /// succeeds.
    #[inline]
    pub fn bytes(&self) -> RacyBytes<'p> {
        // SAFETY: the pool's region stays mapped for 'p and was initialized when the pool was made.
        // Pages are written under their frame's latch, or by a read from disk while no page lives
        // in the frame. Both change the version that `validate` compares.
        unsafe { RacyBytes::new(self.pool.bytes_of(self.frame), PAGE_SIZE) }
    }

    /// Whether all bytes read so far are from one state of the page.
    #[inline]
    #[track_caller]
    pub fn validate(&self) -> Result<(), Restart> {
        if self.pool.validate(self.frame, self.seen) { Ok(()) } else { Err(Restart) }
    }

    /// Takes the exclusive latch, if the page has not changed since this view was taken. Never
    /// waits.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> Result<PageMut<'p>, Restart> {
        let hold = self.pool.try_latch(self.frame, self.seen).ok_or(Restart)?;
        Ok(PageMut::new(self.pool, self.frame, hold))
    }

    /// The frame of the page. With [`PageRef::version`] it is a hint where to look first next time.
    #[inline]
    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// The version that `validate` compares.
    #[inline]
    pub fn version(&self) -> u64 {
        self.seen.version()
    }
}

/// A page under its exclusive latch.
pub struct PageMut<'p> {
    pool: &'p Pool,
    frame: u32,
    changed: bool,
    hold: Hold,
    // The latch belongs to the running fiber's thread.
    _not_send: PhantomData<*const ()>,
}

impl<'p> PageMut<'p> {
    /// Takes over a latch that the caller has just taken.
    pub(crate) fn new(pool: &'p Pool, frame: u32, hold: Hold) -> PageMut<'p> {
        debug_assert!(pool.header(frame).latch.load().is_locked());
        PageMut { pool, frame, changed: false, hold, _not_send: PhantomData }
    }

    /// The page's number.
    pub fn page_no(&self) -> PageNo {
        self.pool.header(self.frame).page_no()
    }

    /// The frame of the page.
    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// The page's bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the region is mapped and initialized. This guard holds the exclusive latch, so
        // nobody writes these bytes while the guard is borrowed. Optimistic readers only read.
        unsafe { std::slice::from_raw_parts(self.pool.bytes_of(self.frame), PAGE_SIZE) }
    }

    /// The page's bytes, to change them. The first call marks the page dirty from the log's present
    /// end on, so it must come before the change reserves log space.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if !self.changed {
            self.changed = true;
            self.pool.mark_dirty(self.frame);
        }
        // SAFETY: as in `bytes`, and the borrow of the guard is exclusive. Optimistic readers read
        // these bytes through RacyBytes alone and discard them, since the version will have
        // changed.
        unsafe { std::slice::from_raw_parts_mut(self.pool.bytes_of(self.frame), PAGE_SIZE) }
    }

    /// LSN of the page's last logged change.
    pub fn lsn(&self) -> Lsn {
        page::lsn(self.bytes())
    }

    /// Sets the LSN of the page's last logged change.
    pub fn set_lsn(&mut self, lsn: Lsn) {
        page::set_lsn(self.bytes_mut(), lsn);
    }
}

impl Pool {
    /// Takes the latch of a page again that was given back in the state `left`, if nothing has
    /// changed since.
    #[inline]
    #[track_caller]
    pub(crate) fn latch_again(&self, frame: u32, left: State) -> Option<PageMut<'_>> {
        self.try_latch(frame, left).map(|hold| PageMut::new(self, frame, hold))
    }
}

impl PageMut<'_> {
    /// Gives the latch back, and returns the state in which that leaves the frame.
    #[inline]
    pub(crate) fn unlock(self) -> State {
        ManuallyDrop::new(self).release()
    }

    /// Gives the latch back. The guard is not used again.
    #[inline]
    fn release(&mut self) -> State {
        let header = self.pool.header(self.frame);
        if self.changed {
            if runtime::is_panicking() {
                // The page holds half a change, which the log lacks: nobody may see it.
                fail_stop(Cause::Engine, format_args!("a panic while page {} was changed", self.page_no()));
            }
            header.latch.unlock_changed(self.hold)
        } else {
            header.latch.unlock_unchanged(self.hold)
        }
    }
}

impl Drop for PageMut<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

/// A page that stays in its frame until this is dropped.
pub struct Pinned<'p> {
    pool: &'p Pool,
    frame: u32,
}

impl<'p> Pinned<'p> {
    /// Takes over a pin that the caller has just added.
    pub(crate) fn new(pool: &'p Pool, frame: u32) -> Pinned<'p> {
        Pinned { pool, frame }
    }

    /// The page's number.
    pub fn page_no(&self) -> PageNo {
        self.pool.header(self.frame).page_no()
    }

    /// A view on the page; `Restart` while it is latched. Then the caller yields with no latch held
    /// and tries again.
    #[inline]
    #[track_caller]
    pub fn view(&self) -> Result<PageRef<'p>, Restart> {
        let seen = self.pool.read_latch(self.frame).ok_or(Restart)?;
        Ok(PageRef {
            pool: self.pool,
            frame: self.frame,
            seen,
            #[cfg(variants)]
            _view: self.pool.views.view(self.frame, self.page_no()).ok_or(Restart)?,
        })
    }

    /// Takes the exclusive latch; `Restart` when others hold it through a bounded spin.
    #[track_caller]
    pub fn lock(&self) -> Result<PageMut<'p>, Restart> {
        self.view()?.lock()
    }

    /// Takes the exclusive latch and lets other fibers run while another holds it. The caller holds
    /// no other latch.
    #[track_caller]
    pub fn lock_yielding(&self) -> PageMut<'p> {
        loop {
            match self.lock() {
                Ok(page) => return page,
                Err(Restart) => yield_for_latch(),
            }
        }
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.pool.header(self.frame).latch.unpin();
    }
}
