//! Translates the errors of `txn` and `storage` into those that clients see.

use values::error::{SqlError, SqlState};

/// The client's error for an error of `txn`.
#[cold]
pub fn from_txn(error: txn::Error) -> SqlError {
    use txn::Error;
    match error {
        Error::Storage(error) => from_storage(&error),
        Error::Serialization | Error::ConcurrentDelete => {
            SqlError::new(SqlState::SERIALIZATION_FAILURE, error.to_string())
        }
        Error::Deadlock => SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
            .with_hint("See server log for query details."),
        Error::LockNotAvailable | Error::LockTimeout => {
            SqlError::new(SqlState::LOCK_NOT_AVAILABLE, error.to_string())
        }
        Error::Interrupted(interrupted) => SqlError::interrupted(interrupted),
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

/// The client's error for an error of `storage`.
#[cold]
pub fn from_storage(error: &txn::StorageError) -> SqlError {
    use txn::StorageError as Error;
    let code = match error {
        Error::Io(_) => SqlState::IO_ERROR,
        Error::DiskFull(_) | Error::LogFull => SqlState::DISK_FULL,
        Error::Corrupt { .. } => SqlState::DATA_CORRUPTED,
        Error::NoFrames => SqlState::OUT_OF_MEMORY,
        Error::Interrupted(interrupted) => return SqlError::interrupted(*interrupted),
        Error::TooLarge { .. } => SqlState::PROGRAM_LIMIT_EXCEEDED,
        _ => SqlState::SYSTEM_ERROR,
    };
    let message = match *error {
        Error::TooLarge { bytes, limit: limit @ txn::trees::MAX_KEY } => {
            format!("index row size {bytes} exceeds maximum {limit}")
        }
        Error::TooLarge { bytes, limit } => format!("row is too big: size {bytes}, maximum size {limit}"),
        _ => error.to_string(),
    };
    SqlError::new(code, message)
}
