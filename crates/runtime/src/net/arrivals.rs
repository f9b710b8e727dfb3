//! Bytes received for sessions before their turn, for many sessions in one system call.
//!
//! What must hold: a session's bytes lie in its slot until it is served, and no slot is filled
//! before all are empty again.

use std::cell::{Cell, RefCell, RefMut};
use std::io;

/// Sessions that are sent to, or received for, at once.
pub(super) const MOST: usize = 64;
/// Bytes of one session's slot. The session receives the rest into its own buffer. The size is no
/// power of two, so that the slots' beginnings do not share the same few cache lines.
pub(super) const SLOT: usize = 2048 + 128;

/// The slot with a session's bytes and their number, or the error (negative) that a receive met.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    slot: usize,
    result: i32,
}

/// The slots of one core.
pub(super) struct Arrivals {
    slots: RefCell<Box<[u8]>>,
    /// Slots that are in use.
    waiting: Cell<usize>,
}

impl Arrivals {
    /// Slots for [`MOST`] sessions, or for none.
    pub(super) fn new(is_wanted: bool) -> Arrivals {
        let bytes = if is_wanted { MOST * SLOT } else { 0 };
        Arrivals { slots: RefCell::new(vec![0; bytes].into_boxed_slice()), waiting: Cell::new(0) }
    }

    /// Whether every session has been served that something came for.
    pub(super) fn are_served(&self) -> bool {
        self.waiting.get() == 0
    }

    /// The slots, each [`SLOT`] bytes.
    pub(super) fn slots(&self) -> RefMut<'_, Box<[u8]>> {
        self.slots.borrow_mut()
    }

    /// A slot has been filled.
    pub(super) fn fill(&self, slot: usize, result: i32) -> Arrival {
        self.waiting.set(self.waiting.get() + 1);
        Arrival { slot, result }
    }

    /// Appends what has come to `to`; how much, and whether the slot was full.
    pub(super) fn take(&self, arrival: Arrival, to: &mut Vec<u8>) -> io::Result<(usize, bool)> {
        self.waiting.set(self.waiting.get() - 1);
        let received = length(arrival.result)?;
        let start = arrival.slot * SLOT;
        to.extend_from_slice(&self.slots.borrow()[start..start + received]);
        Ok((received, received == SLOT))
    }
}

/// The result of a call as it comes out of a ring.
pub(super) fn length(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}
