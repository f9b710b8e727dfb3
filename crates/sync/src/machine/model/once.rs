//! `OnceLock`, `LazyLock` and `Once` of the model machine. While the first caller makes the value,
//! a second caller spins, which lets other virtual threads run.

use std::cell::Cell;
use std::ops::Deref;

use super::ledger::{read, write};

/// A value that the first caller makes.
#[derive(Debug)]
pub struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    making: Making,
}

/// Whether a virtual thread makes the value.
#[derive(Debug, Default)]
struct Making(Cell<bool>);

// SAFETY: all virtual threads run on one real thread.
unsafe impl Sync for Making {}

impl Making {
    /// True for the thread that makes the value; others wait until that has ended.
    fn begin(&self) -> bool {
        if !self.0.replace(true) {
            return true;
        }
        while self.0.get() {
            super::spin_loop();
        }
        false
    }
}

/// The maker has ended, with or without a value.
struct Ended<'a>(&'a Making);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.0.set(false);
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        OnceLock::new()
    }
}

impl<T> OnceLock<T> {
    /// No value.
    pub const fn new() -> OnceLock<T> {
        OnceLock { value: std::sync::OnceLock::new(), making: Making(Cell::new(false)) }
    }

    /// The value, if it is there.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        read(&self.making);
        self.value.get()
    }

    /// Sets the value once.
    ///
    /// # Errors
    /// The value, when one is there.
    pub fn set(&self, value: T) -> Result<(), T> {
        write(&self.making);
        self.value.set(value)
    }

    /// The value, which `make` makes if it is not there.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        read(&self.making);
        loop {
            if let Some(value) = self.value.get() {
                return value;
            }
            if self.making.begin() {
                let _ended = Ended(&self.making);
                let made = make();
                return self.value.get_or_init(|| made);
            }
        }
    }
}

/// A value that its first use makes.
pub struct LazyLock<T, F = fn() -> T> {
    value: OnceLock<T>,
    make: Cell<Option<F>>,
}

impl<T: std::fmt::Debug, F> std::fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(out)
    }
}

// SAFETY: all virtual threads run on one real thread; `make` is taken by one of them.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// A value that `make` makes.
    pub const fn new(make: F) -> LazyLock<T, F> {
        LazyLock { value: OnceLock::new(), make: Cell::new(Some(make)) }
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.get_or_init(|| self.make.take().expect("made once")())
    }
}

/// An action that the first caller runs.
#[derive(Debug, Default)]
pub struct Once(OnceLock<()>);

impl Once {
    /// An action that nobody has run.
    pub const fn new() -> Once {
        Once(OnceLock::new())
    }

    /// Runs `action`, or waits until the first caller's has ended.
    pub fn call_once(&self, action: impl FnOnce()) {
        self.0.get_or_init(action);
    }
}
