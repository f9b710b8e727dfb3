//! The errors of statements that an interrupt ends, or whose work cannot go on.

use runtime::account;
use runtime::budget::Stopped;
use runtime::interrupt::{Interrupted, Reason};

use crate::error::{SqlError, SqlState};

impl SqlError {
    /// The error for an interrupt that ends the statement.
    #[cold]
    #[must_use]
    pub fn interrupted(by: Interrupted) -> SqlError {
        from_reason(by.0)
    }

    /// The error for work that ended early.
    #[cold]
    #[must_use]
    pub fn stopped(stopped: Stopped) -> SqlError {
        match stopped {
            Stopped::Interrupted(interrupted) => SqlError::interrupted(interrupted),
            Stopped::Budget => {
                SqlError::new(SqlState::INSUFFICIENT_RESOURCES, "no thread can be started for a long call")
            }
        }
    }
}

/// 53200, with the limit that was reached.
#[cold]
fn out_of_memory() -> SqlError {
    let error = SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory");
    match account::is_short() {
        true if account::excess() > 0 => {
            error.with_detail("The server has more memory resident than it may (--memory, --buffers).")
        }
        true => error.with_detail("The server's sessions hold all the memory it may use (--memory)."),
        false => error
            .with_detail("The session would hold more memory than it may.")
            .with_hint("Its limit is the setting \"statement_memory\"."),
    }
}

/// The error for an interrupted statement.
fn from_reason(reason: Reason) -> SqlError {
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
