//! The step between: a state word changed by a compare-and-swap loop (PostgreSQL 9.6, `PinBuffer`
//! and `UnpinBuffer`).
//!
//! The word has the pins in its low 18 bits, the usage count above, and the flag [`LOCKED`].
//!
//! 1. A pin reads the word. While it is locked, the thread waits. Otherwise it exchanges the word
//!    for one with one more pin and use, and begins anew if the word has changed meanwhile.
//! 2. It compares the page afterwards, and takes the pin off again if that is another one.
//! 3. An evictor exchanges a word without pins for a locked one, changes the page, and stores an
//!    unlocked word.
//!
//! What must hold: the page changes only under [`LOCKED`], which is set over no pins; no pin is
//! added under it. So a thread that has a pin and has seen its page keeps it.
//!
//! Orderings: a pin acquires the page and its bytes from the evictor's release. Taking a pin off
//! releases the reads before it to the next evictor, which acquires.
//!
//! Cost in line transfers: 1 for a pin and 1 for its removal, if uncontended. With n threads at
//! once up to n attempts for each, and each failure is a transfer.

use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::{CachePadded, profile};

use super::{PinnedFrame, USAGE_MAX};
use crate::caller::{Caller, wait_until};

/// One pin.
const PIN: u32 = 1;
const PINS: u32 = (1 << 18) - 1;
/// One use.
const USE: u32 = 1 << 18;
const USES: u32 = 15 << 18;
/// An evictor changes the page.
const LOCKED: u32 = 1 << 31;

/// A frame whose state word changes by a loop of exchanges.
#[derive(Debug)]
pub struct ExchangeFrame {
    header: CachePadded<Header>,
}

#[derive(Debug)]
struct Header {
    state: AtomicU32,
    page: AtomicU64,
}

impl PinnedFrame for ExchangeFrame {
    fn new(page: u64) -> Self {
        let header = Header { state: AtomicU32::new(USE), page: AtomicU64::new(page) };
        Self { header: CachePadded::new(header) }
    }

    #[inline]
    fn pin(&self, me: &mut Caller, page: u64) -> bool {
        let state = &self.header.state;
        // Relaxed: the exchange decides.
        let mut seen = state.load(Ordering::Relaxed);
        loop {
            if seen & LOCKED != 0 {
                profile::wait(&"page that goes", || {
                    wait_until(|| {
                        // Relaxed: as above.
                        seen = state.load(Ordering::Relaxed);
                        seen & LOCKED == 0
                    });
                });
            }
            let used = if seen & USES < u32::from(USAGE_MAX) * USE { USE } else { 0 };
            // Acquire: the page and its bytes are seen. Relaxed on failure: looked at again.
            match state.compare_exchange_weak(seen, seen + PIN + used, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(found) => {
                    me.retried();
                    seen = found;
                }
            }
        }
        // Relaxed: the page stays while there are pins.
        let found = self.header.page.load(Ordering::Relaxed) == page;
        if !found {
            self.unpin(me);
        }
        found
    }

    #[inline]
    fn unpin(&self, me: &mut Caller) {
        let state = &self.header.state;
        // Relaxed: the exchange decides.
        let mut seen = state.load(Ordering::Relaxed);
        // Release: the next evictor comes after the reads under this pin.
        while let Err(found) =
            state.compare_exchange_weak(seen, seen - PIN, Ordering::Release, Ordering::Relaxed)
        {
            me.retried();
            seen = found;
        }
    }

    fn claim(&self, me: &mut Caller, page: u64) -> bool {
        let Header { state, page: held } = &*self.header;
        // Relaxed: the exchange decides.
        let seen = state.load(Ordering::Relaxed);
        if seen & (PINS | LOCKED) != 0 {
            return false;
        }
        // Acquire: the reads under earlier pins come before what follows.
        if state.compare_exchange(seen, seen | LOCKED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            me.retried();
            return false;
        }
        // Relaxed: under the flag.
        let found = held.load(Ordering::Relaxed) == page;
        if !found {
            // Release: as in `give`. No thread changes a locked word.
            state.store(seen, Ordering::Release);
        }
        found
    }

    fn give(&self, _: &mut Caller, page: u64) {
        // Relaxed: published by the store below.
        self.header.page.store(page, Ordering::Relaxed);
        // Release: the next pin sees the page and its bytes. No thread changes a locked word.
        self.header.state.store(USE, Ordering::Release);
    }

    fn pins(&self, _: &mut Caller) -> u32 {
        // Relaxed: a count.
        self.header.state.load(Ordering::Relaxed) & PINS
    }
}
