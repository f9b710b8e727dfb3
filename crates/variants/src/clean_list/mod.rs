//! Row `clean-list` (B14): the search for a victim in the list of clean buffers.
//!
//! The list holds clean buffers in the order of their release. Threads use some of them where they
//! lie. So a search passes over the busy ones at the front, which nobody takes away. [`HeldList`]
//! is the stock state: the list's lock is held through the whole scan. [`ScannedList`] is the
//! published one: the scan walks unlocked, and the lock is taken for changes only.
//!
//! What must hold:
//! 1. A buffer is on the list, or one thread has taken it.
//! 2. A busy buffer is not taken.
//! 3. A search that finds nothing has looked at every buffer that lay on the list all the time.

mod headers;
mod held;
mod scanned;

pub use held::HeldList;
pub use scanned::ScannedList;

use crate::caller::Caller;

/// A list of clean buffers, all on it at first.
pub trait CleanList: Sync {
    /// The part of a search that a thread keeps between two of them.
    type Kept: Default + Send;
    /// Takes the first buffer that is not busy. It is busy then, and the caller's.
    fn victim(&self, me: &mut Caller, kept: &mut Self::Kept) -> Option<usize>;
    /// Puts a buffer at the end, not busy. Only for the thread that has taken it.
    fn put(&self, me: &mut Caller, buffer: usize);
    /// Makes a buffer busy where it lies. False if it is busy already.
    fn enter(&self, buffer: usize) -> bool;
    /// Ends the use that [`Self::enter`] began.
    fn leave(&self, buffer: usize);
}

#[cfg(all(test, not(loom)))]
mod tests;
