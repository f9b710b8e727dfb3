//! Errors of the rooms below, as clients see them.

use runtime::interrupt::{Interrupted, Reason};

use crate::error::{SqlError, SqlState};

/// The client's error for one of transactions or storage.
#[cold]
pub(crate) fn from_txn(error: txn::Error) -> SqlError {
    use txn::Error;
    match error {
        Error::Storage(error) => from_storage(&error),
        Error::Serialization => SqlError::new(
            SqlState::SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent update",
        ),
        Error::Deadlock => SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
            .with_hint("See server log for query details."),
        Error::LockNotAvailable | Error::LockTimeout => {
            SqlError::new(SqlState::LOCK_NOT_AVAILABLE, error.to_string())
        }
        Error::Interrupted(interrupted) => from_interrupt(interrupted.0),
        Error::ReadOnly => SqlError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            "cannot change data in a read-only transaction",
        ),
        Error::NoSuchSavepoint => {
            SqlError::new(SqlState::INVALID_SAVEPOINT_SPECIFICATION, "savepoint does not exist")
        }
        Error::TooManySessions => {
            SqlError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
        }
        Error::TooManyTransactions => SqlError::new(
            SqlState::CONFIGURATION_LIMIT_EXCEEDED,
            "too many transactions since the oldest open snapshot",
        ),
        Error::CorruptRow => SqlError::new(SqlState::DATA_CORRUPTED, "stored row has no version header"),
    }
}

/// The client's error for one of storage.
#[cold]
pub(crate) fn from_storage(error: &storage::Error) -> SqlError {
    use storage::Error;
    let code = match error {
        Error::Io(_) => SqlState::IO_ERROR,
        Error::DiskFull(_) | Error::LogFull => SqlState::DISK_FULL,
        Error::Corrupt { .. } => SqlState::DATA_CORRUPTED,
        Error::NoFrames => SqlState::OUT_OF_MEMORY,
        Error::Interrupted(interrupted) => return from_interrupt(interrupted.0),
        Error::TooLarge { .. } => SqlState::PROGRAM_LIMIT_EXCEEDED,
        _ => SqlState::SYSTEM_ERROR,
    };
    let message = match *error {
        Error::TooLarge { bytes, limit: limit @ storage::btree::MAX_KEY } => {
            format!("index row size {bytes} exceeds maximum {limit}")
        }
        Error::TooLarge { bytes, limit } => format!("row is too big: size {bytes}, maximum size {limit}"),
        _ => error.to_string(),
    };
    SqlError::new(code, message)
}

impl SqlError {
    /// What the client is told of an interrupt that ends its statement.
    #[must_use]
    pub fn interrupted(by: Interrupted) -> SqlError {
        from_interrupt(by.0)
    }

    /// The error for work that ended early.
    #[must_use]
    pub fn stopped(stopped: runtime::work::Stopped) -> SqlError {
        crate::work::stopped(stopped)
    }
}

/// 53200, with what the session may hold.
#[cold]
fn out_of_memory() -> SqlError {
    let error = SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory");
    match runtime::account::is_short() {
        true if runtime::account::excess() > 0 => {
            error.with_detail("The server has more memory resident than it may (--memory, --buffers).")
        }
        true => error.with_detail("The server's sessions hold all the memory it may use (--memory)."),
        false => error
            .with_detail("The session would hold more memory than it may.")
            .with_hint("Its limit is the setting \"statement_memory\"."),
    }
}

/// The client's error for an interrupted statement.
#[cold]
pub(crate) fn from_interrupt(reason: Reason) -> SqlError {
    let (code, message) = match reason {
        Reason::Shutdown | Reason::Terminate => {
            (SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        }
        Reason::Cancel => (SqlState::QUERY_CANCELED, "canceling statement due to user request"),
        Reason::StatementTimeout => {
            (SqlState::QUERY_CANCELED, "canceling statement due to statement timeout")
        }
        Reason::LockTimeout => (SqlState::LOCK_NOT_AVAILABLE, "canceling statement due to lock timeout"),
        Reason::TransactionTimeout => {
            (SqlState::TRANSACTION_TIMEOUT, "terminating connection due to transaction timeout")
        }
        Reason::RetainedLog => (
            SqlState::ADMIN_SHUTDOWN,
            "terminating connection because its transaction holds back too much log",
        ),
        Reason::IdleTimeout => (
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            "terminating connection due to idle-in-transaction timeout",
        ),
        Reason::Memory => return out_of_memory(),
    };
    SqlError::new(code, message)
}
