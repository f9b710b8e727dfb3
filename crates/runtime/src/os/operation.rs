//! One operation of a file or a socket, in a form that a ring, an I/O thread or the calling thread
//! can carry out.

use std::io;
use std::os::fd::RawFd;

use io_uring::{opcode, squeue, types};

/// The most that one operation moves: the kernel's own limit is 2 GiB less a page.
const LEN_MAX: usize = 1 << 30;

/// An operation on a descriptor. Its maker waits until it has ended, so descriptor and buffer outlive
/// it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Read {
        fd: RawFd,
        to: *mut u8,
        len: u32,
        offset: u64,
    },
    Write {
        fd: RawFd,
        from: *const u8,
        len: u32,
        offset: u64,
        durable: bool,
    },
    Sync {
        fd: RawFd,
    },
    Allocate {
        fd: RawFd,
        offset: u64,
        len: u64,
    },
    /// Without waiting for room.
    Send {
        fd: RawFd,
        from: *const u8,
        len: u32,
    },
    /// Without waiting for input.
    Receive {
        fd: RawFd,
        to: *mut u8,
        len: u32,
    },
}

// SAFETY: the pointers are to buffers that the maker has borrowed (exclusively for a read) until
// the operation's end.
unsafe impl Send for Operation {}
// SAFETY: as above: an operation is carried out once, by whoever takes it.
unsafe impl Sync for Operation {}

impl Operation {
    pub(crate) fn read(fd: RawFd, to: &mut [u8], offset: u64) -> Self {
        Self::Read { fd, to: to.as_mut_ptr(), len: to.len().min(LEN_MAX) as u32, offset }
    }

    pub(crate) fn write(fd: RawFd, from: &[u8], offset: u64, durable: bool) -> Self {
        Self::Write { fd, from: from.as_ptr(), len: from.len().min(LEN_MAX) as u32, offset, durable }
    }

    pub(crate) fn send(fd: RawFd, from: &[u8]) -> Self {
        Self::Send { fd, from: from.as_ptr(), len: from.len().min(LEN_MAX) as u32 }
    }

    pub(crate) fn receive(fd: RawFd, to: &mut [u8]) -> Self {
        Self::Receive { fd, to: to.as_mut_ptr(), len: to.len().min(LEN_MAX) as u32 }
    }

    /// As an entry of a ring's submission queue.
    pub(crate) fn entry(&self) -> squeue::Entry {
        match *self {
            Self::Read { fd, to, len, offset } => {
                opcode::Read::new(types::Fd(fd), to, len).offset(offset).build()
            }
            Self::Write { fd, from, len, offset, durable } => {
                let flags = if durable { libc::RWF_DSYNC } else { 0 };
                opcode::Write::new(types::Fd(fd), from, len).offset(offset).rw_flags(flags).build()
            }
            Self::Sync { fd } => opcode::Fsync::new(types::Fd(fd)).flags(types::FsyncFlags::DATASYNC).build(),
            Self::Send { fd, from, len } => opcode::Send::new(types::Fd(fd), from, len)
                .flags(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
                .build(),
            Self::Receive { fd, to, len } => {
                opcode::Recv::new(types::Fd(fd), to, len).flags(libc::MSG_DONTWAIT).build()
            }
            Self::Allocate { fd, offset, len } => {
                opcode::Fallocate::new(types::Fd(fd), len).offset(offset).build()
            }
        }
    }

    /// Carries the operation out on this thread: a count, or a negated error number.
    pub(crate) fn execute(&self) -> i32 {
        // SAFETY: the maker waits for the end, so descriptor and buffer are valid for the call.
        let result = unsafe {
            match *self {
                Self::Read { fd, to, len, offset } => {
                    libc::pread(fd, to.cast(), len as usize, offset as libc::off_t)
                }
                Self::Write { fd, from, len, offset, durable: false } => {
                    libc::pwrite(fd, from.cast(), len as usize, offset as libc::off_t)
                }
                Self::Write { fd, from, len, offset, durable: true } => {
                    let piece = libc::iovec { iov_base: from.cast_mut().cast(), iov_len: len as usize };
                    libc::pwritev2(fd, &piece, 1, offset as libc::off_t, libc::RWF_DSYNC)
                }
                Self::Sync { fd } => libc::fdatasync(fd) as isize,
                Self::Send { fd, from, len } => {
                    libc::send(fd, from.cast(), len as usize, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
                }
                Self::Receive { fd, to, len } => libc::recv(fd, to.cast(), len as usize, libc::MSG_DONTWAIT),
                Self::Allocate { fd, offset, len } => {
                    libc::fallocate(fd, 0, offset as libc::off_t, len as libc::off_t) as isize
                }
            }
        };
        match result {
            0.. => result as i32,
            _ => -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

/// A result as the kernel gives it: a count, or a negated error number.
pub(crate) fn outcome(result: i32) -> io::Result<usize> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result as usize) }
}

/// Whether the operation is simply to be tried again.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}
