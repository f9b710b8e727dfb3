//! Joins: from FROM and WHERE to a plan.
//!
//! 1. FROM comes apart into sides and a pool of conditions ([`super::gather`]).
//! 2. Conditions that read no side are tested once, before any side is read.
//! 3. Estimates and a search choose the order and the methods ([`super::graph`], [`super::order`]).
//! 4. The plan applies a condition as soon as all registers it reads are filled.
//!
//! What must hold: each condition is applied once. Only one that others imply is left out.

use super::Planner;
use super::cost;
use super::equalities::{has_one_type, key_pair};
use super::gather::Gathered;
use super::graph::{Clause, Graph, MOST_SIDES, Node, Set, members};
use super::leaf::{LeafPrices, after_test};
use super::nested_loop::looped_parts;
use super::order::{self, Goal, Join, Method, Tree};
use super::part::{Leaf, Part, Semi, Side, Wanted};
use super::pushdown::{is_open, push_down};
use super::written::written;
use crate::bound::{FromItem, Query, QueryBody};
use crate::plan::{EquiMethod, Estimate, JoinKind, Operator, Plan, Reg};
use crate::registers::Registers;
use expressions::expr::Expr;
use expressions::function::Comparison;
use expressions::function::Volatility;
use runtime::hash::QuickMap;
use values::error::SqlError;
use values::types::Value;

/// Estimated distinct values of an expression.
const SOME_VALUES: f64 = 200.0;
/// The least fraction of the rows that an anti join keeps, as far as estimates go.
const LEAST_KEPT: f64 = 0.01;
/// Beyond this depth of queries, a subquery is planned once.
const MOST_NESTED: usize = 4;
/// Work of looking at a condition, in ns.
const LOOKING: usize = 100;

/// A join while its plan is built.
pub(super) struct Building<'j> {
    pub(super) graph: Graph,
    /// The sources that are not joined yet.
    leaves: Vec<Option<Leaf>>,
    /// The subqueries among them that are planned, for loops that run them with conditions inside.
    queries: Vec<Option<Box<Query>>>,
    /// How attached sides join the others.
    pub(super) kinds: Vec<JoinKind>,
    /// The conditions of each side alone, or of the join that attaches it.
    pub(super) own: Vec<Vec<Expr>>,
    /// Whether each condition of the graph is applied.
    pub(super) used: Vec<bool>,
    pub(super) outside: &'j Registers,
    wanted: Wanted<'j>,
}

impl Building<'_> {
    /// The registers of some sides.
    pub(super) fn writes(&self, set: Set) -> Registers {
        members(set).flat_map(|side| &self.graph.nodes[side].writes).copied().collect()
    }

    /// The order that a side has to give.
    fn wants(&self, ordered: bool) -> Wanted<'_> {
        if ordered { Wanted { ordered, ..self.wanted } } else { Wanted::default() }
    }

    pub(super) fn leaf(&mut self, side: usize) -> Result<Leaf, SqlError> {
        self.leaves[side].take().ok_or_else(|| SqlError::internal("a source joined twice"))
    }

    /// The conditions that apply to rows of these sides and are not applied yet. The root of the
    /// join also applies those that read no side.
    fn rest(&mut self, set: Set) -> Vec<Expr> {
        let is_root = set == self.graph.all();
        let mut rest = Vec::new();
        for (clause, used) in self.graph.clauses.iter().zip(&mut self.used) {
            let applies = clause.sides & !set == 0 && (clause.sides != 0 || is_root);
            if applies && !*used && !clause.redundant {
                *used = true;
                rest.push(clause.condition.clone());
            }
        }
        rest
    }

    /// Marks the conditions of a class as applied that join the two sets.
    pub(super) fn use_class(&mut self, class: Option<usize>, left: Set, right: Set) {
        for (clause, used) in self.graph.clauses.iter().zip(&mut self.used) {
            *used |= class.is_some() && clause.class == class && clause.joins(left, right);
        }
    }
}

impl Planner<'_, '_> {
    /// Plans FROM with conditions that must all hold, some of them as joins, and further sides.
    /// `outside`: registers filled before all of it.
    pub(super) fn joined_items(
        &mut self,
        item: FromItem,
        (conditions, semis, further): (Vec<Expr>, Vec<Semi>, Vec<Side>),
        outside: &Registers,
        wanted: Wanted<'_>,
    ) -> Result<Part, SqlError> {
        let Gathered { mut sides, mut conditions, computed, above, .. } =
            self.gather(item, conditions, semis)?;
        sides.extend(further);
        self.semi_joins(&mut conditions, &mut sides);
        let all: Registers = sides.iter().flat_map(|side| &side.writes).copied().collect();
        let mut available: Registers = outside.difference(&all).copied().collect();
        let first = self.early_sublinks(&conditions);
        available.extend(first.iter().flat_map(|first| written(&first.plan)));
        let first = self.tested_once(first, &mut conditions, &available)?;
        available.extend(first.iter().flat_map(|first| written(&first.plan)));
        let part = match sides.as_slice() {
            [side] if side.join.is_none() => {
                let side = sides.remove(0);
                self.leaf(side.leaf, conditions, &available, wanted)?
            }
            _ => self.joined(sides, conditions, &available, wanted)?,
        };
        let part = after_test(first, part);
        let part = self.projected(part, computed)?;
        self.filtered(part, above)
    }

    /// Conditions that read no row are tested once, before the first source is read.
    pub(super) fn tested_once(
        &mut self,
        first: Option<Part>,
        conditions: &mut Vec<Expr>,
        available: &Registers,
    ) -> Result<Option<Part>, SqlError> {
        let is_once = |condition: &mut Expr| {
            self.required(condition).is_subset(available) && condition.volatility() < Volatility::Volatile
        };
        let mut once: Vec<Expr> = conditions.extract_if(.., is_once).collect();
        once.retain(|condition| !matches!(condition, Expr::Const(Value::Bool(true), _)));
        if once.is_empty() {
            return Ok(first);
        }
        self.filtered(first.unwrap_or_else(Part::one), once).map(Some)
    }

    /// Joins sides.
    fn joined(
        &mut self,
        mut sides: Vec<Side>,
        mut conditions: Vec<Expr>,
        outside: &Registers,
        wanted: Wanted<'_>,
    ) -> Result<Part, SqlError> {
        while sides.len() > MOST_SIDES {
            // Sides read earlier ones only.
            let rest = sides.split_off(MOST_SIDES);
            let there: Registers =
                sides.iter().flat_map(|side| &side.writes).chain(outside).copied().collect();
            let own =
                conditions.extract_if(.., |condition| self.required(condition).is_subset(&there)).collect();
            let part = self.joined(sides, own, outside, Wanted::default())?;
            let leaf = Leaf::Planned(Box::new(part));
            let writes = self.leaf_writes(&leaf);
            sides = vec![Side { leaf, writes, needs: Registers::default(), join: None }];
            sides.extend(rest);
        }
        let mut join = self.building(sides, conditions, outside, wanted)?;
        let tree = self.ordered(&mut join)?;
        let (part, _) = self.built(tree, &mut join)?;
        Ok(part)
    }

    /// The graph of sides and conditions, with estimates.
    fn building<'j>(
        &mut self,
        sides: Vec<Side>,
        conditions: Vec<Expr>,
        outside: &'j Registers,
        wanted: Wanted<'j>,
    ) -> Result<Building<'j>, SqlError> {
        let mut owner: QuickMap<Reg, usize> = QuickMap::default();
        for (side, of) in sides.iter().enumerate() {
            owner.extend(of.writes.iter().map(|register| (*register, side)));
        }
        let mut clauses = Vec::with_capacity(conditions.len());
        for condition in conditions {
            values::work::tick(LOOKING)?;
            clauses.push(self.clause(condition, &owner));
        }
        self.share_subqueries(&mut clauses);
        let (mut nodes, mut leaves, mut queries) = (Vec::new(), Vec::new(), Vec::new());
        let (mut kinds, mut own) = (Vec::new(), Vec::new());
        for (number, Side { leaf, writes, needs, join }) in sides.into_iter().enumerate() {
            let needs = needs.iter().filter_map(|register| owner.get(register));
            let needs = needs.fold(0, |set: Set, side| set | 1 << side) & !(1 << number);
            let attached = join.is_some();
            let (kind, mut on) = join.unwrap_or((JoinKind::Inner, Vec::new()));
            let leaf = if self.is_closed(&leaf, &writes, &owner) {
                let is_own = |condition: &mut Expr| {
                    let required = self.required(condition);
                    required.iter().all(|register| writes.contains(register) || outside.contains(register))
                };
                let inside: Vec<Expr> = match attached {
                    true => on.extract_if(.., is_own).collect(),
                    false => {
                        let own = clauses.extract_if(.., |clause| clause.sides == 1 << number);
                        own.map(|clause| clause.condition).collect()
                    }
                };
                queries.push(self.kept_query(&leaf, &inside));
                Leaf::Planned(Box::new(self.leaf(leaf, inside, outside, Wanted::default())?))
            } else {
                queries.push(None);
                leaf
            };
            let endless = matches!(&leaf, Leaf::Planned(part) if self.may_be_endless(&part.plan));
            // The estimates follow, once all conditions are known.
            nodes.push(Node { rows: 1.0, base: 1.0, writes, needs, attached, single: false, endless });
            leaves.push(Some(leaf));
            kinds.push(kind);
            own.push(on);
        }
        let graph = Graph { nodes, clauses, classes: Vec::new(), neighbours: Vec::new(), above: Vec::new() };
        let mut join = Building { graph, leaves, queries, kinds, own, used: Vec::new(), outside, wanted };
        self.estimate_join(&mut join, &owner);
        Ok(join)
    }

    /// Whether a source is planned before the search for an order: no condition that joins it
    /// moves into it, and it reads no other side.
    fn is_closed(&self, leaf: &Leaf, writes: &Registers, owner: &QuickMap<Reg, usize>) -> bool {
        match leaf {
            Leaf::Query(query) => {
                let needs = self.leaf_needs(leaf);
                let own = |register: &Reg| !owner.contains_key(register) || writes.contains(register);
                !is_open(query) && needs.iter().all(own)
            }
            Leaf::Full(_) => true,
            Leaf::Table(..) | Leaf::Planned(_) | Leaf::Joined(_) => false,
        }
    }

    /// A copy of a subquery under its own conditions, if others may move into it.
    fn kept_query(&self, leaf: &Leaf, inside: &[Expr]) -> Option<Box<Query>> {
        let Leaf::Query(query) = leaf else { return None };
        let QueryBody::Select(select) = &query.body else { return None };
        if !super::stable::has_stable_rows(select)
            || self.nesting > MOST_NESTED
            || inside.iter().any(|condition| self.reads_pending(condition))
        {
            return None;
        }
        let (query, rest) = push_down((**query).clone(), inside.to_vec());
        rest.is_empty().then(|| Box::new(query))
    }

    /// The source of a side for a loop under these conditions.
    fn leaf_of_loop(
        &self,
        side: usize,
        conditions: &[Expr],
        available: &Registers,
        join: &mut Building<'_>,
    ) -> Result<Leaf, SqlError> {
        let leaf = join.leaf(side)?;
        let Some(query) = join.queries[side].take() else { return Ok(leaf) };
        let query = Leaf::Query(query);
        let whole = self.estimate(&leaf, conditions, available).cost;
        let inside = self.estimate(&query, conditions, available).cost;
        Ok(if inside < whole { query } else { leaf })
    }

    fn clause(&self, condition: Expr, owner: &QuickMap<Reg, usize>) -> Clause {
        let sides_of = |expr: &Expr| -> Set {
            let required = self.required(expr);
            required.iter().filter_map(|register| owner.get(register)).fold(0, |set, side| set | 1 << side)
        };
        let sides = sides_of(&condition);
        let equates = match condition.as_comparison() {
            Some((Comparison::Equal, left, right)) if !self.reads_pending(&condition) => {
                let (one, other) = (sides_of(left), sides_of(right));
                let hashes = one != 0 && other != 0 && one & other == 0 && has_one_type(left, right);
                hashes.then_some((one, other))
            }
            _ => None,
        };
        let selectivity = cost::selectivity(&condition);
        Clause { condition, sides, equates, class: None, redundant: false, selectivity }
    }

    /// Fills in the estimates of a join's graph.
    fn estimate_join(&self, join: &mut Building<'_>, owner: &QuickMap<Reg, usize>) {
        let waiting = self.wait(&mut join.graph);
        let Building { graph, leaves, kinds, own, used, outside, .. } = join;
        for (node, leaf) in graph.nodes.iter_mut().zip(leaves.iter()) {
            let Some(leaf) = leaf else { continue };
            node.base = self.estimate(leaf, &[], outside).rows;
        }
        let bases: Vec<f64> = graph.nodes.iter().map(|node| node.base).collect();
        let distinct = |side: usize, register: Reg| match &leaves[side] {
            Some(leaf) => self.distinct_values(leaf, register, bases[side]),
            None => SOME_VALUES,
        };
        graph.add_classes(|condition| self.reads_pending(condition), distinct);
        let values = |expr: &Expr| {
            let column = super::classes::column_of(uncast(expr))
                .and_then(|column| Some((*owner.get(&column)?, column)));
            column.map_or(SOME_VALUES, |(side, column)| distinct(side, column))
        };
        let selectivity = |condition: &Expr| match condition.as_comparison() {
            Some((Comparison::Equal, left, right)) => 1.0 / values(left).max(values(right)).max(1.0),
            _ => cost::selectivity(condition),
        };
        for clause in graph.clauses.iter_mut().filter(|clause| clause.sides.count_ones() > 1) {
            clause.selectivity = selectivity(&clause.condition);
        }
        *used = vec![false; graph.clauses.len()];
        for (clause, used) in graph.clauses.iter().zip(used.iter_mut()) {
            let side = clause.sides.trailing_zeros() as usize;
            if clause.sides.count_ones() == 1 && !graph.nodes[side].attached {
                own[side].push(clause.condition.clone());
                *used = true;
            }
        }
        for (side, node) in graph.nodes.iter_mut().enumerate() {
            let Some(leaf) = &leaves[side] else { continue };
            let (alone, joining): (Vec<Expr>, Vec<Expr>) = own[side].iter().cloned().partition(|condition| {
                let required = self.required(condition);
                required.iter().all(|register| node.writes.contains(register) || outside.contains(register))
            });
            let estimate = self.estimate(leaf, &alone, outside);
            node.single = estimate.single && !node.attached;
            let matches = estimate.rows * joining.iter().map(selectivity).product::<f64>();
            node.rows = match kinds[side] {
                _ if !node.attached => estimate.rows,
                JoinKind::Semi => matches.min(1.0),
                JoinKind::Anti => (1.0 - matches).max(LEAST_KEPT),
                _ => matches.max(1.0),
            };
        }
        graph.connect();
        if !waiting.is_empty() {
            self.stop_waiting(waiting, join);
        }
    }

    /// The cheapest order of a join.
    fn ordered(&self, join: &mut Building<'_>) -> Result<Tree, SqlError> {
        let Building { graph, leaves, queries, own, outside, wanted, .. } = join;
        let keyed: Vec<bool> =
            (0..graph.nodes.len()).map(|side| self.is_keyed(side, graph, leaves, own)).collect();
        let methods = self.context().methods;
        let Wanted { order, share, otherwise, .. } = *wanted;
        let goal = Goal { has_order: !order.is_empty(), share, otherwise, methods };
        let mut prices = LeafPrices {
            planner: self,
            leaves,
            queries,
            graph,
            own,
            outside,
            wanted: *wanted,
            keyed: &keyed,
        };
        order::cheapest(graph, &mut prices, goal)
    }

    /// Whether the condition of the left join with a nullable side has a key for hashing.
    fn is_keyed(&self, side: usize, graph: &Graph, leaves: &[Option<Leaf>], own: &[Vec<Expr>]) -> bool {
        let (node, Some(leaf)) = (&graph.nodes[side], &leaves[side]) else { return false };
        let left: Registers = members(graph.all() & !(1 << side))
            .flat_map(|other| &graph.nodes[other].writes)
            .copied()
            .collect();
        node.attached
            && !own[side].iter().any(|condition| self.reads_pending(condition))
            && self.leaf_needs(leaf).is_disjoint(&left)
            && !self.hash_keys(&own[side], &left, &node.writes).is_empty()
    }

    /// The plan of an order of joins, and its sides.
    pub(super) fn built(&mut self, tree: Tree, join: &mut Building<'_>) -> Result<(Part, Set), SqlError> {
        let step = match tree {
            Tree::Side(side, ordered) => {
                let (leaf, own) = (join.leaf(side)?, std::mem::take(&mut join.own[side]));
                let part = self.leaf(leaf, own, join.outside, join.wants(ordered))?;
                let sorted = if ordered { part.sorted } else { 0 };
                return Ok((Part { sorted, ordered: part.ordered && ordered, ..part }, 1 << side));
            }
            Tree::Keyed(_) => return Err(SqlError::internal("a side of no merge")),
            Tree::Join(step) => *step,
        };
        let Join { left, right, method, rows, cost, most, merging } = step;
        if let (Tree::Keyed(side), Some(merging)) = (&right, merging) {
            let (mut part, set) = self.merge_joined(left, (*side, merging), join)?;
            part.plan.estimate = Estimate { cost, rows, ..part.plan.estimate };
            let rest = join.rest(set);
            let mut part = self.filtered(part, rest)?;
            part.plan.estimate.rows = rows;
            return Ok((part, set));
        }
        let (left, left_set) = self.built(left, join)?;
        let (mut part, set) = match right {
            Tree::Side(side, _) if join.graph.nodes[side].attached => {
                (self.attached_side(left, left_set, side, (method, most), join)?, left_set | 1 << side)
            }
            Tree::Side(side, ordered) if matches!(method, Method::Loop | Method::Memo) => {
                let keeps = method == Method::Memo;
                (self.looped(left, left_set, (side, ordered, keeps, most), join)?, left_set | 1 << side)
            }
            right => {
                let (right, right_set) = self.built(right, join)?;
                let part = match method {
                    Method::Loop | Method::Memo => looped_parts(JoinKind::Inner, left, right, false),
                    _ => self.hashed(left, right, (left_set, right_set), join)?,
                };
                (part, left_set | right_set)
            }
        };
        let start = part.plan.estimate.start.min(cost);
        part.plan.estimate = Estimate { start, cost, rows };
        let rest = join.rest(set);
        let mut part = self.filtered(part, rest)?;
        part.plan.estimate.rows = rows;
        Ok((part, set))
    }

    /// Runs a side for each left row.
    fn looped(
        &mut self,
        left: Part,
        left_set: Set,
        (side, ordered, keeps, most): (usize, bool, bool, Option<f64>),
        join: &mut Building<'_>,
    ) -> Result<Part, SqlError> {
        let mut conditions = std::mem::take(&mut join.own[side]);
        for at in join.graph.joining(left_set, side) {
            join.used[at] = true;
            conditions.push(join.graph.clauses[at].condition.clone());
            join.use_class(join.graph.clauses[at].class, left_set, 1 << side);
        }
        let mut available = join.writes(left_set);
        available.extend(join.outside);
        let leaf = self.leaf_of_loop(side, &conditions, &available, join)?;
        // Above the loop, the rows of a subquery that reads no row around it are read once.
        let (late, conditions): (Vec<Expr>, Vec<Expr>) =
            conditions.into_iter().partition(|condition| self.reads_pending(condition));
        let hashable = self.hashable(&leaf, &conditions, most);
        let right = self.leaf(leaf, conditions, &available, join.wants(ordered))?;
        let right = Part { sorted: 0, ordered: right.ordered && ordered, ..right };
        let mut part = looped_parts(JoinKind::Inner, left, right, keeps);
        let sides = (&join.writes(left_set), &join.writes(1 << side), join.outside);
        self.go_on(&mut part, (JoinKind::Inner, hashable), sides)?;
        self.filtered(part, late)
    }

    /// Hashes the right part.
    fn hashed(
        &mut self,
        left: Part,
        right: Part,
        (left_set, right_set): (Set, Set),
        join: &mut Building<'_>,
    ) -> Result<Part, SqlError> {
        let (left_writes, right_writes) = (join.writes(left_set), join.writes(right_set));
        let mut keys = Vec::new();
        for at in 0..join.graph.clauses.len() {
            let clause = &join.graph.clauses[at];
            if join.used[at] || !clause.joins(left_set, right_set) || !clause.is_key(left_set, right_set) {
                continue;
            }
            if let Some(pair) = key_pair(&clause.condition, &left_writes, &right_writes) {
                keys.push(pair);
                join.used[at] = true;
                join.use_class(join.graph.clauses[at].class, left_set, right_set);
            }
        }
        if keys.is_empty() {
            return Err(SqlError::internal("a hash join without a key"));
        }
        self.hash_join(JoinKind::Inner, left, right, keys, Vec::new())
    }

    /// Joins a side by a condition of its own.
    fn attached_side(
        &mut self,
        left: Part,
        left_set: Set,
        side: usize,
        (method, most): (Method, Option<f64>),
        join: &mut Building<'_>,
    ) -> Result<Part, SqlError> {
        let on = std::mem::take(&mut join.own[side]);
        let (left_writes, right_writes) = (join.writes(left_set), join.writes(1 << side));
        if matches!(method, Method::Loop | Method::Memo) {
            // The right side runs for each left row, so it can check the whole condition itself.
            let available: Registers = left_writes.union(join.outside).copied().collect();
            let leaf = self.leaf_of_loop(side, &on, &available, join)?;
            let hashable = self.hashable(&leaf, &on, most);
            let right = self.leaf(leaf, on, &available, Wanted::default())?;
            let right = Part { sorted: 0, ordered: false, ..right };
            let mut part = looped_parts(join.kinds[side], left, right, method == Method::Memo);
            let sides = (&left_writes, &right_writes, join.outside);
            self.go_on(&mut part, (join.kinds[side], hashable), sides)?;
            return Ok(part);
        }
        let keys = self.hash_keys(&on, &left_writes, &right_writes);
        let (own, rest): (Vec<Expr>, Vec<Expr>) =
            on.into_iter().partition(|condition| self.required(condition).is_disjoint(&left_writes));
        let leaf = join.leaf(side)?;
        let right = self.leaf(leaf, own, join.outside, Wanted::default())?;
        let rest = rest.into_iter().filter(|expr| !self.is_key(expr, &left_writes, &right_writes)).collect();
        self.hash_join(join.kinds[side], left, right, keys, rest)
    }

    pub(super) fn hash_join(
        &mut self,
        kind: JoinKind,
        left: Part,
        right: Part,
        keys: Vec<(Expr, Expr)>,
        rest: Vec<Expr>,
    ) -> Result<Part, SqlError> {
        let larger = left.rows().max(right.rows());
        let mirrored = match kind {
            JoinKind::Inner | JoinKind::Full => Some(kind),
            JoinKind::Left => Some(JoinKind::Right),
            _ => None,
        };
        let (kind, left, right, keys) = match mirrored {
            Some(mirrored)
                if left.rows() <= right.rows()
                    && self.may_be_endless(&right.plan)
                    && !self.may_be_endless(&left.plan) =>
            {
                (mirrored, right, left, keys.into_iter().map(|(left, right)| (right, left)).collect())
            }
            _ => (kind, left, right, keys),
        };
        let build = right.cost() + right.rows() * cost::HASH_BUILD;
        let estimate = Estimate {
            start: build + left.plan.estimate.start,
            cost: build + left.cost() + left.rows() * cost::HASH_PROBE,
            rows: larger,
        };
        let operator = Operator::EquiJoin {
            kind,
            left: Box::new(left.plan),
            right: Box::new(right.plan),
            keys,
            condition: (!rest.is_empty()).then(|| Expr::and(rest)),
            test: None,
            left_registers: Vec::new(),
            right_registers: Vec::new(),
            method: EquiMethod::Hash { ordered: false },
        };
        let keeps = !matches!(kind, JoinKind::Right | JoinKind::Full);
        let (sorted, ordered) = if keeps { (left.sorted, left.ordered) } else { (0, false) };
        Ok(Part { plan: Plan::new(operator, estimate), sorted, ordered })
    }
}

/// An expression without its outer casts.
fn uncast(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(cast) => uncast(&cast.input),
        expr => expr,
    }
}
