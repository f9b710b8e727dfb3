//! The transaction that wrote each value, and the order of each key's versions.
//!
//! Invariant: every order that this module returns was either read (lists) or made by a transaction
//! that read one version and wrote the next (registers).

use crate::{Anomaly, Key, Kind, Operation, Outcome, Transaction, Value};
use std::collections::{HashMap, HashSet};

/// The order of versions of each key, as far as the history shows it.
pub(crate) struct Versions {
    /// The transaction that wrote a value of a key.
    pub writer: HashMap<(Key, Value), usize>,
    /// Each list's values in the order of their writes: the longest read by a transaction that did
    /// not abort.
    pub lists: HashMap<Key, Vec<Value>>,
    /// The values that replaced a register's value; `None` is the state before the first. The
    /// transaction that wrote each had read the replaced value.
    pub replaced: HashMap<(Key, Option<Value>), Vec<Value>>,
}

impl Versions {
    /// Infers the versions. Returns with them the anomalies that leave no order.
    pub fn infer(history: &[Transaction]) -> (Self, Vec<Anomaly>) {
        let mut found = Vec::new();
        let mut versions = Self { writer: HashMap::new(), lists: HashMap::new(), replaced: HashMap::new() };
        for (number, transaction) in history.iter().enumerate() {
            for operation in &transaction.operations {
                if let Operation::Append(key, value) | Operation::Write(key, value) = *operation {
                    let earlier = versions.writer.insert((key, value), number);
                    assert!(
                        earlier.is_none(),
                        "value {value} of key {key} was written twice: no history to check"
                    );
                }
            }
        }
        versions.order_lists(history, &mut found);
        versions.order_registers(history);
        (versions, found)
    }

    fn order_lists(&mut self, history: &[Transaction], found: &mut Vec<Anomaly>) {
        let mut longest: HashMap<Key, (usize, &[Value])> = HashMap::new();
        for (number, transaction) in history.iter().enumerate() {
            if transaction.outcome == Outcome::Aborted {
                continue;
            }
            for (key, values) in committed_part(transaction) {
                let mut seen = HashSet::new();
                if let Some(twice) = values.iter().find(|value| !seen.insert(**value)) {
                    let evidence = format!("list {key} has {twice} twice: {values:?}");
                    found.push(Anomaly {
                        kind: Kind::Duplicate,
                        real_time: false,
                        transactions: vec![number],
                        evidence,
                    });
                    continue;
                }
                let (other, known) = longest.entry(key).or_insert((number, values));
                let shorter = known.len().min(values.len());
                if known[..shorter] != values[..shorter] {
                    let evidence = format!("list {key} was read as {known:?} and as {values:?}");
                    found.push(Anomaly {
                        kind: Kind::IncompatibleOrder,
                        real_time: false,
                        transactions: vec![*other, number],
                        evidence,
                    });
                } else if values.len() > known.len() {
                    (*other, *known) = (number, values);
                }
            }
        }
        self.lists = longest.into_iter().map(|(key, (_, values))| (key, values.to_vec())).collect();
    }

    fn order_registers(&mut self, history: &[Transaction]) {
        for transaction in history {
            if transaction.outcome == Outcome::Aborted {
                continue;
            }
            // A later read of a replaced value is no base: only what the transaction read before
            // its first write is one.
            let mut read: HashMap<Key, Option<Value>> = HashMap::new();
            let mut written = HashSet::new();
            for operation in &transaction.operations {
                match *operation {
                    Operation::Read(key, value) if !written.contains(&key) => {
                        read.insert(key, value);
                    }
                    Operation::Write(key, _) if written.insert(key) => {
                        if let Some(&base) = read.get(&key) {
                            let last = last_write(transaction, key).expect("it writes the key");
                            self.replaced.entry((key, base)).or_default().push(last);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The committed part of each list that a transaction read: without the values that it had appended
/// itself.
pub(crate) fn committed_part(transaction: &Transaction) -> impl Iterator<Item = (Key, &[Value])> {
    let mut own: HashMap<Key, usize> = HashMap::new();
    transaction.operations.iter().filter_map(move |operation| match operation {
        Operation::Append(key, _) => {
            *own.entry(*key).or_default() += 1;
            None
        }
        Operation::ReadList(key, values) => {
            let theirs = values.len().saturating_sub(own.get(key).copied().unwrap_or(0));
            Some((*key, &values[..theirs]))
        }
        _ => None,
    })
}

/// The value that a transaction leaves in a register.
pub(crate) fn last_write(transaction: &Transaction, key: Key) -> Option<Value> {
    transaction.operations.iter().rev().find_map(|operation| match *operation {
        Operation::Write(k, value) if k == key => Some(value),
        _ => None,
    })
}
