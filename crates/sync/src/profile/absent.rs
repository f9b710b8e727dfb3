//! The profiler of loom's machine and of the model: never on. Time there is virtual, and an address
//! would make a schedule depend on the host.

use super::{Hold, Row, Site, Waiting};

/// Never.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    false
}

/// Does nothing.
pub fn enable(_clock: fn() -> u64) {}

/// Does nothing.
pub fn disable() {}

/// Does nothing.
pub fn reset() {}

/// None.
pub fn rows() -> Vec<Row> {
    Vec::new()
}

/// Does nothing.
#[inline(always)]
pub(crate) fn mark(_key: usize) {}

pub(super) fn ticks() -> u64 {
    0
}

pub(super) fn begin(_key: usize, _site: &Site, _waiting: Option<Waiting>) -> Hold {
    Hold::NONE
}

pub(super) fn end(_hold: Hold, _contended: bool) {}

pub(super) fn take_mark(_key: usize) -> bool {
    false
}

pub(super) fn count_wait(_site: &Site, Waiting(_since): Waiting) {}

pub(super) fn count_event(_site: &Site) {}
