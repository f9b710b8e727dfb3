//! Published mechanisms whose state or fix is the operating system's: the variants that make system
//! calls or call the C library.
//!
//! A module is one row, as in the crate `variants`, and its head states the same. Reports are those
//! of `variants`, and
//!
//! - H11: Haas 2011, PostgreSQL on 64 cores.
//!
//! What must hold:
//!
//! 1. Each function is safe to call. Each `unsafe` block has its proof.
//! 2. A failed call of the kernel ends the program with the call's name. A variant that went on
//!    would measure something else.
//! 3. `mechanisms` alone imports this crate. It is no part of the engine and uses the standard
//!    library.

pub mod memory;
pub mod messages;
pub mod random;
pub mod reads;
pub mod semaphore;
pub mod size;
pub mod switches;
pub mod title;

use std::io;

#[cfg(test)]
use variants::caller;

// The threads that stress the variants of the crate `variants`.
#[cfg(test)]
#[path = "../../variants/src/test_threads.rs"]
mod test_threads;

/// The result of a call of the kernel that cannot fail here.
#[track_caller]
fn checked(name: &str, result: i64) -> i64 {
    assert!(result >= 0, "{name}: {}", io::Error::last_os_error());
    result
}

/// Raises this process's limit of open files as far as it may, for tests whose threads each open
/// some.
#[cfg(test)]
fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to an `rlimit`, which the call fills in.
    checked("getrlimit", unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) }.into());
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the pointer is to an `rlimit`.
    checked("setrlimit", unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }.into());
}

/// A new file that goes with its last descriptor.
#[cfg(test)]
fn test_file() -> std::fs::File {
    tempfile::tempfile().expect("a folder for temporary files")
}
