//! Pins and shared latches on the engine's own path, in a build with `--cfg variants`.
//!
//! Each view on a page ([`super::PageRef`]) then has a pin on the frame, a share of its latch, or
//! both, as `--variant` names them. A backend of PostgreSQL has both while it reads a page. What
//! must hold:
//!
//! 1. The engine still reads optimistically, so a variant costs and decides nothing. A pin keeps
//!    the page, because an eviction has to claim the frame from the pins too. A share excludes
//!    nobody, because changes take the frame's version latch. So a share never waits, and the
//!    latches need no thread's gate.
//! 2. A frame's pins name the page that its header names, also if it has none. They are claimed
//!    for the moment of a change only, since a thread that pins a claimed frame waits.
//! 3. Whatever a view took is given back as the view is dropped, on every way. [`Views::report`]
//!    counts at the end.
//! 4. No view lives across a park, since a fiber of the same core may claim the frame and wait for
//!    its pins. `sync::held` counts views as latches, in every arm: a fiber that would suspend with
//!    a view panics. Where the engine may pass over a suspension, it does so with a view, too.
//!
//! Cost beside the variant's own: a virtual call each way, and a cache line for each frame, as a
//! frame's header is full.

use std::fmt;

use sync::held;
use variants::caller::{Caller, wait_until};
use variants::chosen::{Arm, Row, arm};
use variants::latch::{AddLatch, ExchangeLatch, FieldsLatch, HeldLatch};
use variants::pin::{AddFrame, CountedFrame, ExchangeFrame, Frame, PinnedFrame};
use variants::runs;

use crate::page::PageNo;

/// The page of a frame without one.
const NONE: u64 = PageNo::NONE.0 as u64;

/// The pins of all frames.
trait Pins: Send + Sync {
    fn pin(&self, frame: u32, page: u64) -> bool;
    fn unpin(&self, frame: u32);
    fn replace(&self, frame: u32, from: u64, to: u64) -> bool;
    fn held(&self) -> u64;
}

/// The latches of all frames.
trait Shares: Send + Sync {
    fn share(&self, frame: u32);
    fn unshare(&self, frame: u32);
    fn held(&self) -> u64;
}

/// The thread as the variants see it. Nothing of a frame makes it wait in a queue, so its number is
/// of no use.
fn me() -> Caller {
    Caller::new(0)
}

impl<F: PinnedFrame + Send> Pins for Box<[F]> {
    fn pin(&self, frame: u32, page: u64) -> bool {
        self[frame as usize].pin(&mut me(), page)
    }

    fn unpin(&self, frame: u32) {
        self[frame as usize].unpin(&mut me());
    }

    fn replace(&self, frame: u32, from: u64, to: u64) -> bool {
        self[frame as usize].replace(&mut me(), from, to, || ())
    }

    fn held(&self) -> u64 {
        self.iter().map(|frame| u64::from(frame.pins(&mut me()))).sum()
    }
}

impl<L: HeldLatch + Send> Shares for Box<[L]> {
    fn share(&self, frame: u32) {
        self[frame as usize].lock_shared(&mut me());
    }

    fn unshare(&self, frame: u32) {
        self[frame as usize].unlock_shared(&mut me());
    }

    fn held(&self) -> u64 {
        self.iter().map(|latch| u64::from(latch.shares(&mut me()))).sum()
    }
}

/// The pins and latches of a pool's frames.
pub(crate) struct Views {
    pins: Option<Box<dyn Pins>>,
    shares: Option<Box<dyn Shares>>,
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Views").field("held", &self.held()).finish_non_exhaustive()
    }
}

fn pins<F: PinnedFrame + Send + 'static>(frames: usize) -> Option<Box<dyn Pins>> {
    Some(Box::new((0..frames).map(|_| F::new(NONE)).collect::<Box<[F]>>()))
}

fn latches<L: HeldLatch + Send + 'static>(frames: usize) -> Option<Box<dyn Shares>> {
    Some(Box::new((0..frames).map(|_| L::new(0)).collect::<Box<[L]>>()))
}

impl Views {
    /// The variants that this process runs, for so many frames without pages.
    pub(crate) fn new(frames: usize) -> Views {
        let pins = match arm(Row::Pin) {
            Arm::Stock => pins::<CountedFrame>(frames),
            Arm::Step => pins::<ExchangeFrame>(frames),
            Arm::Published => pins::<AddFrame>(frames),
            Arm::Allcore => None,
        };
        let shares = match arm(Row::Latch) {
            Arm::Stock => latches::<FieldsLatch>(frames),
            Arm::Step => latches::<ExchangeLatch>(frames),
            Arm::Published => latches::<AddLatch>(frames),
            Arm::Allcore => None,
        };
        Views { pins, shares }
    }

    /// Takes what a view on a page takes. `None` if the frame holds another page.
    #[inline]
    pub(crate) fn view(&self, frame: u32, page_no: PageNo) -> Option<View<'_>> {
        if let Some(pins) = &self.pins {
            if !pins.pin(frame, page_no.0.into()) {
                return None;
            }
            runs::count(Row::Pin);
        }
        if let Some(shares) = &self.shares {
            shares.share(frame);
            runs::count(Row::Latch);
        }
        held::acquire();
        Some(View { views: self, frame })
    }

    /// Takes the page out of a frame. False if a view has it pinned.
    pub(crate) fn take_out(&self, frame: u32, page_no: PageNo) -> bool {
        self.pins.as_ref().is_none_or(|pins| pins.replace(frame, page_no.0.into(), NONE))
    }

    /// Takes out a page that was put into the frame a moment ago. A thread that followed an old
    /// reference to it may have pinned it, and gives it back as it finds the frame latched.
    pub(crate) fn take_back(&self, frame: u32, page_no: PageNo) {
        wait_until(|| self.take_out(frame, page_no));
    }

    /// Puts a page into a frame that has none. Threads that look for the last one there may have
    /// added pins, and take them off again.
    pub(crate) fn put_in(&self, frame: u32, page_no: PageNo) {
        if let Some(pins) = &self.pins {
            wait_until(|| pins.replace(frame, NONE, page_no.0.into()));
        }
    }

    /// Logs whether views gave back what they took, once the pool's work has ended.
    pub(crate) fn report(&self) {
        match self.held() {
            _ if self.pins.is_none() && self.shares.is_none() => {}
            0 => log::info!("variants: every view gave back its pin and its share"),
            held => log::error!("variants: {held} pins and shares of views were not given back"),
        }
    }

    /// Pins and shares of views.
    fn held(&self) -> u64 {
        self.pins.as_ref().map_or(0, |pins| pins.held())
            + self.shares.as_ref().map_or(0, |shares| shares.held())
    }
}

/// The pin and the share of one view on a page.
pub(crate) struct View<'p> {
    views: &'p Views,
    frame: u32,
}

impl Drop for View<'_> {
    #[inline]
    fn drop(&mut self) {
        held::release();
        if let Some(shares) = &self.views.shares {
            shares.unshare(self.frame);
        }
        if let Some(pins) = &self.views.pins {
            pins.unpin(self.frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_keeps_its_page_and_gives_back_what_it_took() {
        let kinds = [pins::<CountedFrame>, pins::<ExchangeFrame>, pins::<AddFrame>];
        for pins in kinds.map(|pins| pins(2)) {
            let views = Views { pins, shares: None };
            let (page, other) = (PageNo(7), PageNo(8));
            assert!(views.view(1, page).is_none(), "the frame has no page");
            views.put_in(1, page);
            let both = [views.view(1, page), views.view(1, page)];
            assert!(views.view(1, other).is_none(), "the frame has another page");
            assert_eq!(views.held(), 2);
            assert!(!views.take_out(1, page), "a view keeps the page");
            drop(both);
            assert_eq!(views.held(), 0);
            assert!(views.take_out(1, page) && views.view(1, page).is_none());
        }
    }

    #[test]
    fn views_share_each_latch() {
        let kinds = [latches::<FieldsLatch>, latches::<ExchangeLatch>, latches::<AddLatch>];
        for shares in kinds.map(|latches| latches(2)) {
            let views = Views { pins: None, shares };
            let both = [views.view(0, PageNo(1)), views.view(0, PageNo(1))];
            assert_eq!(views.held(), 2);
            drop(both);
            assert_eq!(views.held(), 0);
        }
    }

    #[test]
    #[should_panic(expected = "a fiber suspends while it holds 1 latches")]
    fn a_fiber_does_not_suspend_with_a_view() {
        let views = Views { pins: None, shares: None };
        let _view = views.view(0, PageNo(1));
        sync::park::yield_now();
    }
}
