//! The order of joins and the method of each.
//!
//! Up to 12 sides, dynamic programming over the sets of sides finds the cheapest tree. It tries
//! each split of a set into two connected sets. This is DPsub of Moerkotte and Neumann, "Analysis
//! of Two Existing and One New Dynamic Programming Algorithm". Beside the cheapest tree of a set,
//! it keeps the cheapest one in the wanted order. More sides, and sides that no condition connects,
//! are joined greedily: always the two parts whose join has the fewest rows.
//!
//! What must hold:
//!
//! 1. A side that depends on others is joined by itself, to a set that has all of them.
//! 2. A join that may be endless on one side only reads that side first. The other is kept.
//! 3. The search has safe points of work, so it ends at its budget.

use super::cost;
use super::graph::{Graph, Set, members};
use super::part::{Otherwise, Share};
use super::price::{Merging, Price, Prices, Run, Sets, Sought};
use crate::request::Methods;
use runtime::hash::QuickMap;
use values::error::SqlError;

/// The most sides of an exhaustive search.
const MOST_SEARCHED: usize = 12;
/// A loop goes on as a hash join once it has met this many times the left rows that were expected.
const MANY: f64 = 10.0;
/// The least rows of each side of a merge join, more than tables without statistics count for.
/// Below, no order of a join is worth a look, unless another method is off.
const MERGED: f64 = 2000.0;
/// Work of pricing a join, in ns, and of looking at a split.
const PRICING: usize = 500;
const LOOKING: usize = 4;

/// The method of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// The right side runs for each left row.
    Loop,
    /// The same, and its rows are kept by the values of the left row.
    Memo,
    /// The right side is hashed.
    Hash,
    /// Both sides come in the order of keys, by the number of these.
    Merge(usize),
}

/// An order of joins.
#[derive(Debug)]
pub(super) enum Tree {
    /// One side, and whether its path has to give the wanted order.
    Side(usize, bool),
    /// One side in the order of the keys by which it merges.
    Keyed(usize),
    Join(Box<Join>),
}

#[derive(Debug)]
pub(super) struct Join {
    pub(super) left: Tree,
    pub(super) right: Tree,
    pub(super) method: Method,
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// The left rows of a loop beyond which a hash costs less, if there may be so many.
    pub(super) most: Option<f64>,
    /// The keys of a merge.
    pub(super) merging: Option<Merging>,
}

/// One way to join a set.
#[derive(Clone, Copy)]
struct Way {
    start: f64,
    cost: f64,
    /// The parts and the method. `None` for one side.
    split: Option<(Set, Set, Method)>,
    begins: Begins,
}

/// The order in which a way begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// Any.
    Unordered,
    /// With the left part's best in the wanted order, or with the side's.
    Left,
    /// With the right side's, for the one row of the left part.
    Right,
}

impl Way {
    /// The cost of reading a share of the rows.
    fn of_share(&self, share: f64) -> f64 {
        self.start + (self.cost - self.start) * share
    }
}

/// A set of sides that can be joined.
struct Part {
    rows: f64,
    single: bool,
    best: Way,
    /// The best in the wanted order.
    ordered: Option<Way>,
}

/// The order and the share of the rows that a query wants, and the methods it may use.
#[derive(Clone, Copy)]
pub(super) struct Goal {
    pub(super) has_order: bool,
    pub(super) share: Share,
    pub(super) otherwise: Otherwise,
    pub(super) methods: Methods,
}

impl Goal {
    fn is_nothing(self) -> bool {
        !self.has_order && self.share == Share::All
    }
}

struct Search<'g> {
    graph: &'g Graph,
    prices: &'g mut dyn Prices,
    goal: Goal,
    /// The fraction of all rows that the query reads.
    share: f64,
    /// The leading keys that stand for the wanted order, where no side gives all of it but one
    /// gives these. The joined rows are sorted set by set.
    sets: Option<Sets>,
    parts: QuickMap<Set, Part>,
    rows: QuickMap<Set, f64>,
    /// Prices of sides under clauses, and the outer values on which their rows depend.
    runs: QuickMap<(usize, Vec<usize>), Run>,
    /// The keys of merges.
    merges: Vec<Merging>,
    /// Prices of attached sides.
    alone: Vec<Option<Price>>,
    /// Whether a loop may read several sides again and again.
    crosses: bool,
}

/// The cheapest order.
pub(super) fn cheapest(graph: &Graph, prices: &mut dyn Prices, goal: Goal) -> Result<Tree, SqlError> {
    let share = goal.share.of(graph.rows(graph.all()));
    let alone = vec![None; graph.nodes.len()];
    let (parts, rows, runs) = (QuickMap::default(), QuickMap::default(), QuickMap::default());
    let (sets, merges, crosses) = (None, Vec::new(), false);
    let mut search = Search { graph, prices, goal, share, sets, parts, rows, runs, merges, alone, crosses };
    search.start();
    if graph.nodes.len() <= MOST_SEARCHED {
        search.search()?;
    }
    if !search.parts.contains_key(&graph.all()) {
        search.join_greedily()?;
    }
    search.chosen()
}

impl Search<'_> {
    /// The parts of one side.
    fn start(&mut self) {
        for (side, node) in self.graph.nodes.iter().enumerate() {
            if node.is_dependent() {
                continue;
            }
            let way =
                |price: Price, begins| Way { start: price.start, cost: price.cost, split: None, begins };
            let best = way(self.prices.alone(side), Begins::Unordered);
            let ordered = match self.goal {
                goal if goal.is_nothing() => None,
                Goal { has_order: false, .. } => Some(Way { begins: Begins::Left, ..best }),
                _ => self.prices.in_order(side).map(|price| way(price, Begins::Left)),
            };
            self.parts.insert(1 << side, Part { rows: node.rows, single: node.single, best, ordered });
        }
        if self.goal.has_order && self.parts.values().all(|part| part.ordered.is_none()) {
            self.presort();
        }
    }

    /// Looks for a side whose rows come by the leading keys of the wanted order.
    fn presort(&mut self) {
        for side in (0..self.graph.nodes.len()).filter(|&side| !self.graph.nodes[side].is_dependent()) {
            let Some((price, sets)) = self.prices.presorted(side) else { continue };
            let Some(part) = self.parts.get_mut(&(1 << side)) else { continue };
            let way = Way { start: price.start, cost: price.cost, split: None, begins: Begins::Left };
            part.ordered = Some(way);
            self.sets = Some(sets);
            // The last set is read whole.
            self.share = (self.share + 1.0 / sets.count).min(1.0);
            return;
        }
    }

    /// Searches all orders without cross products.
    fn search(&mut self) -> Result<(), SqlError> {
        let all = self.graph.all();
        for set in 1..=all {
            // The first of equal ways is kept. It begins with the sides written first.
            let mut right = set & (set - 1);
            values::work::tick(LOOKING << set.count_ones())?;
            while right != 0 {
                let left = set & !right;
                let is_there = self.parts.contains_key(&left)
                    && (self.parts.contains_key(&right) || self.is_dependent(right));
                if is_there && self.graph.is_connected(left, right) {
                    values::work::tick(PRICING + LOOKING * self.graph.above.len())?;
                    self.join(left, right);
                }
                right = (right - 1) & set;
            }
        }
        Ok(())
    }

    /// Whether a set is one side that depends on others.
    fn is_dependent(&self, set: Set) -> bool {
        set.count_ones() == 1 && self.graph.nodes[set.trailing_zeros() as usize].is_dependent()
    }

    /// Joins the parts that the search left, and those of more sides than it takes.
    fn join_greedily(&mut self) -> Result<(), SqlError> {
        self.crosses = true;
        let mut found: Vec<Set> = self.parts.keys().copied().collect();
        found.sort_unstable_by_key(|set| (std::cmp::Reverse(set.count_ones()), *set));
        let mut parts: Vec<Set> = Vec::new();
        for set in found {
            if parts.iter().all(|other| other & set == 0) {
                parts.push(set);
            }
        }
        let joined: Set = parts.iter().fold(0, |all, set| all | set);
        parts.extend(members(self.graph.all() & !joined).map(|side| 1 << side));
        while parts.len() > 1 {
            let Some((left, right)) = self.smallest(&parts)? else {
                return Err(SqlError::internal("sources that wait for each other"));
            };
            self.join(left, right);
            self.join(right, left);
            parts.retain(|part| *part != left && *part != right);
            parts.push(left | right);
        }
        Ok(())
    }

    /// The two parts whose join has the fewest rows, of those that a condition connects if there
    /// are any.
    fn smallest(&mut self, parts: &[Set]) -> Result<Option<(Set, Set)>, SqlError> {
        let mut best: Option<((bool, f64), (Set, Set))> = None;
        for (at, &one) in parts.iter().enumerate() {
            values::work::tick(LOOKING * parts.len())?;
            for &other in &parts[..at] {
                if !self.may_join(one, other) && !self.may_join(other, one) {
                    continue;
                }
                let rank = (!self.graph.is_connected(one, other), self.rows_of(one | other)?);
                if best.as_ref().is_none_or(|(least, _)| rank < *least) {
                    best = Some((rank, (other, one)));
                }
            }
        }
        Ok(best.map(|(_, pair)| pair))
    }

    fn rows_of(&mut self, set: Set) -> Result<f64, SqlError> {
        if let Some(rows) = self.rows.get(&set) {
            return Ok(*rows);
        }
        values::work::tick(PRICING + LOOKING * self.graph.above.len())?;
        let rows = self.graph.rows(set);
        self.rows.insert(set, rows);
        Ok(rows)
    }

    /// Whether a set may be the right side of a join with another.
    fn may_join(&self, left: Set, right: Set) -> bool {
        let needs = if self.is_dependent(right) {
            self.graph.nodes[right.trailing_zeros() as usize].needs
        } else if self.parts.contains_key(&right) {
            0
        } else {
            return false;
        };
        // An attached side without end is not kept: the other one is.
        let endless = |set: Set| {
            members(set).map(|side| &self.graph.nodes[side]).any(|node| node.endless && !node.attached)
        };
        self.parts.contains_key(&left) && needs & !left == 0 && (endless(left) || !endless(right))
    }

    /// Prices the joins of two sets.
    fn join(&mut self, left: Set, right: Set) {
        if !self.may_join(left, right) {
            return;
        }
        let set = left | right;
        let rows = match self.parts.get(&set) {
            Some(part) => part.rows,
            None => self.graph.rows(set),
        };
        let looped = self.run(left, right);
        let hashed = self.hashed(left, right);
        let in_order = self.run_in_order(left, right);
        let merges = self.merges(left, right);
        let Some(part) = self.parts.get(&left) else { return };
        let single = part.single && self.is_single(right);
        // The number of left rows is a guess, unless there is one at most.
        let outer = if part.single { part.rows } else { part.rows.max(cost::GUESSED) };
        let methods = self.goal.methods;
        let kept = looped.and_then(|run| Some((run.price.start, run.kept(part.rows, self.share)?)));
        let with = |way: Way, begins, start: f64, cost: f64, method| Way {
            start: way.start + start,
            cost: way.cost + cost + rows * cost::ROW,
            split: Some((left, right, method)),
            begins,
        };
        let spilled = |right: Price| match right.rows * cost::HASH_BYTES > methods.work_mem as f64 {
            true => (part.rows + right.rows) * cost::SPILLED,
            false => 0.0,
        };
        let mut ways = Vec::with_capacity(8);
        let begins = [(Some(part.best), Begins::Unordered), (part.ordered, Begins::Left)];
        for (way, begins) in begins.into_iter().filter_map(|(way, begins)| Some((way?, begins))) {
            ways.extend(looped.map(|Run { price, .. }| {
                let cost = cost::of_method(methods.nested_loop, outer * price.cost);
                with(way, begins, price.start, cost, Method::Loop)
            }));
            ways.extend(kept.map(|(start, work)| {
                let cost = cost::of_method(methods.nested_loop, work);
                with(way, begins, start, cost, Method::Memo)
            }));
            ways.extend(hashed.map(|right| {
                let build = right.cost + right.rows * cost::HASH_BUILD + spilled(right);
                let start = cost::of_method(methods.hash_join, build);
                with(way, begins, start, start + part.rows * cost::HASH_PROBE, Method::Hash)
            }));
        }
        ways.extend(in_order.map(|run| {
            let cost = cost::of_method(methods.nested_loop, run.cost);
            with(part.best, Begins::Right, run.start, cost, Method::Loop)
        }));
        for (number, own) in merges {
            let merging = &self.merges[number];
            let (of_left, begins) = match own {
                true => {
                    let Price { start, cost, .. } = merging.left_price;
                    (Some(Way { start, cost, split: None, begins: Begins::Unordered }), Begins::Unordered)
                }
                false => (part.ordered, Begins::Left),
            };
            let work =
                merging.price.cost + part.rows * cost::MERGE_LEFT + merging.price.rows * cost::MERGE_RIGHT;
            ways.extend(of_left.map(|way| {
                let cost = cost::of_method(methods.merge_join, work);
                with(way, begins, merging.price.start, cost, Method::Merge(number))
            }));
        }
        for way in ways {
            self.keep(set, rows, single, way);
        }
    }

    /// The price of the right set for each row of the left one.
    fn run(&mut self, left: Set, right: Set) -> Option<Run> {
        if right.count_ones() > 1 {
            let part = self.parts.get(&right)?;
            let price = Price { start: part.best.start, cost: part.best.cost, rows: part.rows };
            return self.crosses.then_some(Run { price, values: None });
        }
        let side = right.trailing_zeros() as usize;
        if self.graph.nodes[side].endless && self.hashed(left, right).is_some() {
            return None;
        }
        let clauses = self.graph.joining(left, side);
        let key = (side, clauses);
        let known = self.runs.get(&key).copied();
        let mut run = match known {
            Some(run) => run,
            None => Run { price: self.prices.run(side, &key.1), values: None },
        };
        let is_many = self.parts.get(&left).is_some_and(|part| part.rows * self.share > cost::GUESSED);
        let may_be_kept = self.goal.methods.memoize
            && is_many
            && run.price.cost > cost::MEMO_LOOK
            && !self.graph.nodes[side].endless;
        if may_be_kept && run.values.is_none() {
            run.values = Some(self.prices.outer_values(side, &key.1));
        } else if known.is_some() {
            return known;
        }
        self.runs.insert(key, run);
        Some(run)
    }

    /// The price of the right side in the wanted order for the one row of the left set.
    fn run_in_order(&mut self, left: Set, right: Set) -> Option<Price> {
        let side = right.trailing_zeros() as usize;
        let is_one = right.count_ones() == 1 && !self.graph.nodes[side].attached;
        let left_part = self.parts.get(&left)?;
        if !self.goal.has_order || self.sets.is_some() || !is_one || !left_part.single {
            return None;
        }
        let clauses = self.graph.joining(left, side);
        self.prices.run_in_order(side, &clauses)
    }

    /// The keys by which two sets can merge, and whether the left one, a single side, is to be read
    /// in their order. Otherwise its wanted order is theirs.
    fn merges(&mut self, left: Set, right: Set) -> Vec<(usize, bool)> {
        let (side, mut found) = (right.trailing_zeros() as usize, Vec::new());
        let (node, methods) = (&self.graph.nodes[side], self.goal.methods);
        let Some(part) = self.parts.get(&left) else { return found };
        if right.count_ones() > 1
            || (node.is_dependent() && !(node.attached && self.prices.has_key(side)))
            || (part.rows.min(node.base) < MERGED && methods.hash_join && methods.nested_loop)
            || !methods.merge_join
        {
            return found;
        }
        let mut sought = Vec::new();
        if self.goal.has_order && part.ordered.is_some() {
            sought.push(Sought::Wanted(self.sets.map_or(usize::MAX, |sets| sets.keys)));
        }
        if left.count_ones() == 1 {
            sought.push(Sought::Own);
        }
        for sought in sought {
            if let Some(merging) = self.prices.merging(left, side, sought) {
                found.push((self.merges.len(), sought == Sought::Own));
                self.merges.push(merging);
            }
        }
        found
    }

    /// The price of the right set for a hash of it, if one can be made.
    fn hashed(&mut self, left: Set, right: Set) -> Option<Price> {
        let side = right.trailing_zeros() as usize;
        if self.is_dependent(right) {
            let node = &self.graph.nodes[side];
            if !node.attached || !self.prices.has_key(side) {
                return None;
            }
            let price = match self.alone[side] {
                Some(price) => price,
                None => self.prices.alone(side),
            };
            self.alone[side] = Some(price);
            return Some(price);
        }
        let part = self.parts.get(&right)?;
        self.graph.has_key(left, right).then_some(Price {
            start: part.best.start,
            cost: part.best.cost,
            rows: part.rows,
        })
    }

    fn is_single(&self, set: Set) -> bool {
        members(set).all(|side| self.graph.nodes[side].single)
    }

    /// Keeps a way if it is the best of its kind.
    fn keep(&mut self, set: Set, rows: f64, single: bool, way: Way) {
        let is_wanted = !self.goal.is_nothing() && (way.begins != Begins::Unordered || !self.goal.has_order);
        let share = self.share;
        let part = self.parts.entry(set).or_insert(Part { rows, single, best: way, ordered: None });
        if way.cost < part.best.cost {
            part.best = way;
        }
        let least = part.ordered.map_or(f64::INFINITY, |best| best.of_share(share));
        if is_wanted && way.of_share(share) < least {
            part.ordered = Some(way);
        }
    }

    /// The best tree of all sides.
    fn chosen(&self) -> Result<Tree, SqlError> {
        let all = self.graph.all();
        let part = self.parts.get(&all).ok_or_else(|| SqlError::internal("sources that nothing joins"))?;
        let sort = match self.goal.has_order {
            true => self.goal.otherwise.work(part.rows, self.goal.share, self.goal.methods),
            false => 0.0,
        };
        let sort_sets = |sets: Sets| {
            let work = cost::sort(part.rows * self.share, part.rows / sets.count.min(part.rows));
            cost::of_method(self.goal.methods.sort, work)
        };
        let rest = self.sets.map_or(0.0, sort_sets);
        let in_order =
            part.ordered.is_some_and(|way| way.of_share(self.share) + rest <= part.best.cost + sort);
        self.tree(all, in_order)
    }

    fn tree(&self, set: Set, in_order: bool) -> Result<Tree, SqlError> {
        let missing = || SqlError::internal("a join without a plan");
        if set.count_ones() == 1 && !self.parts.contains_key(&set) {
            return Ok(Tree::Side(set.trailing_zeros() as usize, false));
        }
        let part = self.parts.get(&set).ok_or_else(missing)?;
        let way = if in_order { part.ordered.ok_or_else(missing)? } else { part.best };
        let Some((left, right, method)) = way.split else {
            return Ok(Tree::Side(set.trailing_zeros() as usize, in_order && self.goal.has_order));
        };
        let is_loop = matches!(method, Method::Loop | Method::Memo);
        let most = if is_loop { self.most_looped(left, right, method) } else { None };
        let merging = match method {
            Method::Merge(number) => Some(self.merges.get(number).cloned().ok_or_else(missing)?),
            _ => None,
        };
        let keyed = |set: Set| Tree::Keyed(set.trailing_zeros() as usize);
        let left = match merging.is_some() && way.begins == Begins::Unordered {
            true => keyed(left),
            false => self.tree(left, way.begins == Begins::Left)?,
        };
        let right = match way.begins {
            _ if merging.is_some() => keyed(right),
            Begins::Right => Tree::Side(right.trailing_zeros() as usize, true),
            Begins::Unordered | Begins::Left => self.tree(right, false)?,
        };
        let (rows, cost) = (part.rows, way.cost);
        Ok(Tree::Join(Box::new(Join { left, right, method, rows, cost, most, merging })))
    }

    /// The left rows of a loop beyond which a hash of the right side costs less. None if no hash is
    /// possible or there cannot be so many.
    fn most_looped(&self, left: Set, right: Set, method: Method) -> Option<f64> {
        let (outer, side) = (self.parts.get(&left)?, right.trailing_zeros() as usize);
        if outer.single || right.count_ones() > 1 || !self.goal.methods.hash_join {
            return None;
        }
        let run = self.runs.get(&(side, self.graph.joining(left, side)))?;
        let hash = if self.is_dependent(right) {
            self.alone[side].filter(|_| self.prices.has_key(side))?
        } else {
            let part = self.parts.get(&right).filter(|_| self.graph.has_key(left, right))?;
            Price { start: part.best.start, cost: part.best.cost, rows: part.rows }
        };
        let step = match method {
            Method::Memo => run.kept(outer.rows, self.share)? / outer.rows,
            _ => run.price.cost,
        };
        let even = (hash.cost + hash.rows * cost::HASH_BUILD) / step.max(1.0);
        let most = even.max(outer.rows * MANY);
        let bases = members(left).map(|side| &self.graph.nodes[side]).filter(|node| !node.attached);
        (most < bases.map(|node| node.base).product()).then_some(most)
    }
}
