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
                match libc::pwritev2(fd, &piece, 1, offset as libc::off_t, libc::RWF_DSYNC) {
                    -1 if lacks_flags(&io::Error::last_os_error()) => {
                        match libc::pwrite(fd, from.cast(), len as usize, offset as libc::off_t) {
                            written @ 0.. if libc::fdatasync(fd) == 0 => written,
                            _ => -1,
                        }
                    }
                    written => written,
                }
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

/// Whether an error says that a write knows no flags, as under user-mode emulation. The C library
/// makes EOPNOTSUPP of a kernel's ENOSYS.
fn lacks_flags(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EOPNOTSUPP)
}
