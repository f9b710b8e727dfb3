//! Per-core count of the latches the running fiber holds.
//!
//! Fibers of one core never switch while a latch is held, so a count per thread is exact for the
//! running fiber. Every suspend point calls [`assert_none`]. So a fiber that would park with a
//! latch panics: no latch is held across a park (ARCHITECTURE.md, Invariants).

use std::cell::Cell;

use crate::core_local;

core_local! {
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// Notes that the running fiber took a latch, or what must not outlive a park either.
#[inline]
pub fn acquire() {
    HELD.with(|held| held.set(held.get() + 1));
}

/// Notes that the running fiber gave a latch back.
#[inline]
pub fn release() {
    HELD.with(|held| held.set(held.get().wrapping_sub(1)));
}

/// How many latches the running fiber holds.
#[inline]
pub fn count() -> u32 {
    HELD.with(Cell::get)
}

/// Called at every suspend point: panics when a latch is held, since parking with it could block a
/// whole core.
#[inline]
pub fn assert_none() {
    let held = count();
    assert!(held == 0, "a fiber suspends while it holds {held} latches");
}
