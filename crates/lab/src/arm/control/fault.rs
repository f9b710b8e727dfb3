//! Faults of a control connection, each described in one line.

use std::error::Error;
use std::fmt;

use crate::arm::{Address, Target};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No server answered, or the connection broke.
    Unreachable {
        what: String,
        why: String,
    },
    /// The server refused the connection.
    Refused {
        what: String,
        code: String,
        message: String,
    },
    /// The server refused a statement.
    Statement {
        code: String,
        message: String,
        statement: String,
    },
    Stopped,
}

impl Fault {
    pub(super) fn of_postgres(error: &postgres::Error) -> Self {
        match error.as_db_error() {
            Some(told) => Self::refused(told.code().code(), told.message()),
            None => Self::unreachable(&deepest(error)),
        }
    }

    pub(super) fn of_mysql(error: &mysql::Error) -> Self {
        match error {
            mysql::Error::MySqlError(told) => Self::refused(&told.code.to_string(), &told.message),
            mysql::Error::IoError(error) => Self::unreachable(&error.to_string()),
            mysql::Error::DriverError(error) => Self::unreachable(&error.to_string()),
            error => Self::unreachable(&error.to_string()),
        }
    }

    fn refused(code: &str, message: &str) -> Self {
        Self::Refused { what: String::new(), code: code.to_owned(), message: line(message) }
    }

    pub(super) fn unreachable(why: &str) -> Self {
        Self::Unreachable { what: String::new(), why: line(why) }
    }

    pub(super) fn at(mut self, to: &Target, database: &str) -> Self {
        let server = match &to.address {
            Address::Tcp(host, port) => format!("{host}:{port}"),
            Address::Unix(socket) => socket.display().to_string(),
        };
        match &mut self {
            Self::Unreachable { what, .. } => *what = server,
            Self::Refused { what, .. } => {
                *what = format!("user {}, database {database} at {server}", to.user)
            }
            Self::Statement { .. } | Self::Stopped => {}
        }
        self
    }

    pub(super) fn in_statement(self, sql: &str) -> Self {
        match self {
            Self::Refused { code, message, .. } => {
                Self::Statement { code, message, statement: beginning(sql) }
            }
            other => other,
        }
    }

    /// SQLSTATE, or MySQL's number, where the server gave one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Unreachable { .. } | Self::Stopped => None,
            Self::Refused { code, .. } | Self::Statement { code, .. } => Some(code),
        }
    }

    /// Whether the error reports a missing table, or a missing schema or database around it.
    pub fn is_unknown_table(&self) -> bool {
        matches!(self, Self::Statement { code, .. } if matches!(code.as_str(), "42P01" | "3F000" | "1146"))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable { what, why } if what.is_empty() => write!(to, "the connection broke: {why}"),
            Self::Unreachable { what, why } => write!(to, "can't reach the server at {what}: {why}"),
            Self::Refused { what, code, message } => {
                let advice = match code.as_str() {
                    "28P01" | "28000" | "1045" | "1698" => "; check user and password",
                    "3D000" | "1049" => "; make it first (CREATE DATABASE) or name another",
                    "53300" | "1040" => "; raise max_connections or take fewer clients",
                    _ => "",
                };
                write!(to, "{what}: {message} ({code}){advice}")
            }
            Self::Statement { code, message, statement } => write!(to, "{message} ({code}) in: {statement}"),
            Self::Stopped => to.write_str("ended before it was done"),
        }
    }
}

impl Error for Fault {}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        fault.to_string()
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
