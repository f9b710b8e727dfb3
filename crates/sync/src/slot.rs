//! A small number that tells threads apart, to spread what they count over several cache lines.
//!
//! The runtime gives each worker its core's number; any other thread takes the next number at first
//! use. Slots of different threads may coincide: they spread load, they don't own anything.

use std::cell::Cell;

use crate::{core_local, machine};

core_local! {
    static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Sets this thread's slot: done once by each worker, with its core.
pub fn set(slot: usize) {
    SLOT.with(|own| own.set(slot));
}

/// This thread's slot.
#[inline]
pub fn current() -> usize {
    let slot = SLOT.with(Cell::get);
    if slot == usize::MAX { assign() } else { slot }
}

#[cold]
fn assign() -> usize {
    let slot = machine::next_number();
    set(slot);
    slot
}
