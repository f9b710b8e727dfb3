//! Errors of transactions. `execution::error` maps each variant to one SQLSTATE.

use std::fmt;

use runtime::interrupt::Interrupted;

/// An error of this crate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// Storage failed.
    Storage(storage::Error),
    /// Repeatable read met a row that a transaction outside its snapshot changed, or the write
    /// would have replaced a row that the snapshot sees (40001).
    Serialization,
    /// Repeatable read wrote to a row that a transaction outside its snapshot deleted (40001).
    ConcurrentDelete,
    /// This wait closed a circle of waits (40P01).
    Deadlock,
    /// The lock was not free at once (55P03).
    LockNotAvailable,
    /// The lock was not free within `lock_timeout` (55P03).
    LockTimeout,
    /// The statement was cancelled or timed out, or its session ends.
    Interrupted(Interrupted),
    /// A change in a read-only transaction (25006).
    ReadOnly,
    /// The savepoint was released or rolled back (3B001).
    NoSuchSavepoint,
    /// More sessions than the engine has slots for (53300).
    TooManySessions,
    /// No further transaction number is available: a very old snapshot keeps too many transactions
    /// unfinished or unpurged.
    TooManyTransactions,
    /// A stored row is shorter than its version header.
    CorruptRow,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Storage(error) => error.fmt(f),
            Error::Serialization => f.write_str("could not serialize access due to concurrent update"),
            Error::ConcurrentDelete => f.write_str("could not serialize access due to concurrent delete"),
            Error::Deadlock => f.write_str("deadlock detected"),
            Error::LockNotAvailable => f.write_str("could not obtain lock"),
            Error::LockTimeout => f.write_str("canceling statement due to lock timeout"),
            Error::Interrupted(_) => f.write_str("interrupted"),
            Error::ReadOnly => f.write_str("cannot change data in a read-only transaction"),
            Error::NoSuchSavepoint => f.write_str("savepoint does not exist"),
            Error::TooManySessions => f.write_str("too many sessions"),
            Error::TooManyTransactions => f.write_str("too many transactions since the oldest snapshot"),
            Error::CorruptRow => f.write_str("stored row has no version header"),
        }
    }
}

impl std::error::Error for Error {}

impl From<storage::Error> for Error {
    fn from(error: storage::Error) -> Error {
        match error {
            storage::Error::Interrupted(interrupted) => Error::Interrupted(interrupted),
            other => Error::Storage(other),
        }
    }
}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Error {
        Error::Interrupted(interrupted)
    }
}
