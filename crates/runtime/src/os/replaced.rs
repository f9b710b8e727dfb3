//! Calls that a build with `--cfg variants` makes for each statement, as PostgreSQL did.

use std::io;
use std::os::fd::RawFd;

use super::check;

/// Names this thread: the first 15 bytes count, up to a NUL.
pub(crate) fn name_thread(name: &[u8; 16]) {
    // SAFETY: the kernel reads at most 16 bytes, which are there, and keeps no reference.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// The length of a file, by a seek to its end.
pub(crate) fn seek_to_end(fd: RawFd) -> io::Result<()> {
    // SAFETY: a plain system call.
    let end = unsafe { libc::lseek(fd, 0, libc::SEEK_END) };
    check(if end < 0 { -1 } else { 0 }).map(drop)
}
