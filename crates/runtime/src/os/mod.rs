//! The operating system's machine.
//!
//! The rest of the runtime is written over this surface, one file a kind of thing. Another machine
//! gives the same surface: the model machine is one (`crate::model`).
//!
//! - [`clock`]: monotonic and calendar time;
//! - [`counter`]: counters of a thread that the kernel keeps;
//! - [`folder`]: folders, and what is known of a path;
//! - [`heap`]: the C library's heap;
//! - [`mapping`]: mapped memory;
//! - [`operation`]: carrying an operation of a file or socket out;
//! - [`poll`]: waiting for many descriptors, and waking who waits;
//! - [`process`]: how the process ends, and what the system tells of it;
//! - [`processor`]: the processors, and where a thread runs;
//! - [`random`]: randomness for secrets and seeds;
//! - [`regular`]: regular files;
//! - `ring`: io_uring;
//! - `socket`: sockets;
//! - [`thread`]: threads beside the cores, and those that carry the cores;
//! - [`word`]: a word of a file, mapped into memory.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // an interface to the machine

pub(crate) mod clock;
pub(crate) mod counter;
pub(crate) mod folder;
pub(crate) mod heap;
pub(crate) mod mapping;
pub(crate) mod operation;
pub(crate) mod poll;
pub(crate) mod process;
pub(crate) mod processor;
pub(crate) mod random;
pub(crate) mod regular;
#[cfg(variants)]
pub(crate) mod replaced;
pub(crate) mod ring;
pub(crate) mod socket;
pub(crate) mod thread;
pub(crate) mod word;

use std::io;
use std::os::fd::{AsRawFd, RawFd};

/// The result of a system call that gives -1 and errno on failure.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// As [`check`], for calls that give a length.
pub(crate) fn check_len(result: isize) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// A descriptor of an open file, socket or event, closed when it is dropped.
pub(crate) type Descriptor = std::os::fd::OwnedFd;
/// The number of a descriptor.
pub(crate) type Fd = RawFd;

/// The number of a descriptor.
#[inline]
pub(crate) fn id(descriptor: &Descriptor) -> Fd {
    descriptor.as_raw_fd()
}
