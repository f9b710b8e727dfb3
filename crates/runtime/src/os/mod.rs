//! The operating system's machine: the only files of the engine that call the system.
//!
//! The rest of the runtime is written over this surface, one file a kind of thing. Another machine
//! gives the same surface:
//!
//! - [`clock`]: monotonic and calendar time;
//! - [`process`]: how the process ends;
//! - [`processor`]: the processors, and where a thread runs;
//! - [`random`]: randomness for secrets and seeds;
//! - [`thread`]: threads beside the cores, and those that carry the cores.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // a door

pub(crate) mod clock;
pub(crate) mod process;
pub(crate) mod processor;
pub(crate) mod random;
pub(crate) mod thread;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The result of a system call that gives -1 and errno on failure.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// As [`check`], for calls that give a length.
pub(crate) fn check_len(result: isize) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// A new eventfd, non-blocking.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor it gives is owned by nobody else.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC))?)) }
}

/// Adds one to an eventfd, which wakes whoever polls it.
pub(crate) fn signal(event: &OwnedFd) {
    let one = 1u64;
    // SAFETY: eight readable bytes. A full counter (the only failure) means it is signalled already.
    unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Sets a socket option that is an int.
pub(crate) fn set_option(socket: RawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: `value` is readable for the length given.
    check(unsafe {
        libc::setsockopt(socket, level, option, (&raw const value).cast(), size_of::<i32>() as u32)
    })?;
    Ok(())
}
