//! The operating system's machine.
//!
//! The rest of the runtime is written over this surface, one file a kind of thing. Another machine
//! gives the same surface. Still outside and calling the system themselves: `file` (folders, the
//! mapped word, the ring), `net` (sockets, the ring), and what `account` reads of the process.
//!
//! - [`clock`]: monotonic and calendar time;
//! - [`memory`]: mapped memory, and the C library's heap;
//! - [`operation`]: reads, writes and syncs of an open file;
//! - [`poll`]: waiting for many descriptors, and waking who waits;
//! - [`process`]: how the process ends;
//! - [`processor`]: the processors, and where a thread runs;
//! - [`random`]: randomness for secrets and seeds;
//! - [`regular`]: opening files;
//! - [`thread`]: threads beside the cores, and those that carry the cores.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // a door

pub(crate) mod clock;
pub(crate) mod memory;
pub(crate) mod operation;
pub(crate) mod poll;
pub(crate) mod process;
pub(crate) mod processor;
pub(crate) mod random;
pub(crate) mod regular;
pub(crate) mod thread;

use std::io;
use std::os::fd::RawFd;

/// The result of a system call that gives -1 and errno on failure.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// As [`check`], for calls that give a length.
pub(crate) fn check_len(result: isize) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// Sets a socket option that is an int.
pub(crate) fn set_option(socket: RawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: `value` is readable for the length given.
    check(unsafe {
        libc::setsockopt(socket, level, option, (&raw const value).cast(), size_of::<i32>() as u32)
    })?;
    Ok(())
}
