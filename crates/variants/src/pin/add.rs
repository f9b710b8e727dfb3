//! The published pin: one optimistic add, checked afterwards and taken back (P15).
//!
//! 1. A pin adds 1 to the state word. If an evictor had it locked, the thread subtracts the 1
//!    again, waits for the evictor, and begins anew.
//! 2. It compares the page afterwards, and takes the pin off again if that is another one.
//! 3. An evictor exchanges a word without pins for a locked one, changes the page, and subtracts
//!    the flag. A store would lose the pins that threads are about to take back.
//!
//! What must hold: [`LOCKED`] is set over no pins, in one exchange. A pin added later sees the flag
//! and touches nothing. So a thread that has a pin and has seen its page keeps it.
//!
//! The usage count is a byte beside the word, because an add cannot stop at its maximum. A lost
//! update does no harm, and the byte is written only below its maximum.
//!
//! Orderings: as in the step before.
//!
//! Cost in line transfers: 1 for a pin and 1 for its removal, at any number of threads.
//!
//! P15 also names the same in assembler. It has no arm of its own, because `fetch_add` compiles to
//! that code. On x86 it is `lock xadd`. On 64-bit ARM it is `ldadd`, or a loop of `ldaxr` and
//! `stxr`. On POWER it is a loop of `lwarx` and `stwcx.`. None of them compares the word.

use sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use sync::{CachePadded, profile};

use super::{PinnedFrame, USAGE_MAX};
use crate::caller::{Caller, wait_until};

/// One pin.
const PIN: u32 = 1;
/// An evictor changes the page.
const LOCKED: u32 = 1 << 31;

/// A frame whose pins are added optimistically.
#[derive(Debug)]
pub struct AddFrame {
    header: CachePadded<Header>,
}

#[derive(Debug)]
struct Header {
    state: AtomicU32,
    usage: AtomicU8,
    page: AtomicU64,
}

impl PinnedFrame for AddFrame {
    fn new(page: u64) -> Self {
        let header = Header { state: AtomicU32::new(0), usage: AtomicU8::new(1), page: AtomicU64::new(page) };
        Self { header: CachePadded::new(header) }
    }

    #[inline]
    fn pin(&self, me: &mut Caller, page: u64) -> bool {
        let Header { state, usage, page: held } = &*self.header;
        // Acquire: the page and its bytes are seen.
        while state.fetch_add(PIN, Ordering::Acquire) & LOCKED != 0 {
            me.retried();
            // Relaxed: this thread has read nothing under the pin.
            state.fetch_sub(PIN, Ordering::Relaxed);
            // Relaxed: the add above acquires.
            let is_open = || state.load(Ordering::Relaxed) & LOCKED == 0;
            profile::wait(&"page that goes", || wait_until(is_open));
        }
        // Relaxed: the page stays while there are pins.
        let found = held.load(Ordering::Relaxed) == page;
        if !found {
            self.unpin(me);
            return false;
        }
        // Relaxed, both: a hint.
        let uses = usage.load(Ordering::Relaxed);
        if uses < USAGE_MAX {
            usage.store(uses + 1, Ordering::Relaxed);
        }
        true
    }

    #[inline]
    fn unpin(&self, _: &mut Caller) {
        // Release: the next evictor comes after the reads under this pin.
        self.header.state.fetch_sub(PIN, Ordering::Release);
    }

    fn claim(&self, me: &mut Caller, page: u64) -> bool {
        let Header { state, page: held, .. } = &*self.header;
        // Acquire: the reads under earlier pins come before what follows.
        if state.compare_exchange(0, LOCKED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            me.retried();
            return false;
        }
        // Relaxed: under the flag.
        let found = held.load(Ordering::Relaxed) == page;
        if !found {
            // Release: as in `give`.
            state.fetch_sub(LOCKED, Ordering::Release);
        }
        found
    }

    fn give(&self, _: &mut Caller, page: u64) {
        let Header { state, usage, page: held } = &*self.header;
        // Relaxed, both: published by the subtraction below.
        held.store(page, Ordering::Relaxed);
        usage.store(1, Ordering::Relaxed);
        // Release: the next pin sees the page and its bytes.
        state.fetch_sub(LOCKED, Ordering::Release);
    }

    fn pins(&self, _: &mut Caller) -> u32 {
        // Relaxed: a count.
        self.header.state.load(Ordering::Relaxed) & !LOCKED
    }
}
