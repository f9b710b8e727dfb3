//! The parts of `std` that the operating system's machine and loom's share. Loom does not explore
//! them.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // an interface to the machine

/// A value that the first caller makes. Its initialiser must not suspend its fiber: a second caller
/// blocks its whole thread until the value is there. Loom does not explore it.
pub type OnceLock<T> = std::sync::OnceLock<T>;
/// A value that its first use makes; as [`OnceLock`].
pub type LazyLock<T, F = fn() -> T> = std::sync::LazyLock<T, F>;
/// An action that the first caller runs; as [`OnceLock`].
pub type Once = std::sync::Once;

/// Channels between threads of the operating system. A fiber must not wait at one: it would hold
/// its core.
pub mod channel {
    /// Takes messages out.
    pub type Receiver<T> = std::sync::mpsc::Receiver<T>;
    /// Puts messages in, without bound.
    pub type Sender<T> = std::sync::mpsc::Sender<T>;

    /// A channel without bound.
    pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
        std::sync::mpsc::channel()
    }
}
