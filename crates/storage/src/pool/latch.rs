//! Taking frames' latches, with the class by which the lock profiler knows a page. Yielding over a
//! latch, with a wait event.
//!
//! The closures that name a class own what they capture. A borrow would make the compiler keep the
//! pool and the frame in memory on the way of each read.

use runtime::wait_event::{self, WaitEvent};
use sync::park;
use sync::profile::{self, Class, Hold, Kind, Site, Waiting};
use sync::racy::RacyBytes;

use super::Pool;
use crate::frame::State;
use crate::page::{PAGE_SIZE, PageKind, offset};

/// Classes of inner nodes, by level above the leaves; the last one is that of all higher levels.
const INNER: [Class; 4] =
    [&"inner page, level 1", &"inner page, level 2", &"inner page, level 3", &"inner page, level 4 up"];

impl Pool {
    /// The state of a frame whose latch is open, after a bounded spin.
    #[inline]
    #[track_caller]
    pub(crate) fn read_latch(&self, frame: u32) -> Option<State> {
        self.header(frame).latch.read(move || self.class_of(frame))
    }

    /// Takes a frame's latch if nothing has changed since `seen`.
    #[inline]
    #[track_caller]
    pub(crate) fn try_latch(&self, frame: u32, seen: State) -> Option<Hold> {
        self.header(frame).latch.try_lock(seen, move || self.class_of(frame))
    }

    /// Takes a frame's latch if nothing has changed since `seen` and the frame has no pin.
    #[inline]
    #[track_caller]
    pub(crate) fn try_latch_idle(&self, frame: u32, seen: State) -> Option<Hold> {
        self.header(frame).latch.try_lock_idle(seen, move || self.class_of(frame))
    }

    /// Runs `walk` when the caller's turn has come among those who lost the latch of a frame to
    /// another thread. `walk` leads there again. It does not park.
    #[cold]
    #[track_caller]
    pub(crate) fn in_turn_of<R>(&self, frame: u32, walk: impl FnOnce() -> R) -> R {
        let (site, since) = (Site::here(&"turn at a page", Kind::Wait), Waiting::begin_unmarked());
        // The walk is part of the event: it is short, and the latch that it is about to take is
        // contended.
        let wait = || {
            self.header(frame).losers.in_turn(|has_waited| {
                match since {
                    Some(since) if has_waited => since.end(&site),
                    _ => profile::count(|| site),
                }
                walk()
            })
        };
        wait_event::during(WaitEvent::PageLatch, wait)
    }

    /// Whether nothing has changed in a frame since `seen`.
    #[inline]
    #[track_caller]
    pub(crate) fn validate(&self, frame: u32, seen: State) -> bool {
        let is_same = self.header(frame).latch.validate(seen);
        if !is_same {
            self.count_restart(frame);
        }
        is_same
    }

    /// Counts a read of a page that has changed meanwhile.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn count_restart(&self, frame: u32) {
        let at = std::panic::Location::caller();
        profile::count(|| Site { class: self.class_of(frame), kind: Kind::Restart, at });
    }

    /// The class of the page in a frame. The page may change meanwhile: then it is one of the two.
    #[cold]
    pub(super) fn class_of(&self, frame: u32) -> Class {
        // SAFETY: the region stays mapped while the pool lives, and a number that is out of date
        // names a class all the same.
        let bytes = unsafe { RacyBytes::new(self.bytes_of(frame), PAGE_SIZE) };
        let level = bytes.u8_at(offset::LEVEL).unwrap_or(0);
        match bytes.u8_at(offset::KIND).and_then(PageKind::from_u8) {
            None | Some(PageKind::Free) => &"free page",
            Some(PageKind::Meta) => &"meta page",
            Some(PageKind::SpaceMap) => &"space map page",
            Some(PageKind::Inner) => INNER[usize::from(level.saturating_sub(1)).min(INNER.len() - 1)],
            Some(PageKind::Leaf) => &"leaf page",
            Some(PageKind::Undo) => &"undo page",
            Some(PageKind::Spool) => &"spool page",
        }
    }
}

/// Lets other fibers run, because one of them, or another core, holds or has changed a page. The
/// caller holds no latch.
#[cold]
#[track_caller]
pub fn yield_for_latch() {
    profile::wait(&"page latch", || wait_event::during(WaitEvent::PageLatch, park::yield_now));
}
