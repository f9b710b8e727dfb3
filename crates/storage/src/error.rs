//! What can go wrong in storage. Each variant is something a caller can tell apart and answer differently.

mod damage;

use std::{fmt, io};

use runtime::file::Unusable;

use crate::page::{Lsn, PageNo};
pub use damage::LogDamage;

/// An operation of the operating system that failed. Cheap to copy, so that everybody who waited for one write can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoFailure {
    /// What was being done.
    pub what: &'static str,
    /// The kind of error.
    pub kind: io::ErrorKind,
    /// The operating system's error number, if it gave one.
    pub code: Option<i32>,
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{}: {}", self.what, io::Error::from_raw_os_error(code)),
            None => write!(f, "{}: {}", self.what, self.kind),
        }
    }
}

/// Why a data folder can't be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FormatProblem {
    /// There is no data folder of ours at the path.
    NotAStore,
    /// Creating was asked for where something is already.
    NotEmpty,
    /// Another process has it open.
    InUse,
    /// Another version of the program wrote the folder, in a format that this one does not read.
    Version {
        /// The format that was found, with its version.
        found: String,
        /// The format that this version reads.
        read: String,
    },
    /// A file that must be there isn't.
    Missing(String),
    /// A file is there and damaged beyond what recovery repairs.
    Damaged(&'static str),
    /// A file is not as the others say it must be; this says which and how.
    Unfit(String),
    /// The log is damaged before a position that was known to be durable.
    LogDamaged(Box<LogDamage>),
    /// The end of the log was to be discarded from a position on that does not fit.
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
    /// A page is not what was written there.
    Corrupt {
        /// The page.
        page: PageNo,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Every frame of the pool is pinned, latched or can't be written.
    NoFrames,
    /// The session was interrupted while it waited.
    Interrupted(runtime::interrupt::Interrupted),
    /// An entry is larger than a page can take.
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The most there may be.
        limit: usize,
    },
    /// The log has no room and can't get any.
    LogFull,
    /// The data folder can't be used.
    Format(FormatProblem),
}

impl Error {
    /// An I/O error with what was being done; "no space left" has its own variant, and so has what is no regular file.
    pub fn io(what: &'static str, error: &io::Error) -> Error {
        if let Some(unusable) = error.get_ref().and_then(|inner| inner.downcast_ref::<Unusable>()) {
            return Error::Format(FormatProblem::Unfit(unusable.to_string()));
        }
        let failure = IoFailure { what, kind: error.kind(), code: error.raw_os_error() };
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

/// Adds what was being done to an I/O result.
pub trait IoContext<T> {
    /// The result with `what` in its error.
    fn during(self, what: &'static str) -> Result<T, Error>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn during(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::io(what, &error))
    }
}
