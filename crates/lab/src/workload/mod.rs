//! Workloads: tables, how they are filled, what a client does, and what must hold afterwards.

use crate::arm::control::{Control, Fault, Progress};
use crate::arm::{Dialect, Target};
use crate::client::Client;

/// A statement with places for parameters: `pieces[0] $1 pieces[1] $2 ...`. A driver writes the places as its protocol
/// has them (`$1`, `?`, or the values themselves).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// One more than there are parameters.
    pub pieces: Vec<String>,
    /// Whether it can be prepared (BEGIN and END are sent as they are where a protocol can't prepare them).
    pub preparable: bool,
    /// What the client looks at of its reply.
    pub wanted: Wanted,
}

/// What a client looks at of a statement's reply: a driver reads the rest past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Not even how many rows were changed.
    Nothing,
    /// The rows, and how many were changed.
    Rows,
    /// These, and the names of the columns.
    NamedRows,
}

/// Something that must hold after a run, and whether it does.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Check {
    /// What must hold.
    pub claim: String,
    /// What was seen where it does not.
    pub fault: Option<String>,
}

/// A workload at a scale, for one kind of server.
pub trait Workload: Sync {
    /// Its name on the command line.
    fn name(&self) -> &str;

    /// The kinds of transactions in its mix.
    fn kinds(&self) -> &[&'static str];

    /// Makes its tables in the target's database, in place of those of an earlier load, and fills them with so many threads.
    /// Sets the progress's total first.
    fn load(&self, to: &Target, threads: usize, progress: &Progress) -> Result<(), Fault>;

    /// What must hold whenever no client runs, and whether it does.
    fn check(&self, control: &mut Control) -> Result<Vec<Check>, Fault>;

    /// All statements its clients run, by [`crate::client::StatementId`].
    fn statements(&self, dialect: Dialect) -> Vec<Statement>;

    /// Client number `index` of `of`.
    fn client(&self, index: usize, of: usize) -> Box<dyn Client>;
}
