//! The direct serialization graph: transactions as nodes, dependencies as edges.
//!
//! The real-time order has an edge for every pair of transactions of which one ended before the
//! other began. The graph keeps it in linear space. Each end is a node of its own, and the ends
//! form a chain in the order of time. A transaction leads to its end. The last end before a
//! transaction began leads to that transaction.
//!
//! Invariant: nodes below `transactions` are transactions; the others are ends.

use crate::versions::{Versions, committed_part};
use crate::{Key, Operation, Outcome, Transaction, Value};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The reason why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dependency {
    /// The second replaces a version of the first.
    WriteWrite,
    /// The second reads a version of the first.
    WriteRead,
    /// The second replaces a version that the first read: an anti-dependency.
    ReadWrite,
    /// The first ended before the second began.
    RealTime,
}

impl Dependency {
    /// The bit of this dependency in a set of them.
    pub(crate) fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// One edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The earlier transaction.
    pub from: usize,
    /// The later transaction.
    pub to: usize,
    /// The reason why it is later.
    pub dependency: Dependency,
    /// The key that both touch; `None` for the real-time order.
    pub key: Option<Key>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = match self.dependency {
            Dependency::WriteWrite => "ww",
            Dependency::WriteRead => "wr",
            Dependency::ReadWrite => "rw",
            Dependency::RealTime => "rt",
        };
        write!(f, "T{} -{arrow}", self.from)?;
        if let Some(key) = self.key {
            write!(f, "({key})")?;
        }
        write!(f, "-> T{}", self.to)
    }
}

/// The graph of a history.
pub(crate) struct Graph {
    /// The number of nodes that are transactions.
    pub transactions: usize,
    /// The edges, by their first node.
    pub edges: Vec<Vec<Step>>,
}

impl Graph {
    /// The graph of the committed transactions. A transaction of unknown outcome takes part if
    /// somebody read what it wrote.
    pub fn build(history: &[Transaction], versions: &Versions) -> Self {
        let mut builder = Builder {
            graph: Self { transactions: history.len(), edges: vec![Vec::new(); history.len()] },
            known: HashSet::new(),
            member: members(history, versions),
        };
        builder.lists(history, versions);
        builder.registers(history, versions);
        builder.real_time(history);
        builder.graph
    }
}

/// Whether each transaction takes part as committed.
fn members(history: &[Transaction], versions: &Versions) -> Vec<bool> {
    let mut member: Vec<bool> = history.iter().map(|t| t.outcome == Outcome::Committed).collect();
    let read = history.iter().filter(|t| t.outcome == Outcome::Committed).flat_map(|t| &t.operations);
    let listed = versions.lists.iter().flat_map(|(key, values)| values.iter().map(|v| (*key, *v)));
    let registers = read.filter_map(|operation| match *operation {
        Operation::Read(key, Some(value)) => Some((key, value)),
        _ => None,
    });
    for seen in listed.chain(registers) {
        if let Some(&writer) = versions.writer.get(&seen)
            && history[writer].outcome == Outcome::Unknown
        {
            member[writer] = true;
        }
    }
    member
}

struct Builder {
    graph: Graph,
    known: HashSet<(usize, usize, Dependency)>,
    member: Vec<bool>,
}

impl Builder {
    fn edge(&mut self, from: usize, to: usize, dependency: Dependency, key: Key) {
        let wanted = from != to && self.member[from] && self.member[to];
        if wanted && self.known.insert((from, to, dependency)) {
            self.graph.edges[from].push(Step { from, to, dependency, key: Some(key) });
        }
    }

    fn lists(&mut self, history: &[Transaction], versions: &Versions) {
        let mut place: HashMap<(Key, Value), usize> = HashMap::new();
        for (&key, values) in &versions.lists {
            place.extend(values.iter().enumerate().map(|(at, &value)| ((key, value), at)));
            let writers: Vec<_> = values.iter().filter_map(|v| versions.writer.get(&(key, *v))).collect();
            for pair in writers.windows(2) {
                self.edge(*pair[0], *pair[1], Dependency::WriteWrite, key);
            }
        }
        // A committed append that no read shows comes after all values that the reads show.
        let mut unread: HashMap<Key, Vec<usize>> = HashMap::new();
        for (&(key, value), &writer) in &versions.writer {
            let appended = history[writer].operations.contains(&Operation::Append(key, value));
            if appended && !place.contains_key(&(key, value)) {
                unread.entry(key).or_default().push(writer);
            }
        }
        for (reader, transaction) in history.iter().enumerate() {
            for (key, values) in committed_part(transaction) {
                let next = match values.last() {
                    None => 0,
                    Some(&last) => {
                        if let Some(&writer) = versions.writer.get(&(key, last)) {
                            self.edge(writer, reader, Dependency::WriteRead, key);
                        }
                        let Some(at) = place.get(&(key, last)) else { continue };
                        at + 1
                    }
                };
                let follower = versions.lists.get(&key).and_then(|list| list.get(next));
                if let Some(&writer) = follower.and_then(|value| versions.writer.get(&(key, *value))) {
                    self.edge(reader, writer, Dependency::ReadWrite, key);
                }
                if follower.is_none() {
                    for &writer in unread.get(&key).into_iter().flatten() {
                        self.edge(reader, writer, Dependency::ReadWrite, key);
                    }
                }
            }
        }
    }

    fn registers(&mut self, history: &[Transaction], versions: &Versions) {
        for ((key, base), values) in &versions.replaced {
            for value in values {
                if let Some(base) = base
                    && let Some(&first) = versions.writer.get(&(*key, *base))
                {
                    self.edge(first, versions.writer[&(*key, *value)], Dependency::WriteWrite, *key);
                }
            }
        }
        for (reader, transaction) in history.iter().enumerate() {
            for operation in &transaction.operations {
                let Operation::Read(key, value) = *operation else { continue };
                if let Some(value) = value
                    && let Some(&writer) = versions.writer.get(&(key, value))
                {
                    self.edge(writer, reader, Dependency::WriteRead, key);
                }
                for later in versions.replaced.get(&(key, value)).into_iter().flatten() {
                    self.edge(reader, versions.writer[&(key, *later)], Dependency::ReadWrite, key);
                }
            }
        }
    }

    fn real_time(&mut self, history: &[Transaction]) {
        let base = self.graph.transactions;
        let ended = (0..base).filter(|&n| self.member[n] && history[n].ended != u64::MAX);
        let mut ends: Vec<(u64, usize)> = ended.map(|n| (history[n].ended, n)).collect();
        ends.sort_unstable();
        let step = |from, to| Step { from, to, dependency: Dependency::RealTime, key: None };
        let edges = &mut self.graph.edges;
        edges.resize(base + ends.len(), Vec::new());
        for (place, &(_, number)) in ends.iter().enumerate() {
            edges[number].push(step(number, base + place));
            if place > 0 {
                edges[base + place - 1].push(step(base + place - 1, base + place));
            }
        }
        for number in (0..base).filter(|&n| self.member[n]) {
            let before = ends.partition_point(|&(ended, _)| ended < history[number].began);
            if before > 0 {
                edges[base + before - 1].push(step(base + before - 1, number));
            }
        }
    }
}
