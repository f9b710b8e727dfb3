//! Workloads: tables, how they are filled, what a client does, and what must hold afterwards.

pub mod connect;
pub mod pgbench;
pub mod sysbench;
pub mod tables;
pub mod tpcc;
pub mod ycsb;

use crate::arm::control::{Control, Fault, Progress};
use crate::arm::{Dialect, Target};
use crate::client::{Client, Statement, StatementId};
use crate::record::Check;

/// What lies in a database already, as far as a workload is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Nothing,
    Loaded,
    /// Something else, which loading would replace: what.
    Other(String),
}

/// What a database held before the first round, which a check afterwards compares with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Before(pub Vec<String>);

/// A workload as pgbench has it, for the driver that runs it.
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

pub trait Workload: Sync {
    /// Its name on the command line.
    fn name(&self) -> &str;

    /// The kinds of transactions in its mix.
    fn kinds(&self) -> &[String];

    /// Makes its tables in the target's database, in place of those of an earlier load, and fills them with so many threads.
    /// Sets the progress's total first. This and the next three do nothing for a workload without tables.
    fn load(&self, _: &Target, _threads: usize, _: &Progress) -> Result<(), Fault> {
        Ok(())
    }

    /// What is there already.
    fn found(&self, _: &mut Control) -> Result<Found, Fault> {
        Ok(Found::Loaded)
    }

    /// What is done once before the first round, when everything is loaded: as pgbench vacuums and empties its history.
    fn prepare(&self, _: &mut Control) -> Result<Before, Fault> {
        Ok(Before::default())
    }

    /// What must hold whenever no client runs, and whether it does.
    fn check(&self, _: &mut Control, _before: &Before) -> Result<Vec<Check>, Fault> {
        Ok(Vec::new())
    }

    /// How pgbench runs it; `None` where it can't.
    fn original(&self) -> Option<Original> {
        None
    }

    /// Errors that its original lets pass, by their codes (SQLSTATE, or MySQL's number): the transaction is rolled back and
    /// begun anew with other choices, as often as it takes, and its latency goes on.
    fn tolerated(&self, _: Dialect) -> &'static [&'static str] {
        &[]
    }

    /// Whether all statements of a transaction can be sent before the first is answered: each is known without what those
    /// before it answered, and there are several. The error says why not.
    fn pipelines(&self) -> Result<(), String> {
        Err(format!("what a transaction of {} sends follows from what it was answered before", self.name()))
    }

    /// Where one of its statements stands, for who reads of an error in it: a script's file and line.
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
