//! Opening of files that must be regular ones.
//!
//! What must hold: a file that this module opens is a regular one. Opening a FIFO waits for its
//! other end, and reading a terminal waits for its user. Either may wait for ever. A symbolic link
//! to a regular file is accepted.

use std::fs::{FileType, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::check;
use crate::device::{How, Unusable};

/// Permissions of files made here: their owner reads and writes them, nobody else opens them.
const PRIVATE_FILE: u32 = 0o600;

/// An open regular file.
#[derive(Debug)]
pub struct RegularFile(std::fs::File);

impl RegularFile {
    /// The descriptor.
    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The permission bits.
    ///
    /// # Errors
    /// Those of the system.
    pub fn mode(&self) -> io::Result<u32> {
        self.0.metadata().map(|about| about.mode() & 0o7777)
    }

    /// Present length.
    pub(crate) fn len(&self) -> io::Result<u64> {
        self.0.metadata().map(|about| about.len())
    }

    /// Cuts or extends (with a hole) to `len`.
    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    /// Makes the file durable with all that describes it.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// Takes the file's exclusive lock until it is closed; `WouldBlock` when another process has
    /// it.
    pub(crate) fn try_lock(&self) -> io::Result<()> {
        self.0.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })
    }
}

impl Read for RegularFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to)
    }
}

impl Write for RegularFile {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.0.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Opens a regular file; one it creates has permissions 0600. Where the file system refuses direct
/// I/O (tmpfs), the file is opened without; the flag tells which.
///
/// # Errors
/// Those of the system. [`Unusable`] where something else is there, or symbolic links lead in a
/// circle.
pub(crate) fn open(path: &Path, how: How) -> io::Result<(RegularFile, bool)> {
    let flags = if how.direct { libc::O_DIRECT } else { 0 };
    match open_with(path, how, flags) {
        Err(error) if how.direct && error.raw_os_error() == Some(libc::EINVAL) => {
            Ok((open_with(path, how, 0)?, false))
        }
        opened => Ok((opened?, how.direct)),
    }
}

fn open_with(path: &Path, how: How, flags: i32) -> io::Result<RegularFile> {
    // Before it is opened: that alone makes some devices do something.
    match std::fs::metadata(path) {
        Ok(about) => refuse_others(path, about.file_type())?,
        // It may be made.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(at(path, error)),
    }
    let mut options = OpenOptions::new();
    options.read(how.read).write(how.write).create(how.create).create_new(how.create_new);
    options.truncate(how.truncate).mode(PRIVATE_FILE);
    options.custom_flags(flags | libc::O_NONBLOCK | libc::O_NOCTTY);
    // Something else may be there by now.
    let file = options.open(path)?;
    refuse_others(path, file.metadata()?.file_type())?;
    let fd = file.as_raw_fd();
    // Taken back: with this flag io_uring ends an operation that has to wait.
    // SAFETY: a plain call on an open descriptor.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK) })?;
    Ok(RegularFile(file))
}

/// An open file without a name, in the system's folder for temporary files.
pub(crate) fn open_unnamed() -> io::Result<RegularFile> {
    let mut how = OpenOptions::new();
    how.read(true).write(true);
    let folder = std::env::temp_dir();
    let opened = match how.custom_flags(libc::O_TMPFILE).open(&folder) {
        // A file system that has no files without names.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            let mut number = [0; 8];
            super::random::fill(&mut number)?;
            let name = format!("allcore-{}-{:x}", std::process::id(), u64::from_le_bytes(number));
            let path = folder.join(name);
            let file = how.custom_flags(0).create_new(true).mode(PRIVATE_FILE).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        opened => opened,
    };
    opened.map(RegularFile)
}

/// An error with its path where the system's words alone would not help: which link leads in a
/// circle.
pub(crate) fn at(path: &Path, error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::ELOOP) {
        return error;
    }
    io::Error::new(error.kind(), Unusable(format!("{}: {error}", path.display())))
}

fn refuse_others(path: &Path, kind: FileType) -> io::Result<()> {
    let found = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a FIFO",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    let message = format!("{} is {found}, not a regular file", path.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, Unusable(message)))
}
