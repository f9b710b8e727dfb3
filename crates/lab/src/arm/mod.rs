//! Arms: the servers that are measured side by side.

pub mod control;
pub mod url;

use std::path::PathBuf;

use crate::client::Reply;

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Dialect {
    /// PostgreSQL's protocol 3.0 and SQL.
    Postgres,
    /// MySQL's protocol and SQL.
    Mysql,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Host and port.
    Tcp(String, u16),
    /// The socket's file itself.
    Unix(PathBuf),
}

/// A server that can be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The arm's name.
    pub arm: String,
    /// What it speaks.
    pub dialect: Dialect,
    /// Where it listens.
    pub address: Address,
    /// Who connects.
    pub user: String,
    /// With which password.
    pub password: Option<String>,
    /// To which database.
    pub database: String,
    /// Processes of the server whose work counts as the server's, where they run on this machine: the first of each is
    /// the parent of the others.
    pub processes: Vec<u32>,
}

/// A connection beside the load, for loading, checking and asking a server what it does.
pub trait Control: Send {
    /// Runs one statement and gives its rows as text, or the server's own message.
    fn ask(&mut self, sql: &str) -> Result<Reply, String>;
}
