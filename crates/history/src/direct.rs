//! Anomalies that single reads show, without a cycle.

use crate::versions::{Versions, committed_part};
use crate::{Anomaly, Key, Kind, Operation, Outcome, Transaction, Value};
use std::collections::HashMap;

/// The anomalies of all reads by transactions that did not abort.
pub(crate) fn check(history: &[Transaction], versions: &Versions) -> Vec<Anomaly> {
    let mut found = Vec::new();
    for (number, transaction) in history.iter().enumerate() {
        if transaction.outcome != Outcome::Aborted {
            let mut report = |kind, others: &[usize], evidence| {
                let transactions = [&[number], others].concat();
                found.push(Anomaly { kind, real_time: false, transactions, evidence });
            };
            internal(transaction, &mut report);
            foreign(history, number, versions, &mut report);
        }
    }
    lost_appends(history, &mut found);
    lost_updates(history, versions, &mut found);
    found
}

/// Reports a transaction that does not see its own changes. Its appends must end a list that nobody
/// else can extend meanwhile.
fn internal(transaction: &Transaction, report: &mut impl FnMut(Kind, &[usize], String)) {
    let mut appended: HashMap<Key, Vec<Value>> = HashMap::new();
    let mut written: HashMap<Key, Value> = HashMap::new();
    for operation in &transaction.operations {
        match operation {
            Operation::Append(key, value) => appended.entry(*key).or_default().push(*value),
            Operation::Write(key, value) => {
                written.insert(*key, *value);
            }
            Operation::ReadList(key, values) => {
                let own = appended.get(key).map_or(&[][..], Vec::as_slice);
                if !values.ends_with(own) {
                    report(
                        Kind::Internal,
                        &[],
                        format!("it appended {own:?} to list {key} and read {values:?}"),
                    );
                }
            }
            Operation::Read(key, value) => {
                if let Some(own) = written.get(key)
                    && *value != Some(*own)
                {
                    report(
                        Kind::Internal,
                        &[],
                        format!("it wrote {own} to register {key} and read {value:?}"),
                    );
                }
            }
        }
    }
}

/// Reports reads of values that nobody wrote (garbage), that an aborted transaction wrote (G1a), or
/// that were not their writer's last (G1b).
fn foreign(
    history: &[Transaction],
    number: usize,
    versions: &Versions,
    report: &mut impl FnMut(Kind, &[usize], String),
) {
    let mut judge = |key: Key, value: Value, next: Option<Value>| {
        let Some(&writer) = versions.writer.get(&(key, value)) else {
            report(Kind::Garbage, &[], format!("nobody wrote {value}, which it read of {key}"));
            return;
        };
        if writer == number {
            return;
        }
        if history[writer].outcome == Outcome::Aborted {
            report(Kind::G1a, &[writer], format!("it read {value} of {key}, whose writer aborted"));
        }
        if let Some(later) = written_after(&history[writer], key, value)
            && Some(later) != next
        {
            report(
                Kind::G1b,
                &[writer],
                format!("it read {value} of {key}, whose writer went on to {later}"),
            );
        }
    };
    for (key, values) in committed_part(&history[number]) {
        for (place, &value) in values.iter().enumerate() {
            judge(key, value, values.get(place + 1).copied());
        }
    }
    for operation in &history[number].operations {
        if let Operation::Read(key, Some(value)) = *operation {
            judge(key, value, None);
        }
    }
}

/// The transaction's next write to the key after a value.
fn written_after(writer: &Transaction, key: Key, value: Value) -> Option<Value> {
    let mut values = writer.operations.iter().filter_map(|operation| match *operation {
        Operation::Append(k, v) | Operation::Write(k, v) if k == key => Some(v),
        _ => None,
    });
    values.find(|v| *v == value)?;
    values.next()
}

/// Reports committed appends that are missing from a read whose transaction began after the commit
/// was acknowledged.
fn lost_appends(history: &[Transaction], found: &mut Vec<Anomaly>) {
    let mut appends: HashMap<Key, Vec<(u64, Value, usize)>> = HashMap::new();
    for (number, transaction) in history.iter().enumerate() {
        if transaction.outcome == Outcome::Committed {
            for operation in &transaction.operations {
                if let Operation::Append(key, value) = *operation {
                    appends.entry(key).or_default().push((transaction.ended, value, number));
                }
            }
        }
    }
    for list in appends.values_mut() {
        list.sort_unstable();
    }
    for (number, transaction) in history.iter().enumerate() {
        if transaction.outcome == Outcome::Aborted {
            continue;
        }
        for (key, values) in committed_part(transaction) {
            let Some(list) = appends.get(&key) else { continue };
            let due = list.partition_point(|(ended, ..)| *ended < transaction.began);
            let seen: std::collections::HashSet<_> = values.iter().collect();
            if let Some((_, value, writer)) = list[..due].iter().find(|(_, value, _)| !seen.contains(value)) {
                let evidence = format!("list {key} lacks {value}, committed before it began: {values:?}");
                let transactions = vec![number, *writer];
                found.push(Anomaly { kind: Kind::LostWrite, real_time: true, transactions, evidence });
            }
        }
    }
}

/// Reports two committed transactions that read the same version of a register and each replaced
/// it.
fn lost_updates(history: &[Transaction], versions: &Versions, found: &mut Vec<Anomaly>) {
    for ((key, base), values) in &versions.replaced {
        let writers = values.iter().map(|value| versions.writer[&(*key, *value)]);
        let committed: Vec<_> = writers.filter(|w| history[*w].outcome == Outcome::Committed).collect();
        if committed.len() > 1 {
            let evidence = format!("lost update: each read {base:?} of register {key} and replaced it");
            found.push(Anomaly { kind: Kind::GSingle, real_time: false, transactions: committed, evidence });
        }
    }
}
