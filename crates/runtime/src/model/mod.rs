//! The model machine: virtual cores, time, files and sockets in one thread, all drawn from one
//! seed.
//!
//! It gives the same surface as `crate::os`, and the rest of the runtime runs on it unchanged. Each
//! worker and each other thread is a [virtual thread](machine) with a clock of its own. The one
//! that is furthest behind runs, until its clock passes another's. What must hold:
//!
//! 1. A run depends on its seed and its program alone: not on the host's clock, its randomness, its
//!    addresses or its other threads. [`Outcome::hash`] covers every switch and every
//!    [operation](events) of a file, folder, socket or mapping, with the bytes that it moves.
//! 2. A process runs one simulation: state that virtual threads leave behind is never dropped.
//! 3. Nothing here waits for the host.
//!
//! Costs are plausible and nothing more: an access takes some nanoseconds, a read of a file some
//! ten microseconds. No faults are injected.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // an interface to the machine

mod changes;
pub(crate) mod clock;
pub(crate) mod counter;
mod disk;
mod events;
pub(crate) mod folder;
mod generator;
pub(crate) mod heap;
mod machine;
pub(crate) mod mapping;
pub(crate) mod operation;
mod pipe;
pub(crate) mod poll;
mod preemption;
pub(crate) mod process;
pub(crate) mod processor;
pub(crate) mod random;
pub(crate) mod regular;
pub(crate) mod ring;
pub(crate) mod socket;
mod table;
pub(crate) mod thread;
pub(crate) mod word;

use std::os::fd::RawFd;

pub use machine::{Outcome, simulate, thread_name};
pub use socket::Connection;
pub(crate) use table::Descriptor;

/// The number of a descriptor.
pub(crate) type Fd = RawFd;

/// The number of a descriptor.
#[inline]
pub(crate) fn id(descriptor: &Descriptor) -> Fd {
    descriptor.id()
}
