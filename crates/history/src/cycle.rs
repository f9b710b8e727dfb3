//! Cycles of the serialization graph, each named by the dependencies it needs.
//!
//! The search uses as few kinds of dependencies as make a cycle. So a cycle of write dependencies
//! is a G0 and not reported again as a G1c. Searches stay within a strongly connected component,
//! since every cycle does.

use crate::graph::{Dependency, Graph, Step};
use crate::{Anomaly, Kind, Level};
use std::collections::VecDeque;

const WRITES: u8 = 1 << Dependency::WriteWrite as u8;
const READS: u8 = 1 << Dependency::WriteRead as u8;
const ANTI: u8 = 1 << Dependency::ReadWrite as u8;
const TIME: u8 = 1 << Dependency::RealTime as u8;

/// Most edges of a component at which searches for shortest cycles start.
const STARTS: usize = 2000;

/// The cycles that the level forbids: one shortest cycle for each kind and component.
pub(crate) fn check(graph: &Graph, level: Level) -> Vec<Anomaly> {
    let mut found = Vec::new();
    // The kind, the dependencies that the rest of the cycle may use, and the dependency of its
    // first step.
    let mut passes = vec![
        (Kind::G0, WRITES, WRITES),
        (Kind::G1c, WRITES | READS, READS),
        (Kind::G0, WRITES | TIME, WRITES),
        (Kind::G1c, WRITES | READS | TIME, READS),
    ];
    if level >= Level::SnapshotIsolation {
        passes.push((Kind::GSingle, WRITES | READS, ANTI));
        passes.push((Kind::GSingle, WRITES | READS | TIME, ANTI));
    }
    if level >= Level::Serializable {
        passes.push((Kind::G2, WRITES | READS | ANTI, ANTI));
    }
    for (kind, rest, first) in passes {
        for cycle in shortest(graph, rest, first) {
            let anomaly = described(graph, kind, &cycle);
            // A cycle that fewer kinds of dependencies make is not reported again.
            let known =
                |other: &Anomaly| other.kind <= kind && contains(&anomaly.transactions, &other.transactions);
            if !found.iter().any(known) {
                found.push(anomaly);
            }
        }
    }
    found
}

fn contains(all: &[usize], some: &[usize]) -> bool {
    some.iter().all(|number| all.contains(number))
}

/// For each component, a shortest cycle with an edge of `first` and otherwise edges of `rest`.
fn shortest(graph: &Graph, rest: u8, first: u8) -> Vec<Vec<Step>> {
    let component = components(graph, rest | first);
    let mut best: Vec<Option<Vec<Step>>> = vec![None; graph.edges.len()];
    let mut tried = vec![0; graph.edges.len()];
    for step in graph.edges.iter().flatten() {
        let of = component[step.from];
        if step.dependency.bit() & first == 0 || component[step.to] != of || tried[of] == STARTS {
            continue;
        }
        tried[of] += 1;
        let limit = best[of].as_ref().map_or(usize::MAX, |cycle| length(graph, cycle));
        if let Some(mut path) = path(graph, rest, &component, step.to, step.from, limit) {
            path.insert(0, *step);
            best[of] = Some(path);
        }
    }
    best.into_iter().flatten().collect()
}

/// The number of transactions in a cycle.
fn length(graph: &Graph, cycle: &[Step]) -> usize {
    cycle.iter().filter(|step| step.from < graph.transactions).count()
}

/// A shortest path from one node to another within their component. The path is shorter than the
/// limit less one. Ends of transactions cost nothing.
fn path(
    graph: &Graph,
    allowed: u8,
    component: &[usize],
    from: usize,
    to: usize,
    limit: usize,
) -> Option<Vec<Step>> {
    let mut before: std::collections::HashMap<usize, (usize, Step)> = std::collections::HashMap::new();
    let mut queue = VecDeque::from([(from, 1)]);
    while let Some((node, cost)) = queue.pop_front() {
        if node == to {
            let mut steps = Vec::new();
            let mut at = to;
            while at != from {
                let (_, step) = before[&at];
                steps.push(step);
                at = step.from;
            }
            steps.reverse();
            return Some(steps);
        }
        for step in &graph.edges[node] {
            let inside = step.dependency.bit() & allowed != 0 && component[step.to] == component[from];
            let next = cost + usize::from(step.to < graph.transactions);
            let better = before.get(&step.to).is_none_or(|(known, _)| next < *known);
            if inside && step.to != from && better && next < limit {
                before.insert(step.to, (next, *step));
                if next == cost {
                    queue.push_front((step.to, next))
                } else {
                    queue.push_back((step.to, next))
                }
            }
        }
    }
    None
}

fn described(graph: &Graph, kind: Kind, cycle: &[Step]) -> Anomaly {
    let mut steps: Vec<Step> = Vec::new();
    for step in cycle {
        match steps.last_mut() {
            // A path over ends is one step of the real-time order.
            Some(last) if last.to >= graph.transactions => last.to = step.to,
            _ => steps.push(*step),
        }
    }
    Anomaly {
        kind,
        real_time: steps.iter().any(|step| step.dependency == Dependency::RealTime),
        transactions: steps.iter().map(|step| step.from).collect(),
        evidence: steps.iter().map(Step::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The number of each node's strongly connected component under the allowed dependencies. Tarjan,
/// "Depth-First Search and Linear Graph Algorithms", 1972, with an explicit stack in place of
/// recursion.
fn components(graph: &Graph, allowed: u8) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let count = graph.edges.len();
    let (mut index, mut low, mut component) = (vec![NONE; count], vec![0; count], vec![NONE; count]);
    let (mut stack, mut calls, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..count {
        if index[root] != NONE {
            continue;
        }
        calls.push((root, 0));
        while let Some((node, at)) = calls.pop() {
            if at == 0 {
                (index[node], low[node]) = (next, next);
                next += 1;
                stack.push(node);
            } else {
                let child = graph.edges[node][at - 1].to;
                if graph.edges[node][at - 1].dependency.bit() & allowed != 0 && component[child] == NONE {
                    low[node] = low[node].min(low[child]);
                }
            }
            if let Some(step) = graph.edges[node].get(at) {
                calls.push((node, at + 1));
                if step.dependency.bit() & allowed != 0 && index[step.to] == NONE {
                    calls.push((step.to, 0));
                }
            } else if low[node] == index[node] {
                while let Some(member) = stack.pop() {
                    component[member] = node;
                    if member == node {
                        break;
                    }
                }
            }
        }
    }
    component
}
