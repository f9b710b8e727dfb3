//! Paths that gather the keys of rows first: those that the ranges of any tree have, or all.
//!
//! A condition with alternatives makes a union: each alternative bounds the tree that it bounds
//! best. Conditions on several indexes make an intersection. The keys are sorted, so a row that is
//! in several ranges is read once, and rows come in the order of their keys.
//!
//! One index alone is such a path if nobody knows how many rows its range has, because a value is
//! not known at planning. If there are many, the scan finds out and reads the whole table
//! (`execution::combined`).
//!
//! What must hold: every condition stays a filter. A range may have more rows than the condition,
//! and so has the whole table.

use super::access::{Candidate, Path, Way};
use super::bounding::{Bounding, COMPARISONS, COPYING, Clause};
use super::cost;
use super::reach::Reached;
use super::search::Search;
use catalog::IndexKey;

/// The most alternatives of a condition of which each may choose its tree.
const ALTERNATIVES: usize = 100;

/// The work of a path that may read the whole table, as a part of the work of reading it.
const GUESSED: f64 = 0.8;
/// The most work of a path that gathers, as a part of that of the same path without. For few rows
/// they differ little, and the number of rows is a guess.
const AS_PLAIN: f64 = 0.9;

/// A tree from which row keys can be read.
struct KeyTree {
    index: Option<usize>,
    keys: Vec<IndexKey>,
    /// The work of reading one of its entries.
    entry: f64,
}

/// A range of one tree.
struct Bounded<'c, 's> {
    index: Option<usize>,
    range: Reached<'c, 's>,
    /// The work of reading it.
    work: f64,
}

impl<'s> Search<'s> {
    /// The paths over several trees that may be better than one of a cost.
    pub(super) fn combined<'c>(&self, clauses: &'c [Clause<'s>], cost: f64) -> Vec<Candidate<'c, 's>> {
        let (plain, either): (Vec<&'c Clause<'s>>, Vec<_>) =
            clauses.iter().partition(|clause| clause.alternatives.len() == 1);
        let is_possible = !either.is_empty() || plain.len() > 1;
        if self.table.indexes.is_empty() || !is_possible || cost <= cost::DESCENT + cost::INDEX_ROW {
            return Vec::new();
        }
        let trees = self.key_trees();
        let plain: Vec<&'c Bounding<'s>> =
            plain.into_iter().flat_map(|clause| &clause.alternatives[0]).collect();
        let unions = either.into_iter().filter_map(|clause| self.union(&trees, &plain, clause));
        unions.chain(self.intersection(&trees, &plain)).collect()
    }

    /// A path that gathers the keys of an index's ranges first, if their rows may be any number.
    pub(super) fn gathered<'c>(&self, path: &Candidate<'c, 's>) -> Option<Candidate<'c, 's>> {
        let Path { way: Way::Tree { index: Some(index), ranges, .. }, single: false, rows, .. } = path else {
            return None;
        };
        let bounds = || ranges.iter().flat_map(Reached::bounds);
        let is_guess = bounds().any(|bounding| self.is_guess(bounding));
        // For each row of another table it would gather the keys anew, where EXISTS wants one row.
        let in_loop = || bounds().any(|bounding| self.reads_column(bounding));
        if !is_guess || self.covering(*index).is_some() || in_loop() {
            return None;
        }
        let work: f64 = ranges.iter().map(|range| self.work(range, cost::ENTRY)).sum();
        let ahead = (work + cost::sort_keys(*rows)).min(self.rows * GUESSED / 2.0);
        let cost = (ahead + rows * cost::KEYED_ROW).min(self.rows * GUESSED).min(path.cost * AS_PLAIN);
        let ahead = ahead.min(cost);
        Some(self.by_keys(vec![(Some(*index), ranges.clone())], false, *rows, (ahead, cost)))
    }

    fn key_trees(&self) -> Vec<KeyTree> {
        let own = KeyTree { index: None, keys: self.table.row_keys().collect(), entry: 1.0 };
        let index =
            |index| KeyTree { index: Some(index), keys: self.table.entry_keys(index), entry: cost::ENTRY };
        std::iter::once(own).chain((0..self.table.indexes.len()).map(index)).collect()
    }

    /// The range of a tree that comparisons bound.
    fn bounded_in<'c>(&self, tree: &KeyTree, set: &[&'c Bounding<'s>]) -> Option<Bounded<'c, 's>> {
        let range = self.reached(&tree.keys, set, tree.entry);
        let work = self.work(&range, tree.entry);
        range.is_bounded().then_some(Bounded { index: tree.index, range, work })
    }

    /// The rows that one of a condition's alternatives bounds.
    fn union<'c>(
        &self,
        trees: &[KeyTree],
        plain: &[&'c Bounding<'s>],
        clause: &'c Clause<'s>,
    ) -> Option<Candidate<'c, 's>> {
        let comparisons = clause.comparisons() + plain.len() * clause.alternatives.len();
        if clause.alternatives.len() > ALTERNATIVES || comparisons * trees.len() > COMPARISONS {
            return None;
        }
        runtime::work::yield_after(comparisons * trees.len() * COPYING);
        let mut parts: Vec<Bounded<'c, 's>> = Vec::with_capacity(clause.alternatives.len());
        for alternative in &clause.alternatives {
            let set: Vec<&'c Bounding<'s>> = alternative.iter().chain(plain.iter().copied()).collect();
            let bounded = trees.iter().filter_map(|tree| self.bounded_in(tree, &set));
            parts.push(bounded.min_by(|one, other| one.work.total_cmp(&other.work))?);
        }
        let fraction: f64 = parts.iter().map(|part| part.range.fraction).sum();
        self.candidate_of(parts, false, fraction.min(1.0))
    }

    /// The rows that several indexes bound, each by other conditions.
    fn intersection<'c>(&self, trees: &[KeyTree], plain: &[&'c Bounding<'s>]) -> Option<Candidate<'c, 's>> {
        let mut all: Vec<Bounded<'c, 's>> =
            trees.iter().filter_map(|tree| self.bounded_in(tree, plain)).collect();
        all.sort_by(|one, other| one.work.total_cmp(&other.work));
        let mut conditions: Vec<usize> = Vec::new();
        let mut bounds: Vec<&'c Bounding<'s>> = Vec::new();
        let (mut parts, mut fraction, mut least) = (Vec::new(), 1.0, f64::INFINITY);
        for part in all {
            if part.range.conditions().any(|condition| conditions.contains(&condition)) {
                continue;
            }
            let among = self.among(bounds.iter().copied(), part.range.bounds());
            let smaller = fraction * among.unwrap_or(part.range.fraction);
            let work: f64 = parts.iter().chain([&part]).map(|part| self.gathering(part)).sum();
            let total = work + self.rows * smaller * cost::KEYED_ROW;
            if total < least {
                conditions.extend(part.range.conditions());
                bounds.extend(part.range.bounds());
                (fraction, least) = (smaller, total);
                parts.push(part);
            }
        }
        if parts.len() > 1 { self.candidate_of(parts, true, fraction) } else { None }
    }

    /// The work of reading the keys of a range and sorting them.
    fn gathering(&self, part: &Bounded<'_, 's>) -> f64 {
        part.work + cost::sort_keys(self.rows * part.range.fraction)
    }

    fn candidate_of<'c>(
        &self,
        parts: Vec<Bounded<'c, 's>>,
        all: bool,
        fraction: f64,
    ) -> Option<Candidate<'c, 's>> {
        let ahead: f64 = parts.iter().map(|part| self.gathering(part)).sum();
        let mut trees: Vec<(Option<usize>, Vec<Reached<'c, 's>>)> = Vec::new();
        for Bounded { index, range, .. } in parts {
            match trees.iter_mut().find(|(other, _)| *other == index) {
                Some((_, ranges)) => ranges.push(range),
                None => trees.push((index, vec![range])),
            }
        }
        // One tree needs no keys.
        if trees.len() < 2 {
            return None;
        }
        let rows = (self.rows * fraction).max(1.0);
        Some(self.by_keys(trees, all, rows, (ahead, ahead + rows * cost::KEYED_ROW)))
    }

    fn by_keys<'c>(
        &self,
        parts: Vec<(Option<usize>, Vec<Reached<'c, 's>>)>,
        all: bool,
        rows: f64,
        (ahead, cost): (f64, f64),
    ) -> Candidate<'c, 's> {
        let keys: Vec<IndexKey> = self.table.row_keys().collect();
        let (sorted, backward) = self.order_of(&keys, 0);
        let sorted = if backward { 0 } else { sorted };
        Candidate {
            way: Way::Combined { parts, all },
            single: false,
            used: Vec::new(),
            rows,
            cost: cost::of_method(self.methods.bitmap_scan, cost),
            ahead,
            sorted,
            ordered: sorted == self.order.len(),
        }
    }
}
