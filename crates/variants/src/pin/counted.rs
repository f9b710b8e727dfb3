//! The stock pin: a count under a spin lock in the frame's header (P15; PostgreSQL 9.5 and earlier,
//! `PinBuffer` and `UnpinBuffer`).
//!
//! 1. A pin takes the spin lock, compares the page, counts the pin and the use, and releases the
//!    spin lock. Taking it off does the same.
//! 2. An evictor claims the frame under the spin lock if it has no pins. It takes the only pin, and
//!    the frame holds no page until the evictor gives it one.
//!
//! What must hold: the fields change under the spin lock only, so a page with pins stays.
//!
//! PostgreSQL's spin lock sleeps for 1 ms and more after 100 polls. This one gives its time slice
//! away, which is milder with more threads than cores.
//!
//! Orderings: the fields are relaxed, because the spin lock orders them, and the page's bytes with
//! them.
//!
//! Cost in line transfers: 1 for each pin and 1 for each removal, if uncontended. Spin lock and
//! fields are on one line, as in PostgreSQL. Contended, the spin lock's (`spin::TestTestAndSet`),
//! and waiters' polls take the line from its holder. A holder that loses its processor stops all
//! readers of the page.

use sync::CachePadded;
use sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::{PinnedFrame, USAGE_MAX};
use crate::caller::Caller;
use crate::spin::{Held, Word};

/// A frame whose pins are counted under a spin lock.
#[derive(Debug)]
pub struct CountedFrame {
    header: CachePadded<Header>,
}

#[derive(Debug)]
struct Header {
    lock: Word,
    /// An evictor fills the frame.
    is_claimed: AtomicBool,
    usage: AtomicU8,
    pins: AtomicU32,
    page: AtomicU64,
}

impl CountedFrame {
    #[inline]
    #[track_caller]
    fn locked(&self, me: &mut Caller) -> Held<'_> {
        self.header.lock.lock(me, &"buffer header")
    }
}

impl Header {
    /// Whether it holds `page`. Under the lock.
    #[inline]
    fn holds(&self, page: u64) -> bool {
        !self.is_claimed.load(Ordering::Relaxed) && self.page.load(Ordering::Relaxed) == page
    }
}

impl PinnedFrame for CountedFrame {
    fn new(page: u64) -> Self {
        let header = Header {
            lock: Word::default(),
            is_claimed: AtomicBool::new(false),
            usage: AtomicU8::new(1),
            pins: AtomicU32::new(0),
            page: AtomicU64::new(page),
        };
        Self { header: CachePadded::new(header) }
    }

    #[inline]
    fn pin(&self, me: &mut Caller, page: u64) -> bool {
        let _held = self.locked(me);
        let Header { usage, pins, .. } = &*self.header;
        let found = self.header.holds(page);
        if found {
            pins.store(pins.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            let uses = usage.load(Ordering::Relaxed);
            if uses < USAGE_MAX {
                usage.store(uses + 1, Ordering::Relaxed);
            }
        }
        found
    }

    #[inline]
    fn unpin(&self, me: &mut Caller) {
        let _held = self.locked(me);
        let pins = &self.header.pins;
        pins.store(pins.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
    }

    fn claim(&self, me: &mut Caller, page: u64) -> bool {
        let _held = self.locked(me);
        let Header { is_claimed, pins, .. } = &*self.header;
        let is_idle = self.header.holds(page) && pins.load(Ordering::Relaxed) == 0;
        if is_idle {
            is_claimed.store(true, Ordering::Relaxed);
            pins.store(1, Ordering::Relaxed);
        }
        is_idle
    }

    fn give(&self, me: &mut Caller, page: u64) {
        let _held = self.locked(me);
        let Header { is_claimed, usage, pins, page: held, .. } = &*self.header;
        held.store(page, Ordering::Relaxed);
        usage.store(1, Ordering::Relaxed);
        pins.store(pins.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        is_claimed.store(false, Ordering::Relaxed);
    }

    fn pins(&self, me: &mut Caller) -> u32 {
        let _held = self.locked(me);
        let Header { is_claimed, pins, .. } = &*self.header;
        // An evictor's own pin on the frame that it fills is no reader's.
        pins.load(Ordering::Relaxed) - u32::from(is_claimed.load(Ordering::Relaxed))
    }
}
