//! The checker finds planted faults by name, and finds histories of a model that keeps a level
//! clean.

use super::Operation::{Append, Read, ReadList, Write};
use super::{Anomaly, Kind, Level, Operation, Outcome, Transaction, Value, check};
use std::collections::HashMap;

/// Transactions that all overlap in time.
fn together(all: Vec<Vec<Operation>>) -> Vec<Transaction> {
    let transaction =
        |operations| Transaction { operations, outcome: Outcome::Committed, began: 0, ended: 100 };
    all.into_iter().map(transaction).collect()
}

/// Transactions that each end before the next begins.
fn one_by_one(all: Vec<Vec<Operation>>) -> Vec<Transaction> {
    let mut history = together(all);
    for (number, transaction) in history.iter_mut().enumerate() {
        (transaction.began, transaction.ended) = (10 * number as u64 + 1, 10 * number as u64 + 9);
    }
    history
}

fn kinds(found: &[Anomaly]) -> Vec<Kind> {
    let mut kinds: Vec<_> = found.iter().map(|anomaly| anomaly.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn list(key: u64, values: &[Value]) -> Operation {
    ReadList(key, values.to_vec())
}

#[test]
fn a_serial_history_is_clean_at_every_level() {
    let history = one_by_one(vec![
        vec![Append(1, 1), Append(2, 2)],
        vec![list(1, &[1]), Append(1, 3), list(1, &[1, 3])],
        vec![list(1, &[1, 3]), list(2, &[2]), Read(9, None), Write(9, 4)],
        vec![Read(9, Some(4)), Write(9, 5), Read(9, Some(5))],
    ]);
    for level in [Level::ReadCommitted, Level::SnapshotIsolation, Level::Serializable] {
        assert_eq!(check(&history, level), []);
    }
}

#[test]
fn an_aborted_read_is_g1a() {
    let mut history =
        together(vec![vec![Append(1, 1)], vec![list(1, &[1])], vec![Write(2, 2)], vec![Read(2, Some(2))]]);
    history[0].outcome = Outcome::Aborted;
    history[2].outcome = Outcome::Aborted;
    let found = check(&history, Level::ReadCommitted);
    assert_eq!(kinds(&found), [Kind::G1a]);
    assert_eq!(found.len(), 2);
}

#[test]
fn an_intermediate_read_is_g1b() {
    let lists = together(vec![vec![Append(1, 1), Append(1, 2)], vec![list(1, &[1])], vec![list(1, &[1, 2])]]);
    assert!(kinds(&check(&lists, Level::ReadCommitted)).contains(&Kind::G1b));
    let registers = together(vec![vec![Write(1, 1), Write(1, 2)], vec![Read(1, Some(1))]]);
    assert_eq!(kinds(&check(&registers, Level::ReadCommitted)), [Kind::G1b]);
}

#[test]
fn a_dirty_write_is_g0() {
    let history = together(vec![
        vec![Append(1, 1), Append(2, 2)],
        vec![Append(1, 3), Append(2, 4)],
        vec![list(1, &[1, 3]), list(2, &[4, 2])],
    ]);
    let found = check(&history, Level::ReadCommitted);
    assert!(kinds(&found).contains(&Kind::G0), "{found:?}");
    let cycle = found.iter().find(|anomaly| anomaly.kind == Kind::G0).unwrap();
    assert_eq!(cycle.evidence.matches("-ww(").count(), 2, "{}", cycle.evidence);
}

#[test]
fn circular_reads_are_g1c() {
    let history = together(vec![vec![Append(1, 1), list(2, &[2])], vec![Append(2, 2), list(1, &[1])]]);
    assert_eq!(kinds(&check(&history, Level::ReadCommitted)), [Kind::G1c]);
}

#[test]
fn read_skew_is_g_single_and_allowed_below_snapshots() {
    let history = together(vec![vec![Append(1, 1), Append(2, 2)], vec![list(1, &[]), list(2, &[2])]]);
    assert_eq!(check(&history, Level::ReadCommitted), []);
    assert_eq!(kinds(&check(&history, Level::SnapshotIsolation)), [Kind::GSingle]);
}

#[test]
fn lost_updates_are_g_single() {
    let registers = together(vec![
        vec![Write(1, 1)],
        vec![Read(1, Some(1)), Write(1, 2)],
        vec![Read(1, Some(1)), Write(1, 3)],
    ]);
    assert_eq!(check(&registers, Level::ReadCommitted), []);
    assert!(kinds(&check(&registers, Level::SnapshotIsolation)).contains(&Kind::GSingle));
    let lists = together(vec![
        vec![list(1, &[]), Append(1, 1)],
        vec![list(1, &[]), Append(1, 2)],
        vec![list(1, &[1, 2])],
    ]);
    assert_eq!(kinds(&check(&lists, Level::SnapshotIsolation)), [Kind::GSingle]);
}

#[test]
fn write_skew_is_g2_and_allowed_by_snapshots() {
    let history = together(vec![
        vec![list(1, &[]), Append(2, 1)],
        vec![list(2, &[]), Append(1, 2)],
        vec![list(1, &[2]), list(2, &[1])],
    ]);
    assert_eq!(check(&history, Level::SnapshotIsolation), []);
    assert_eq!(kinds(&check(&history, Level::Serializable)), [Kind::G2]);
}

#[test]
fn a_stale_read_is_g_single_in_real_time() {
    let history =
        one_by_one(vec![vec![Write(1, 1)], vec![Read(1, Some(1)), Write(1, 2)], vec![Read(1, Some(1))]]);
    let found = check(&history, Level::SnapshotIsolation);
    assert_eq!(kinds(&found), [Kind::GSingle]);
    assert!(found[0].real_time, "{found:?}");
}

#[test]
fn a_lost_append_is_found_without_a_cycle() {
    let history = one_by_one(vec![vec![Append(1, 1)], vec![list(1, &[])]]);
    assert!(kinds(&check(&history, Level::ReadCommitted)).contains(&Kind::LostWrite));
}

#[test]
fn reads_that_no_order_explains_are_found() {
    let orders = together(vec![
        vec![Append(1, 1)],
        vec![Append(1, 2)],
        vec![list(1, &[1, 2])],
        vec![list(1, &[2, 1])],
    ]);
    assert!(kinds(&check(&orders, Level::ReadCommitted)).contains(&Kind::IncompatibleOrder));
    let twice = together(vec![vec![Append(1, 1)], vec![list(1, &[1, 1])]]);
    assert!(kinds(&check(&twice, Level::ReadCommitted)).contains(&Kind::Duplicate));
    let nobody = together(vec![vec![Read(1, Some(7))]]);
    assert_eq!(kinds(&check(&nobody, Level::ReadCommitted)), [Kind::Garbage]);
    let own = together(vec![vec![Append(1, 1), list(1, &[])], vec![Write(2, 2), Read(2, None)]]);
    assert_eq!(kinds(&check(&own, Level::ReadCommitted)), [Kind::Internal]);
}

#[test]
fn an_unknown_outcome_counts_as_committed_where_its_write_was_read() {
    let mut history = together(vec![vec![Append(1, 1), list(2, &[2])], vec![Append(2, 2), list(1, &[1])]]);
    history[0].outcome = Outcome::Unknown;
    assert_eq!(kinds(&check(&history, Level::ReadCommitted)), [Kind::G1c]);
    let mut silent = together(vec![vec![Append(1, 1)], vec![list(1, &[])]]);
    silent[0].outcome = Outcome::Unknown;
    assert_eq!(check(&silent, Level::Serializable), []);
}

#[test]
fn the_shortest_cycle_is_shown() {
    // A long cycle of reads and, within the same component, a cycle of two.
    let mut all: Vec<Vec<Operation>> =
        (0..6u64).map(|n| vec![Append(n, n + 100), list((n + 1) % 6, &[(n + 1) % 6 + 100])]).collect();
    all[0].push(Append(50, 1));
    all[0].push(list(51, &[2]));
    all[3].push(Append(51, 2));
    all[3].push(list(50, &[1]));
    let found = check(&together(all), Level::ReadCommitted);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].transactions.len(), 2, "{found:?}");
}

/// The fault that is planted in the model.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// A writer does not notice that another committed to the key since its snapshot.
    BlindWrites,
    /// A transaction takes a new snapshot for each read.
    SnapshotEachRead,
    /// A snapshot is older than transactions that ended before it was taken.
    StaleSnapshot,
}

/// A model of snapshot isolation on lists, first committer wins, run by `clients` in a random
/// order.
fn model(seed: u64, clients: usize, transactions: usize, fault: Fault) -> Vec<Transaction> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    // Each committed version of a key: commit number and list.
    let mut store: HashMap<u64, Vec<(u64, Vec<Value>)>> = HashMap::new();
    let (mut commits, mut clock, mut value) = (0, 0, 0);
    let mut running: Vec<Option<(u64, Transaction)>> = vec![None; clients];
    let mut history = Vec::new();
    while history.len() < transactions {
        let client = random(clients as u64) as usize;
        clock += 1;
        let Some((mut snapshot, mut transaction)) = running[client].take() else {
            let lag = if fault == Fault::StaleSnapshot { random(4) } else { 0 };
            let operations = Vec::new();
            let new = Transaction { operations, outcome: Outcome::Committed, began: clock, ended: 0 };
            running[client] = Some((commits - lag.min(commits), new));
            continue;
        };
        if fault == Fault::SnapshotEachRead {
            snapshot = commits;
        }
        let key = random(5);
        let versions = store.entry(key).or_default();
        let own = |t: &Transaction, k| -> Vec<Value> {
            let appended = t.operations.iter().filter_map(|o| match o {
                Append(of, v) if *of == k => Some(*v),
                _ => None,
            });
            appended.collect()
        };
        match random(4) {
            0 | 1 => {
                let seen = versions.iter().rev().find(|(number, _)| *number <= snapshot);
                let mut values = seen.map_or(Vec::new(), |(_, list)| list.clone());
                values.extend(own(&transaction, key));
                transaction.operations.push(ReadList(key, values));
            }
            2 => {
                value += 1;
                transaction.operations.push(Append(key, value));
            }
            _ => {
                let keys = 0..5u64;
                let newest = |k| store.get(&k).and_then(|v| v.last()).map_or(0, |(number, _)| *number);
                let conflict = keys.clone().any(|k| !own(&transaction, k).is_empty() && newest(k) > snapshot);
                if conflict && fault != Fault::BlindWrites {
                    transaction.outcome = Outcome::Aborted;
                } else {
                    commits += 1;
                    for k in keys {
                        let values = own(&transaction, k);
                        if !values.is_empty() {
                            let versions = store.entry(k).or_default();
                            let mut list = versions.last().map_or(Vec::new(), |(_, list)| list.clone());
                            list.extend(values);
                            versions.push((commits, list));
                        }
                    }
                }
                transaction.ended = clock;
                history.push(transaction);
                continue;
            }
        }
        running[client] = Some((snapshot, transaction));
    }
    history
}

#[test]
fn a_model_that_keeps_its_level_is_clean() {
    for seed in 1..15 {
        let history = model(seed, 6, 300, Fault::None);
        assert_eq!(check(&history, Level::SnapshotIsolation), [], "seed {seed}");
        let serial = model(seed, 1, 100, Fault::None);
        assert_eq!(check(&serial, Level::Serializable), [], "seed {seed}");
    }
}

#[test]
fn faults_of_a_model_are_found() {
    for (fault, kind) in [
        (Fault::BlindWrites, Kind::GSingle),
        (Fault::SnapshotEachRead, Kind::GSingle),
        (Fault::StaleSnapshot, Kind::GSingle),
    ] {
        let seen = (1..20).filter(|seed| {
            let found = check(&model(*seed, 6, 300, fault), Level::SnapshotIsolation);
            kinds(&found).contains(&kind)
        });
        assert!(seen.count() > 10, "the checker misses what the model does wrong");
    }
}
