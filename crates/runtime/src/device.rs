//! Files, sockets, events and mappings as every machine names them: the requests and the answers.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// How a regular file is opened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Make it if it is missing.
    pub(crate) create: bool,
    /// Fail if it exists.
    pub(crate) create_new: bool,
    /// Empty it first.
    pub(crate) truncate: bool,
    /// Bypass the kernel's page cache.
    pub(crate) direct: bool,
}

impl How {
    /// To read it only.
    pub(crate) const READ: How =
        How { read: true, write: false, create: false, create_new: false, truncate: false, direct: false };
    /// To write it from its beginning on; it is made if it is missing.
    pub(crate) const OVERWRITE: How =
        How { read: false, write: true, create: true, truncate: true, ..How::READ };
}

/// The owner and permissions of a file or folder.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// The owner's user number.
    pub owner: u32,
    /// The permission bits.
    pub mode: u32,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// A file's identity, size and times of change. They differ if the file was replaced or written, or
/// if its permissions were changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its number on its file system, and its length.
    pub(crate) file: (u64, u64),
    /// Seconds and nanoseconds.
    pub(crate) changed: (i64, i64),
}

/// Why a path can't be a file: it names the path. The inner error of an [`std::io::Error`].
#[derive(Debug)]
pub struct Unusable(pub(crate) String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// The use of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Ordinary pages.
    Pages,
    /// Huge pages of `1 << n` bytes, reserved at once, so that a shortage shows here.
    HugePages(u32),
    /// A stack.
    Stack,
}

/// Events that an entry of the set is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Input, as long as there is some.
    Input,
    /// New input or the peer's end, once.
    NewInput,
    /// As [`Interest::NewInput`], or room for output, once.
    NewInputAndOutput,
}

/// One of two things for which a descriptor is waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Something to read.
    Input,
    /// Room to write.
    Room,
}

/// The events of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Happened {
    /// There may be input, or the end.
    pub(crate) input: bool,
    /// There may be room for output.
    pub(crate) room: bool,
    /// The peer has ended, or the connection is broken.
    pub(crate) hung_up: bool,
}

/// The other side of a connection that was accepted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin {
    /// Over TCP, from this address.
    Tcp(SocketAddr),
    /// Over a Unix socket, from this user's process, where it is known.
    Unix { user: u32, process: Option<i32> },
}

/// The most that one operation moves: the kernel's own limit is 2 GiB less a page.
const LEN_MAX: usize = 1 << 30;

/// An operation on a descriptor. Its maker waits until it has ended, so descriptor and buffer
/// outlive it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Read { fd: RawFd, to: *mut u8, len: u32, offset: u64 },
    Write { fd: RawFd, from: *const u8, len: u32, offset: u64, durable: bool },
    Sync { fd: RawFd },
    Allocate { fd: RawFd, offset: u64, len: u64 },
}

// SAFETY: the pointers are to buffers that the maker has borrowed (exclusively for a read) until
// the operation's end.
unsafe impl Send for Operation {}
// SAFETY: as above: an operation is carried out once, by the thread that takes it.
unsafe impl Sync for Operation {}

impl Operation {
    pub(crate) fn read(fd: RawFd, to: &mut [u8], offset: u64) -> Self {
        Self::Read { fd, to: to.as_mut_ptr(), len: to.len().min(LEN_MAX) as u32, offset }
    }

    pub(crate) fn write(fd: RawFd, from: &[u8], offset: u64, durable: bool) -> Self {
        Self::Write { fd, from: from.as_ptr(), len: from.len().min(LEN_MAX) as u32, offset, durable }
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
