//! Opening of files that must be regular ones.
//!
//! To open a FIFO waits for its other end, and to read a terminal for its user: for ever, where one
//! lies in a file's place. A file is a regular one here, or a symbolic link to one.

use std::fmt;
use std::fs::{FileType, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use super::check;

/// Why a path can't be a file: it names the path. The inner error of an [`io::Error`].
#[derive(Debug)]
pub struct Unusable(String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// Opens a regular file as `how` says, with more flags of the system, and never waits for what else
/// may be there.
///
/// # Errors
/// Those of the system. [`Unusable`] where something else is there, or symbolic links lead in a
/// circle.
pub(crate) fn open(path: &Path, how: &mut OpenOptions, flags: i32) -> io::Result<std::fs::File> {
    // Before it is opened: that alone makes some devices do something.
    match std::fs::metadata(path) {
        Ok(about) => refuse_others(path, about.file_type())?,
        // It may be made.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(at(path, error)),
    }
    // Something else may be there by now.
    let file = how.custom_flags(flags | libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    refuse_others(path, file.metadata()?.file_type())?;
    let fd = file.as_raw_fd();
    // Taken back: with this flag io_uring ends an operation that has to wait.
    // SAFETY: a plain call on an open descriptor.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK) })?;
    Ok(file)
}

/// Opens a regular file to read it, on the thread that calls.
///
/// # Errors
/// Those of the system. [`Unusable`] where something else is there, or symbolic links lead in a
/// circle.
pub fn open_to_read(path: &Path) -> io::Result<std::fs::File> {
    open(path, OpenOptions::new().read(true), 0)
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
