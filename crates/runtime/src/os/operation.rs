//! Carrying an operation out on the thread that calls.

use std::io;

use crate::device::Operation;

/// Carries the operation out on this thread: a count, or a negated error number.
pub(crate) fn execute(operation: &Operation) -> i32 {
    // SAFETY: the maker waits for the end, so descriptor and buffer are valid for the call.
    let result = unsafe {
        match *operation {
            Operation::Read { fd, to, len, offset } => {
                libc::pread(fd, to.cast(), len as usize, offset as libc::off_t)
            }
            Operation::Write { fd, from, len, offset, durable: false } => {
                libc::pwrite(fd, from.cast(), len as usize, offset as libc::off_t)
            }
            Operation::Write { fd, from, len, offset, durable: true } => {
                let piece = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: len as usize };
                libc::pwritev2(fd, &piece, 1, offset as libc::off_t, libc::RWF_DSYNC)
            }
            Operation::Sync { fd } => libc::fdatasync(fd) as isize,
            Operation::Allocate { fd, offset, len } => {
                libc::fallocate(fd, 0, offset as libc::off_t, len as libc::off_t) as isize
            }
        }
    };
    match result {
        0.. => result as i32,
        _ => -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
    }
}
