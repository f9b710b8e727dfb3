//! Faults of a control connection, each described in one line.

use std::error::Error;
use std::fmt;

use crate::arm::{Address, Target};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// SQLSTATE, or MySQL's number, where the server gave one.
    code: Option<String>,
    message: String,
}

impl From<postgres::Error> for Fault {
    fn from(error: postgres::Error) -> Self {
        match error.as_db_error() {
            Some(told) => Self::told(told.code().code(), told.message()),
            None => Self::broken(&deepest(&error)),
        }
    }
}

impl From<mysql::Error> for Fault {
    fn from(error: mysql::Error) -> Self {
        match error {
            mysql::Error::MySqlError(told) => Self::told(&told.code.to_string(), &told.message),
            error => Self::broken(&deepest(&error)),
        }
    }
}

impl Fault {
    fn told(code: &str, message: &str) -> Self {
        Self { code: Some(code.to_owned()), message: format!("{} ({code})", line(message)) }
    }

    /// No server answered, or the connection broke.
    pub(super) fn broken(why: &str) -> Self {
        Self { code: None, message: line(why) }
    }

    /// The lab ended the work itself.
    pub(super) fn stopped() -> Self {
        Self::broken("ended before it was done")
    }

    /// The fault of connecting to this server's database.
    pub(super) fn at(self, to: &Target, database: &str) -> Self {
        let server = match &to.address {
            Address::Tcp(host, port) => format!("{host}:{port}"),
            Address::Unix(socket) => socket.display().to_string(),
        };
        let Self { code, message } = self;
        let advice = match code.as_deref() {
            None => return Self { code, message: format!("can't reach the server at {server}: {message}") },
            Some("28P01" | "28000" | "1045" | "1698") => "; check user and password",
            Some("3D000" | "1049") => "; make it first (CREATE DATABASE) or name another",
            Some("53300" | "1040") => "; raise max_connections or take fewer clients",
            Some(_) => "",
        };
        Self {
            code,
            message: format!("user {}, database {database} at {server}: {message}{advice}", to.user),
        }
    }

    pub(super) fn in_statement(self, sql: &str) -> Self {
        let Self { code, message } = self;
        let message = match &code {
            Some(_) => format!("{message} in: {}", beginning(sql)),
            None => format!("the connection broke: {message}"),
        };
        Self { code, message }
    }

    /// SQLSTATE, or MySQL's number, where the server gave one.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// Whether the error reports a missing table, or a missing schema or database around it.
    pub fn is_unknown_table(&self) -> bool {
        matches!(self.code(), Some("42P01" | "3F000" | "1146"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message)
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        fault.message
    }
}

/// The innermost cause: the outer errors only report that something failed.
fn deepest(error: &dyn Error) -> String {
    match error.source() {
        Some(inner) => deepest(inner),
        None => error.to_string(),
    }
}

fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a statement, long enough to find it.
fn beginning(sql: &str) -> String {
    const SHOWN: usize = 300;
    let all = line(sql);
    match all.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &all[..end]),
        None => all,
    }
}
