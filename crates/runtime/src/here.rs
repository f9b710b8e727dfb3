//! The part of a worker that the code on its thread reaches without being handed it.
//!
//! What must hold: the worker enters the value before its loop and leaves it behind, and the value
//! stays in place meanwhile. It is not Sync, so a reference stays on the thread, where nothing runs
//! any more once the worker is gone.

use std::cell::Cell;
use std::ptr;

/// A thread's value of this type, while it is entered.
pub(crate) struct Here<T>(Cell<*const T>);

impl<T: 'static> Here<T> {
    /// No value.
    pub(crate) const fn none() -> Here<T> {
        Here(Cell::new(ptr::null()))
    }

    /// The value is the thread's from now on, until [`Here::leave`].
    pub(crate) fn enter(&self, value: &T) {
        self.0.set(value);
    }

    /// The worker's loop has ended.
    pub(crate) fn leave(&self) {
        self.0.set(ptr::null());
    }

    /// The thread's value; `None` where none is entered.
    #[inline]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // SAFETY: entered and not left, so it is in place, as the module says.
        unsafe { self.0.get().as_ref() }
    }
}
