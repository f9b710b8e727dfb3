//! Checks a history of transactions, as clients saw it, against an isolation level.
//!
//! Clients work on keys in two ways. A *list* grows by appends: a read returns the whole list, and
//! so the order of all versions before it. A *register* holds its last write: the order of two
//! versions is known only if one transaction read the first and wrote the second. A history writes
//! every value once, so a value names its writer.
//!
//! From the reads the checker infers which transaction wrote, read or replaced which version. It
//! then builds the direct serialization graph. An anomaly is a cycle in that graph, or a read that
//! no order of transactions explains.
//!
//! The names of anomalies are those of Adya, "Weak Consistency: A Generalized Theory and Optimistic
//! Implementations for Distributed Transactions", 1999. The inference from lists is that of
//! Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", VLDB
//! 2020.
//!
//! Invariant: the checker reports nothing that a history of the level allows. It may miss an
//! anomaly whose versions no client read.

#![forbid(unsafe_code)]

mod cycle;
mod direct;
mod graph;
#[cfg(test)]
mod tests;
mod versions;

use std::fmt;

pub use graph::{Dependency, Step};

/// The number of a key.
pub type Key = u64;
/// A value. No two writes of a history have the same one.
pub type Value = u64;

/// A transaction's operation on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Adds a value at a list's end.
    Append(Key, Value),
    /// Reads a whole list, from its first value to its last.
    ReadList(Key, Vec<Value>),
    /// Replaces a register's value.
    Write(Key, Value),
    /// Reads a register; `None` if no value was ever written.
    Read(Key, Option<Value>),
}

/// How a transaction ended, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server acknowledged the commit.
    Committed,
    /// The server said that it rolled the transaction back.
    Aborted,
    /// The client lost the connection before an answer: committed or not.
    Unknown,
}

/// One transaction as its client saw it.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Its operations, in order. A failed operation is left out.
    pub operations: Vec<Operation>,
    /// How it ended.
    pub outcome: Outcome,
    /// A time before its first message, in any unit that all clients share.
    pub began: u64,
    /// A time after its last answer; `u64::MAX` if none came.
    pub ended: u64,
}

/// The isolation level that a history is checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No dirty writes, aborted, intermediate or circular reads: G0, G1a, G1b and G1c are absent.
    ReadCommitted,
    /// PostgreSQL's REPEATABLE READ. In addition, no cycle has exactly one anti-dependency, even if
    /// the real-time order of transactions closes it.
    SnapshotIsolation,
    /// In addition, no cycle has several anti-dependencies (G2). The real-time order does not count
    /// among these.
    Serializable,
}

/// A kind of anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A transaction does not see its own changes, or sees two states.
    Internal,
    /// A transaction read a value that nobody wrote.
    Garbage,
    /// A list holds a value twice.
    Duplicate,
    /// Two reads of a list show no common order of its values.
    IncompatibleOrder,
    /// Reads that began after a committed write ended do not show it.
    LostWrite,
    /// A cycle of write dependencies: a dirty write.
    G0,
    /// A transaction read a value of an aborted one.
    G1a,
    /// A transaction read a value that its writer replaced, or added to, before it committed.
    G1b,
    /// A cycle of write and read dependencies.
    G1c,
    /// A cycle with exactly one anti-dependency, lost updates and read skew among them.
    GSingle,
    /// A cycle with two or more anti-dependencies: write skew.
    G2,
}

impl Kind {
    /// Whether the level forbids this anomaly.
    pub fn forbidden_at(self, level: Level) -> bool {
        match self {
            Self::GSingle => level >= Level::SnapshotIsolation,
            Self::G2 => level >= Level::Serializable,
            _ => true,
        }
    }
}

/// One anomaly with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Its kind.
    pub kind: Kind,
    /// Whether the cycle uses the real-time order.
    pub real_time: bool,
    /// The transactions that take part, by their index in the history.
    pub transactions: Vec<usize>,
    /// The anomaly in words, with each step of a cycle.
    pub evidence: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.real_time { " in real time" } else { "" };
        write!(f, "{:?}{suffix}, transactions {:?}: {}", self.kind, self.transactions, self.evidence)
    }
}

/// The anomalies that the level forbids. For each kind of cycle and component of the graph it
/// returns one shortest cycle.
///
/// Cost: linear in operations and read values, except for the search of shortest cycles. That takes
/// a breadth-first search for each anti-dependency within a component of the graph. Histories
/// without anomalies have no such component at [`Level::Serializable`].
pub fn check(history: &[Transaction], level: Level) -> Vec<Anomaly> {
    let (versions, mut found) = versions::Versions::infer(history);
    found.extend(direct::check(history, &versions));
    let graph = graph::Graph::build(history, &versions);
    found.extend(cycle::check(&graph, level));
    found.retain(|anomaly| anomaly.kind.forbidden_at(level));
    found
}
