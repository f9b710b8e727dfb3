//! Where conditions on the results of subqueries apply in a join.
//!
//! A subquery that runs for each row costs more than a join does. So its condition waits until all
//! sides are joined, if that leaves few rows (Hellerstein, "Practical Predicate Placement").
//!
//! What must hold:
//!
//! 1. Conditions that read the result of one subquery read the same sides: it is computed once.
//! 2. Only a condition of WHERE waits, and only one that reads no side with a condition of its own.

use super::Planner;
use super::cost;
use super::graph::{Clause, Graph, Set, members};
use super::join::Building;
use crate::plan::Reg;
use crate::registers;
use runtime::hash::HashMap;

/// Conditions that wait, with the sides that they read.
pub(super) type Waiting = Vec<(usize, Set)>;

impl Planner<'_, '_> {
    /// Conditions that read the result of one subquery apply together.
    pub(super) fn share_subqueries(&self, clauses: &mut [Clause]) {
        let mut readers: HashMap<Reg, Set> = HashMap::default();
        let links = |clause: &Clause| -> Vec<Reg> {
            let read = registers::reads(&clause.condition);
            read.into_iter().filter(|register| self.pending.contains_key(register)).collect()
        };
        for clause in clauses.iter() {
            links(clause).into_iter().for_each(|link| *readers.entry(link).or_default() |= clause.sides);
        }
        for clause in clauses.iter_mut() {
            clause.sides = links(clause).iter().fold(clause.sides, |sides, link| sides | readers[link]);
        }
    }

    /// Lets the conditions on results of subqueries wait for all sides, until
    /// [`Planner::stop_waiting`] knows the rows.
    pub(super) fn wait(&self, graph: &mut Graph) -> Waiting {
        let mut waiting = Waiting::new();
        if self.pending.is_empty() {
            return waiting;
        }
        let all = graph.all();
        for (at, clause) in graph.clauses.iter_mut().enumerate() {
            let may_wait = members(clause.sides).all(|side| !graph.nodes[side].is_dependent());
            if clause.sides != 0 && clause.sides != all && may_wait && self.reads_pending(&clause.condition) {
                waiting.push((at, std::mem::replace(&mut clause.sides, all)));
            }
        }
        waiting
    }

    /// Applies those conditions to their own sides that gain nothing by waiting.
    pub(super) fn stop_waiting(&self, waiting: Waiting, join: &mut Building<'_>) {
        let Building { graph, own, used, .. } = join;
        let kept: f64 = waiting.iter().map(|(at, _)| graph.clauses[*at].selectivity).product();
        let joined = graph.rows(graph.all()) / kept;
        for (at, sides) in waiting {
            let clause = &graph.clauses[at];
            let rows = graph.rows(sides);
            let gain = self.run_cost(&clause.condition, rows) - self.run_cost(&clause.condition, joined);
            // Rows that the condition would drop go through the join.
            if joined < rows && gain > rows * cost::HASH_PROBE {
                continue;
            }
            let (condition, selectivity) = (clause.condition.clone(), clause.selectivity);
            graph.clauses[at].sides = sides;
            if sides.count_ones() == 1 {
                let side = sides.trailing_zeros() as usize;
                graph.nodes[side].rows = (graph.nodes[side].rows * selectivity).max(1.0);
                own[side].push(condition);
                used[at] = true;
            }
        }
        graph.connect();
    }
}
