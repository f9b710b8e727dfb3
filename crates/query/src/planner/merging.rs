//! Merge joins: the keys by which two sides can merge, and the plan.
//!
//! The right side is a table that an index or its own key gives in the order of the keys. The left
//! side is such a table, too, or rows whose wanted order begins with the keys.
//!
//! What must hold:
//!
//! 1. A key is a column, or a column as a wider number or as text. So rows in the order of the
//!    columns are in the order of the compared values, and each value of a column has its own.
//! 2. All equalities that are no keys stay conditions of the join, or above it.
//! 3. The right side begins at the key of the first left row, if its column has the type of the
//!    left one. Rows before that match nothing.

use super::Planner;
use super::equalities::key_pair;
use super::graph::{Set, members};
use super::join::Building;
use super::leaf::LeafPrices;
use super::order::Tree;
use super::part::{Leaf, Part, Share, Wanted};
use super::price::{Merging, Price};
use super::query::{keep_order, sorted};
use crate::plan::{EquiMethod, Estimate, MergeOrder, Operator, Plan, Reg, SortKey};
use crate::registers::Registers;
use catalog::IndexKey;
use expressions::expr::Expr;
use expressions::functions;
use values::error::SqlError;
use values::types::{Type, oid};

/// An equality of a left and a right column.
struct Equality {
    left: (Reg, Expr),
    right: (Reg, Expr),
    keys: (Expr, Expr),
    condition: usize,
}

impl LeafPrices<'_, '_, '_> {
    /// The equalities of columns of a set with columns of a side.
    fn equalities(&self, left: Set, side: usize) -> Vec<Equality> {
        let node = &self.graph.nodes[side];
        let writes: Registers =
            members(left).flat_map(|other| &self.graph.nodes[other].writes).copied().collect();
        let conditions: Vec<(usize, &Expr)> = match node.attached {
            true => self.own[side].iter().enumerate().collect(),
            false => {
                let clauses = self.graph.above.iter().map(|&at| (at, &self.graph.clauses[at]));
                let keys = clauses.filter(|(_, clause)| {
                    !clause.redundant && clause.joins(left, 1 << side) && clause.is_key(left, 1 << side)
                });
                keys.map(|(at, clause)| (at, &clause.condition)).collect()
            }
        };
        let equality = |(condition, expr): (usize, &Expr)| {
            let keys = key_pair(expr, &writes, &node.writes)?;
            let (left, right) = (column_in_order(&keys.0)?, column_in_order(&keys.1)?);
            Some(Equality { left, right, keys, condition })
        };
        conditions.into_iter().filter_map(equality).collect()
    }

    /// The keys by which rows that come by some leading keys of the wanted order merge with a
    /// side's.
    pub(super) fn merging_by_wanted(&self, left: Set, side: usize, keys: usize) -> Option<Merging> {
        let equalities = self.equalities(left, side);
        let order = self.wanted.order.iter().take(keys);
        let found = order.map_while(|key| {
            let register = super::classes::column_of(&key.expr)?;
            Some((equalities.iter().find(|equality| equality.left.0 == register)?, key.clone()))
        });
        self.merging_of(side, &found.collect::<Vec<_>>(), Price::NONE)
    }

    /// The keys by which a table in one of its own orders merges with another one.
    pub(super) fn merging_by_own(&self, left: Set, side: usize) -> Option<Merging> {
        let of_left = left.trailing_zeros() as usize;
        let Some(Leaf::Table(source, table)) = &self.leaves[of_left] else { return None };
        let equalities = self.equalities(left, side);
        if table.is_virtual() || equalities.is_empty() {
            return None;
        }
        let columns = &self.planner.binder.sources[*source].columns;
        let trees = std::iter::once(table.row_keys().collect())
            .chain((0..table.indexes.len()).map(|index| table.entry_keys(index)));
        let merging = |tree: Vec<IndexKey>| {
            let found = tree.iter().map_while(|key| {
                let register = columns.get(key.column as usize).copied().flatten()?;
                let equality = equalities.iter().find(|equality| equality.left.0 == register)?;
                let (descending, nulls_first) = (key.descending, key.nulls_first);
                Some((equality, SortKey { expr: equality.left.1.clone(), descending, nulls_first }))
            });
            let found: Vec<_> = found.collect();
            let order: Vec<SortKey> = found.iter().map(|(_, key)| key.clone()).collect();
            let price = self.in_order_of(of_left, &order)?;
            self.merging_of(side, &found, price)
        };
        let found = trees.filter_map(merging);
        let work = |merging: &Merging| merging.left_price.cost + merging.price.cost;
        found.min_by(|one, other| work(one).total_cmp(&work(other)))
    }

    /// The keys of these equalities, if a path gives the right side in their order.
    fn merging_of(&self, side: usize, found: &[(&Equality, SortKey)], left_price: Price) -> Option<Merging> {
        let right: Vec<SortKey> = found
            .iter()
            .map(|(equality, key)| SortKey { expr: equality.right.1.clone(), ..key.clone() })
            .collect();
        let price = self.in_order_of(side, &right)?;
        Some(Merging {
            left: found.iter().map(|(_, key)| key.clone()).collect(),
            right,
            keys: found.iter().map(|(equality, _)| equality.keys.clone()).collect(),
            conditions: found.iter().map(|(equality, _)| equality.condition).collect(),
            left_price,
            price,
        })
    }

    /// All rows of a table in an order of its columns, if a path gives that.
    fn in_order_of(&self, side: usize, order: &[SortKey]) -> Option<Price> {
        if order.is_empty() {
            return None;
        }
        self.ordered(side, (&self.own_alone(side), self.outside), in_order(order))
    }
}

impl Planner<'_, '_> {
    /// Merges the rows of a tree with those of a side.
    pub(super) fn merge_joined(
        &mut self,
        left: Tree,
        (side, merging): (usize, Merging),
        join: &mut Building<'_>,
    ) -> Result<(Part, Set), SqlError> {
        let (left, left_set) = match left {
            Tree::Keyed(of_left) => {
                let (leaf, own) = (join.leaf(of_left)?, std::mem::take(&mut join.own[of_left]));
                let part = self.keyed(leaf, (own, join.outside), &merging.left)?;
                (Part::unordered(part.plan), 1 << of_left)
            }
            tree => self.built(tree, join)?,
        };
        let Part { plan: mut left, sorted, ordered } = left;
        keep_order(&mut left);
        let left_writes = join.writes(left_set);
        let mut own = std::mem::take(&mut join.own[side]);
        let mut rest = Vec::new();
        if join.graph.nodes[side].attached {
            let mut at = 0;
            own.retain(|_| {
                at += 1;
                !merging.conditions.contains(&(at - 1))
            });
            rest = own.extract_if(.., |on| !self.required(on).is_disjoint(&left_writes)).collect();
        } else {
            for &at in &merging.conditions {
                join.used[at] = true;
                join.use_class(join.graph.clauses[at].class, left_set, 1 << side);
            }
        }
        let mut available = join.outside.clone();
        if let Some(start) = start_of(&merging) {
            own.push(start);
            available.extend(&left_writes);
        }
        let leaf = join.leaf(side)?;
        let mut right = self.keyed(leaf, (own, &available), &merging.right)?.plan;
        let Price { start, cost, rows } = merging.price;
        right.estimate = Estimate { start, cost, rows };
        let estimate = Estimate { start: left.estimate.start + start, ..left.estimate };
        let descending = merging.left.iter().map(|key| key.descending).collect();
        let order = MergeOrder { descending, start: Vec::new() };
        let operator = Operator::EquiJoin {
            kind: join.kinds[side],
            left: Box::new(left),
            right: Box::new(right),
            keys: merging.keys,
            condition: (!rest.is_empty()).then(|| Expr::and(rest)),
            test: None,
            left_registers: Vec::new(),
            right_registers: Vec::new(),
            method: EquiMethod::Merge(Box::new(order)),
        };
        let plan = Plan::new(operator, estimate);
        Ok((Part { plan, sorted, ordered }, left_set | 1 << side))
    }

    /// A table's rows in an order.
    fn keyed(
        &mut self,
        leaf: Leaf,
        (conditions, available): (Vec<Expr>, &Registers),
        order: &[SortKey],
    ) -> Result<Part, SqlError> {
        let mut part = self.leaf(leaf, conditions, available, in_order(order))?;
        if !part.ordered {
            return Ok(sorted(part, order.to_vec(), (None, Share::All)));
        }
        // A join above the path, as that with a subquery's groups, has to pass its order on.
        keep_order(&mut part.plan);
        Ok(part)
    }
}

/// The condition that the right rows of a merge begin at the first left row's key, if both are
/// columns of one type.
fn start_of(merging: &Merging) -> Option<Expr> {
    let (Some((left, right)), Some(order)) = (merging.keys.first(), merging.left.first()) else {
        return None;
    };
    let (Expr::Column { .. }, Expr::Column { .. }) = (left, right) else { return None };
    let operator = if order.descending { "<=" } else { ">=" };
    functions::operator(operator, Some(right.clone()), left.clone()).ok()
}

fn in_order(order: &[SortKey]) -> Wanted<'_> {
    Wanted { order, ordered: true, ..Wanted::default() }
}

/// The column whose order is that of a value, and the column as an expression.
fn column_in_order(value: &Expr) -> Option<(Reg, Expr)> {
    match value {
        Expr::Column { register, type_ } if type_.oid != oid::RECORD => Some((*register, value.clone())),
        Expr::Cast(cast) => {
            let (from, to) = (cast.input.type_().oid, value.type_().oid);
            // A precision or scale would round different values to one.
            let is_whole = value.type_() == Type::new(to);
            let is_wider = is_whole
                && match (place(from), place(to)) {
                    (Some(from), Some(to)) => from < to,
                    _ => matches!((from, to), (oid::FLOAT4, oid::FLOAT8) | (oid::VARCHAR, oid::TEXT)),
                };
            if is_wider { column_in_order(&cast.input) } else { None }
        }
        _ => None,
    }
}

/// The place of a type among those of exact numbers. A later one has the values of all before.
fn place(type_: u32) -> Option<usize> {
    [oid::INT2, oid::INT4, oid::INT8, oid::NUMERIC].into_iter().position(|number| number == type_)
}
