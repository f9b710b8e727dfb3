//! The stock pin: a count under a spin lock in the frame's header (PostgreSQL 9.5 and earlier,
//! `PinBuffer` and `UnpinBuffer`).
//!
//! A pin takes the spin lock, compares the page, counts the pin and the use, and releases the spin
//! lock. Taking it off does the same. An evictor claims the frame under the spin lock if it has no
//! pins. It takes the only pin, and the frame holds no page until the evictor gives it one.
//!
//! What must hold: the fields change under the spin lock only, so a page with pins stays.
//!
//! Cost in line transfers: 1 for each pin and 1 for each removal, if uncontended. Contended, the
//! spin lock's: each poll that sees it open takes the line. A holder that loses its processor stops
//! all readers of the page.

use sync::{CachePadded, SpinLock};

use super::{PinnedFrame, USAGE_MAX};
use crate::caller::Caller;

/// A frame whose pins are counted under a spin lock.
#[derive(Debug)]
pub struct CountedFrame {
    header: CachePadded<SpinLock<Header>>,
}

#[derive(Debug)]
struct Header {
    /// `None` while an evictor fills the frame.
    page: Option<u64>,
    pins: u32,
    usage: u8,
}

impl PinnedFrame for CountedFrame {
    fn new(page: u64) -> Self {
        let header = Header { page: Some(page), pins: 0, usage: 1 };
        Self { header: CachePadded::new(SpinLock::new(&"header", header)) }
    }

    #[inline]
    fn pin(&self, me: &mut Caller, page: u64) -> bool {
        let mut header = me.locked(&self.header);
        let found = header.page == Some(page);
        if found {
            header.pins += 1;
            header.usage = USAGE_MAX.min(header.usage + 1);
        }
        found
    }

    #[inline]
    fn unpin(&self, me: &mut Caller) {
        me.locked(&self.header).pins -= 1;
    }

    fn claim(&self, me: &mut Caller, page: u64) -> bool {
        let mut header = me.locked(&self.header);
        let idle = header.page == Some(page) && header.pins == 0;
        if idle {
            (header.page, header.pins) = (None, 1);
        }
        idle
    }

    fn give(&self, me: &mut Caller, page: u64) {
        let mut header = me.locked(&self.header);
        *header = Header { page: Some(page), pins: header.pins - 1, usage: 1 };
    }

    fn pins(&self, me: &mut Caller) -> u32 {
        let header = me.locked(&self.header);
        // An evictor's own pin on the frame that it fills is no reader's.
        header.pins - u32::from(header.page.is_none())
    }
}
