//! The other side of a session: it takes the session's rows and supplies COPY data.
//!
//! The wire protocol encodes straight into its send buffer, the embedded API collects owned values.
//! Nothing given to a client outlives the call.

use query::plan::ColumnDesc;
use values::environment::Environment;
use values::error::{SqlError, SqlState};
use values::types::Datum;

/// Takes the results of statements. A method that may wait for the peer returns an error when the
/// peer is gone.
pub trait Client {
    /// The columns of the rows to come, and the format of each (empty: all text).
    fn columns(&mut self, columns: &[ColumnDesc], formats: &[i16]);
    /// A row of these columns; `session` says how values are written as text. May flush and park.
    fn row(
        &mut self,
        row: &[Datum<'_>],
        columns: &[ColumnDesc],
        session: &dyn Environment,
    ) -> Result<(), SqlError>;
    /// A statement is complete.
    fn complete(&mut self, tag: &str);
    /// The statement was empty.
    fn empty(&mut self);
    /// A notice or warning.
    fn notice(&mut self, notice: &Notice);
    /// COPY TO begins.
    fn copy_out_begin(&mut self, columns: usize, binary: bool);
    /// Data of a COPY TO.
    fn copy_out(&mut self, data: &[u8]) -> Result<(), SqlError>;
    /// COPY TO ends.
    fn copy_out_end(&mut self);
    /// COPY FROM begins.
    fn copy_in_begin(&mut self, columns: usize, binary: bool) -> Result<(), SqlError>;
    /// The next piece of a COPY FROM; None at its end. A failed copy is error 57014.
    fn copy_in(&mut self) -> Result<Option<&[u8]>, SqlError>;
}

/// How loud a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// DEBUG
    Debug,
    /// LOG
    Log,
    /// INFO
    Info,
    /// NOTICE
    Notice,
    /// WARNING
    Warning,
}

impl Severity {
    /// Its name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Debug => "DEBUG",
            Severity::Log => "LOG",
            Severity::Info => "INFO",
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
        }
    }
}

/// A message for the client that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How loud.
    pub severity: Severity,
    /// SQLSTATE.
    pub code: SqlState,
    /// The message.
    pub message: String,
    /// More of it.
    pub detail: Option<String>,
    /// Advice to the user.
    pub hint: Option<String>,
}

impl Notice {
    /// A warning.
    #[must_use]
    pub fn warning(code: SqlState, message: impl Into<String>) -> Notice {
        Notice { severity: Severity::Warning, code, message: message.into(), detail: None, hint: None }
    }

    /// A notice.
    #[must_use]
    pub fn told(message: impl Into<String>) -> Notice {
        Notice {
            severity: Severity::Notice,
            code: SqlState::SUCCESSFUL_COMPLETION,
            message: message.into(),
            detail: None,
            hint: None,
        }
    }
}
