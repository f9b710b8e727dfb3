//! Workloads: tables and their loading, a client's transactions, and the conditions that must hold
//! afterwards.

pub mod connect;
pub mod pgbench;
pub mod sysbench;
pub mod tables;
mod talk;
pub mod tpcc;
pub mod ycsb;

use crate::arm::control::{Control, Fault, Progress};
use crate::arm::{Dialect, Target};
use crate::client::{Client, Statement, StatementId};
use crate::record::Check;

/// The state of a workload's tables in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Nothing,
    Loaded,
    /// Another content, which loading would replace, as text.
    Other(String),
}

/// A database's figures before the first round; a later check compares with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Before(pub Vec<String>);

/// A workload in pgbench's form, for the driver that runs pgbench.
#[derive(Debug, Clone, PartialEq)]
pub struct Original {
    /// Texts of its scripts in the order of [`Workload::kinds`], and their weights.
    pub scripts: Vec<(String, u32)>,
    /// `-s`.
    pub scale: u64,
    /// `-D`: names and values.
    pub variables: Vec<(String, String)>,
    /// `-C`: a connection for each transaction.
    pub reconnect: bool,
}

pub trait Workload: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &str;

    /// The kinds of transactions in its mix.
    fn kinds(&self) -> &[String];

    /// Creates its tables in the target's database, in place of those of an earlier load, and fills
    /// them with this many threads. Sets the progress's total first. This and the next three do
    /// nothing for a workload without tables.
    fn load(&self, _: &Target, _threads: usize, _: &Progress) -> Result<(), Fault> {
        Ok(())
    }

    fn found(&self, _: &mut Control) -> Result<Found, Fault> {
        Ok(Found::Loaded)
    }

    /// Runs once before the first round, after the load: as pgbench vacuums and empties its
    /// history.
    fn prepare(&self, _: &mut Control) -> Result<Before, Fault> {
        Ok(Before::default())
    }

    /// Conditions that must hold whenever no client runs, and whether they do.
    fn check(&self, _: &mut Control, _before: &Before) -> Result<Vec<Check>, Fault> {
        Ok(Vec::new())
    }

    /// Its form for pgbench; `None` where pgbench can't run it.
    fn original(&self) -> Option<Original> {
        None
    }

    /// Errors that the original workload tolerates, by their codes (SQLSTATE, or MySQL's number).
    /// The client rolls the transaction back and begins another with other choices, without limit,
    /// and its latency goes on.
    fn tolerated(&self, _: Dialect) -> &'static [&'static str] {
        &[]
    }

    /// Whether a client can send all statements of a transaction before the first answer: none
    /// depends on an earlier answer, and there are several. The error explains why not.
    fn pipelines(&self) -> Result<(), String> {
        Err(format!("a transaction of {} has statements that depend on earlier answers", self.name()))
    }

    /// The place of one of its statements, for a reader of its error: a script's file and line.
    fn place(&self, _: StatementId) -> String {
        self.name().to_owned()
    }

    /// All statements its clients run, by [`StatementId`].
    fn statements(&self, dialect: Dialect) -> Vec<Statement>;

    /// Client number `index` of `of`.
    fn client(&self, index: usize, of: usize) -> Box<dyn Client>;
}

#[cfg(test)]
pub(crate) mod tests;
