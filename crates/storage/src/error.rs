//! The errors of storage. Callers answer each variant in a way of its own.

mod damage;

use std::{fmt, io};

use runtime::file::Unusable;

use crate::page::{Lsn, PageNo};
pub use damage::LogDamage;

/// An operation of the operating system that failed. Cheap to copy, since every session that waited
/// for one write gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoFailure {
    /// The operation.
    pub what: &'static str,
    /// The kind of error.
    pub kind: io::ErrorKind,
    /// The operating system's error number, if it gave one.
    pub code: Option<i32>,
}

impl IoFailure {
    /// The failure of the operation `what`.
    pub(crate) fn of(what: &'static str, error: &io::Error) -> IoFailure {
        IoFailure { what, kind: error.kind(), code: error.raw_os_error() }
    }
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{}: {}", self.what, io::Error::from_raw_os_error(code)),
            None => write!(f, "{}: {}", self.what, self.kind),
        }
    }
}

/// Why a data folder cannot be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FormatProblem {
    /// The path holds no data folder of Allcore.
    NotAStore,
    /// The caller wants a new folder where something is already.
    NotEmpty,
    /// Another process has the folder open.
    InUse,
    /// Another version of the program wrote the folder, in a format that this one does not read.
    Version {
        /// The format that was found, with its version.
        found: String,
        /// The format that this version reads.
        read: String,
    },
    /// A required file is missing.
    Missing(String),
    /// A file is damaged beyond what recovery repairs.
    Damaged(&'static str),
    /// A file contradicts the others; the text says which and how.
    Unfit(String),
    /// The log is damaged before a position that is known to have been durable.
    LogDamaged(Box<LogDamage>),
    /// `--discard-log-after` names a position that does not fit the log.
    Discard {
        /// The position that was named.
        asked: Lsn,
        /// Where the log is damaged, if it is.
        damage: Option<Box<LogDamage>>,
    },
    /// Files of different times or folders lie together.
    Mixed(&'static str),
}

impl fmt::Display for FormatProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatProblem::NotAStore => f.write_str(
                "the folder is no data folder: it holds other files; name one that is empty or not there",
            ),
            FormatProblem::NotEmpty => f.write_str("the folder is not empty"),
            FormatProblem::InUse => f.write_str("the data folder is in use by another process"),
            FormatProblem::Version { found, read } => write!(
                f,
                "the data folder has the format {found:?}, this version reads {read:?}: \
                 serve it with the version that wrote it"
            ),
            FormatProblem::Missing(file) => {
                write!(f, "file {file} is missing: restore the folder from a backup")
            }
            FormatProblem::Damaged(file) => {
                write!(f, "file {file} is damaged: restore the folder from a backup")
            }
            FormatProblem::Unfit(what) => f.write_str(what),
            FormatProblem::LogDamaged(damage) => damage.fmt(f),
            FormatProblem::Discard { asked, damage: None } => {
                write!(f, "--discard-log-after {asked} does not fit: the log is whole; start without it")
            }
            FormatProblem::Discard { asked, damage: Some(damage) } => {
                write!(f, "--discard-log-after {asked} does not fit: {damage}")
            }
            FormatProblem::Mixed(what) => {
                write!(f, "{what}; restore control, durable, log and pages from one backup")
            }
        }
    }
}

/// An error of the storage room.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// Input or output failed.
    Io(IoFailure),
    /// No space left on the device.
    DiskFull(IoFailure),
    /// A page's content is not what was written there.
    Corrupt {
        /// The page.
        page: PageNo,
        /// The damage.
        what: &'static str,
    },
    /// Every frame of the pool is pinned, latched or waits for a write that cannot succeed now.
    NoFrames,
    /// The session was interrupted while it waited.
    Interrupted(runtime::interrupt::Interrupted),
    /// An entry is larger than a page can take.
    TooLarge {
        /// The entry's length in bytes.
        bytes: usize,
        /// The largest length that fits.
        limit: usize,
    },
    /// The log is full and cannot grow.
    LogFull,
    /// The data folder cannot be used.
    Format(FormatProblem),
}

impl Error {
    /// An I/O error during the operation `what`. A full disk has a variant of its own, and so has a
    /// path that is no regular file.
    pub fn io(what: &'static str, error: &io::Error) -> Error {
        if let Some(unusable) = error.get_ref().and_then(|inner| inner.downcast_ref::<Unusable>()) {
            return Error::Format(FormatProblem::Unfit(unusable.to_string()));
        }
        let failure = IoFailure::of(what, error);
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull(failure),
            _ => Error::Io(failure),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(failure) => write!(f, "{failure}"),
            Error::DiskFull(failure) => write!(f, "{failure}"),
            Error::Corrupt { page, what } => write!(f, "page {page}: {what}"),
            Error::NoFrames => f.write_str("no free page frame in the buffer pool"),
            Error::Interrupted(_) => f.write_str("interrupted"),
            Error::TooLarge { bytes, limit } => write!(f, "entry of {bytes} bytes, at most {limit} fit"),
            Error::LogFull => f.write_str("the write-ahead log is full"),
            Error::Format(problem) => write!(f, "{problem}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<runtime::interrupt::Interrupted> for Error {
    fn from(interrupted: runtime::interrupt::Interrupted) -> Error {
        Error::Interrupted(interrupted)
    }
}

/// Adds the operation to an I/O result.
pub trait IoContext<T> {
    /// Turns an I/O error into one that names the operation `what`.
    fn during(self, what: &'static str) -> Result<T, Error>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn during(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::io(what, &error))
    }
}
