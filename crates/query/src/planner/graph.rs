//! The graph of a join: its sides, the conditions that connect them, and how many rows a join of
//! some sides has.
//!
//! What must hold:
//!
//! 1. The rows of a set of sides depend on the set alone, so that all orders of the same sides
//!    compare by their cost.
//! 2. Conditions that say that columns are equal form classes. Each class counts once for a side,
//!    however many of its conditions there are.
//! 3. A side's equalities with one other side together keep at least one of its rows. For its
//!    columns have at most as many combinations of values as it has rows.

use std::collections::BTreeMap;

use crate::registers::Registers;
use expressions::expr::Expr;

/// A set of sides, by number.
pub(super) type Set = u128;
/// The most sides of one graph.
pub(super) const MOST_SIDES: usize = 100;
/// Estimates of distinct values that differ less than this count as equal.
const ALIKE: f64 = 1.5;

/// The numbers in a set.
pub(super) fn members(mut set: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(next)
    })
}

/// A side, as the search for an order sees it.
pub(super) struct Node {
    /// Estimated rows under its own conditions. For an attached side, rows for each row of the
    /// others.
    pub(super) rows: f64,
    /// Estimated rows without conditions.
    pub(super) base: f64,
    pub(super) writes: Registers,
    /// Sides that must come before.
    pub(super) needs: Set,
    /// Whether it joins the others by a condition of its own. It is the nullable side of a left
    /// join, or the tested side of a semi or anti join.
    pub(super) attached: bool,
    /// Whether it has at most one row.
    pub(super) single: bool,
    /// Whether its rows may have no end.
    pub(super) endless: bool,
}

impl Node {
    /// Whether it only runs for rows of others.
    pub(super) fn is_dependent(&self) -> bool {
        self.attached || self.needs != 0
    }
}

/// A condition.
pub(super) struct Clause {
    pub(super) condition: Expr,
    /// The sides that it reads.
    pub(super) sides: Set,
    /// The sides that the operands of an equality read.
    pub(super) equates: Option<(Set, Set)>,
    /// The class of an equality of two columns.
    pub(super) class: Option<usize>,
    /// Whether others imply it. It connects its sides and need not be tested.
    pub(super) redundant: bool,
    /// The fraction of the pairs for which it is true.
    pub(super) selectivity: f64,
}

impl Clause {
    /// Whether it joins two disjoint sets of sides, and no more.
    pub(super) fn joins(&self, left: Set, right: Set) -> bool {
        self.sides & left != 0 && self.sides & right != 0 && self.sides & !(left | right) == 0
    }

    /// Whether a hash of the one set can find the rows of the other by it.
    pub(super) fn is_key(&self, left: Set, right: Set) -> bool {
        let fits = |a: Set, b: Set| a & !left == 0 && b & !right == 0;
        self.equates.is_some_and(|(a, b)| fits(a, b) || fits(b, a))
    }
}

/// A column of a class.
pub(super) struct Member {
    pub(super) side: usize,
    /// Estimated distinct values.
    pub(super) distinct: f64,
}

/// Columns that are equal.
pub(super) struct Class {
    pub(super) members: Vec<Member>,
    /// Whether they equal a value known before.
    pub(super) fixed: bool,
}

pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) clauses: Vec<Clause>,
    pub(super) classes: Vec<Class>,
    /// For each side, those with which a condition of two sides connects it.
    pub(super) neighbours: Vec<Set>,
    /// The clauses that are no part of a side's own estimate.
    pub(super) above: Vec<usize>,
}

impl Graph {
    /// All sides.
    pub(super) fn all(&self) -> Set {
        (1 << self.nodes.len()) - 1
    }

    /// Finds the neighbours, once all conditions are known.
    pub(super) fn connect(&mut self) {
        let clauses = self.clauses.iter().enumerate();
        self.above = clauses.filter(|(_, clause)| self.is_above(clause)).map(|(at, _)| at).collect();
        self.neighbours = vec![0; self.nodes.len()];
        for (side, node) in self.nodes.iter().enumerate() {
            for other in members(node.needs) {
                self.neighbours[side] |= 1 << other;
                self.neighbours[other] |= 1 << side;
            }
        }
        for clause in self.clauses.iter().filter(|clause| clause.sides.count_ones() == 2) {
            for side in members(clause.sides) {
                self.neighbours[side] |= clause.sides & !(1 << side);
            }
        }
    }

    /// Whether a condition joins two sets of sides.
    pub(super) fn is_connected(&self, left: Set, right: Set) -> bool {
        members(left).any(|side| self.neighbours[side] & right != 0)
            || self.above().any(|clause| clause.sides.count_ones() > 2 && clause.joins(left, right))
    }

    fn above(&self) -> impl Iterator<Item = &Clause> {
        self.above.iter().map(|&at| &self.clauses[at])
    }

    /// Whether a hash of one set can find the rows of another.
    pub(super) fn has_key(&self, left: Set, right: Set) -> bool {
        self.above().any(|clause| clause.joins(left, right) && clause.is_key(left, right))
    }

    /// The conditions that join a side to others and that the side can check by itself, one of each
    /// class.
    pub(super) fn joining(&self, others: Set, side: usize) -> Vec<usize> {
        let mut classes: Vec<usize> = Vec::new();
        let mut found = Vec::new();
        if self.nodes[side].attached {
            return found;
        }
        for &at in &self.above {
            let clause = &self.clauses[at];
            if clause.redundant || !clause.joins(others, 1 << side) {
                continue;
            }
            match clause.class {
                Some(class) if classes.contains(&class) => continue,
                class => classes.extend(class),
            }
            found.push(at);
        }
        found
    }

    /// Estimated rows of a join of these sides.
    pub(super) fn rows(&self, set: Set) -> f64 {
        let mut factors: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for class in self.classes.iter().filter(|class| !class.fixed) {
            self.count(class, set, &mut factors);
        }
        // Several columns that two sides are joined by are no more than a key.
        let least = |side: usize| 1.0 / self.nodes[side].base.max(1.0);
        let joined: f64 = factors.iter().map(|(&(side, _), factor)| factor.max(least(side))).product();
        let sides = members(set).map(|side| self.nodes[side].rows);
        let others = self
            .above()
            .filter(|clause| clause.class.is_none() && !clause.redundant && clause.sides & !set == 0);
        let kept: f64 = others.map(|clause| clause.selectivity).product();
        (sides.product::<f64>() * joined * kept).max(1.0)
    }

    /// Whether a condition is not part of a side's own estimate.
    fn is_above(&self, clause: &Clause) -> bool {
        match clause.sides.count_ones() {
            0 => false,
            1 => members(clause.sides).all(|side| self.nodes[side].attached),
            _ => true,
        }
    }

    /// Multiplies the factors of sides by the fraction of their rows that have one value of a
    /// class. One side stays, that with the fewest values: its rows decide which values there are.
    /// A factor belongs to a side and to the one that stays.
    fn count(&self, class: &Class, set: Set, factors: &mut BTreeMap<(usize, usize), f64>) {
        let there = |member: &&Member| set & (1 << member.side) != 0;
        let least = class.members.iter().filter(there).map(|member| member.distinct).fold(f64::MAX, f64::min);
        let base = |member: &&Member| self.nodes[member.side].base;
        let stays = class
            .members
            .iter()
            .filter(there)
            .filter(|member| member.distinct <= least * ALIKE)
            .max_by(|one, other| base(one).total_cmp(&base(other)));
        let Some(stays) = stays else { return };
        let mut counted: Set = 1 << stays.side;
        for member in class.members.iter().filter(there) {
            if counted & (1 << member.side) == 0 {
                counted |= 1 << member.side;
                *factors.entry((member.side, stays.side)).or_insert(1.0) /= member.distinct.max(1.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::types::Type;

    fn node(rows: f64, base: f64) -> Node {
        Node {
            rows,
            base,
            writes: Registers::default(),
            needs: 0,
            attached: false,
            single: false,
            endless: false,
        }
    }

    fn class(members: &[(usize, f64)]) -> Class {
        let members = members.iter().map(|&(side, distinct)| Member { side, distinct });
        Class { members: members.collect(), fixed: false }
    }

    fn graph(nodes: Vec<Node>, classes: Vec<Class>) -> Graph {
        Graph { nodes, clauses: Vec::new(), classes, neighbours: Vec::new(), above: Vec::new() }
    }

    #[test]
    fn a_key_of_two_columns_finds_one_row() {
        // lineitem, partsupp by part and supplier, and 10 of 60,000 parts.
        let nodes = vec![node(1.8e6, 1.8e6), node(240_000.0, 240_000.0), node(10.0, 60_000.0)];
        let parts = class(&[(0, 60_000.0), (1, 60_000.0), (2, 60_000.0)]);
        let suppliers = class(&[(0, 3000.0), (1, 3000.0)]);
        let graph = graph(nodes, vec![parts, suppliers]);
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.01, "{found}");
        close(graph.rows(0b011), 1.8e6);
        close(graph.rows(0b101), 300.0);
        close(graph.rows(0b110), 40.0);
        close(graph.rows(0b111), 300.0);
    }

    #[test]
    fn a_condition_over_three_sides_counts_once_all_are_there() {
        let mut graph = graph(vec![node(10.0, 10.0), node(10.0, 10.0), node(10.0, 10.0)], Vec::new());
        graph.clauses.push(Clause {
            condition: Expr::null(Type::BOOL),
            sides: 0b111,
            equates: Some((0b011, 0b100)),
            class: None,
            redundant: false,
            selectivity: 0.1,
        });
        graph.connect();
        assert_eq!((graph.rows(0b011), graph.rows(0b111)), (100.0, 100.0));
        assert!(!graph.is_connected(0b001, 0b010) && graph.is_connected(0b011, 0b100));
        assert!(graph.clauses[0].is_key(0b011, 0b100) && !graph.clauses[0].is_key(0b001, 0b110));
    }
}
