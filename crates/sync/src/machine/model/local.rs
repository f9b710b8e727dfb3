//! State of which each virtual thread has its own.

use std::cell::{Cell, RefCell, UnsafeCell};

/// As `std::thread::LocalKey`, with a value for each virtual thread.
///
/// Values are never dropped: the process ends with its simulation.
pub struct CoreLocal<T: 'static> {
    init: fn() -> T,
    values: UnsafeCell<Vec<Option<Box<T>>>>,
}

// SAFETY: only the one real thread of a simulation touches it.
unsafe impl<T> Sync for CoreLocal<T> {}

impl<T> std::fmt::Debug for CoreLocal<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("CoreLocal")
    }
}

impl<T> CoreLocal<T> {
    /// State that `init` makes for each virtual thread at its first use.
    pub const fn new(init: fn() -> T) -> CoreLocal<T> {
        CoreLocal { init, values: UnsafeCell::new(Vec::new()) }
    }

    fn value(&'static self) -> &'static T {
        let thread = super::current();
        // SAFETY: only this thread has the list, and no reference to it outlives a statement here.
        let there = unsafe { &*self.values.get() }.get(thread).is_some_and(Option::is_some);
        if !there {
            let value = Box::new((self.init)());
            // SAFETY: as above; `init` has returned.
            let values = unsafe { &mut *self.values.get() };
            if values.len() <= thread {
                values.resize_with(thread + 1, || None);
            }
            values[thread] = Some(value);
        }
        // SAFETY: as above. The value lies in its box for ever: it is never moved or dropped.
        let values = unsafe { &*self.values.get() };
        values[thread].as_deref().expect("made above")
    }

    /// Calls `body` with this virtual thread's value.
    pub fn with<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        body(self.value())
    }

    /// As [`CoreLocal::with`]; it never fails.
    ///
    /// # Errors
    /// None: the signature is that of `std`.
    pub fn try_with<R>(&'static self, body: impl FnOnce(&T) -> R) -> Result<R, std::thread::AccessError> {
        Ok(body(self.value()))
    }
}

impl<T> CoreLocal<Cell<T>> {
    /// Sets the value.
    pub fn set(&'static self, value: T) {
        self.value().set(value);
    }

    /// A copy of the value.
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.value().get()
    }

    /// Takes the value and leaves its default.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.value().take()
    }

    /// Sets the value; the one before.
    pub fn replace(&'static self, value: T) -> T {
        self.value().replace(value)
    }
}

impl<T> CoreLocal<RefCell<T>> {
    /// Calls `body` with the value.
    pub fn with_borrow<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        body(&self.value().borrow())
    }

    /// Calls `body` with the value, to be changed.
    pub fn with_borrow_mut<R>(&'static self, body: impl FnOnce(&mut T) -> R) -> R {
        body(&mut self.value().borrow_mut())
    }

    /// Sets the value.
    pub fn set(&'static self, value: T) {
        self.value().replace(value);
    }

    /// Takes the value and leaves its default.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.value().take()
    }

    /// Sets the value; the one before.
    pub fn replace(&'static self, value: T) -> T {
        self.value().replace(value)
    }
}

/// Declares state of which each virtual thread has its own.
#[macro_export]
macro_rules! core_local {
    ($($(#[$about:meta])* static $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$about])* static $name: $crate::CoreLocal<$type> = $crate::CoreLocal::new(|| $value);)*
    };
}
