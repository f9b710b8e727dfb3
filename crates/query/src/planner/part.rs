//! The parts from which the planner builds joins.

use std::sync::Arc;

use super::cost;
use expressions::expr::Expr;

use crate::bound::{FromItem, Query, SourceId};
use crate::plan::{Estimate, JoinKind, Operator, Plan, SortKey};
use crate::registers::Registers;
use crate::request::Methods;

/// A plan and the order of its rows.
pub(super) struct Part {
    pub(super) plan: Plan,
    /// The number of leading keys of the wanted order by which its rows come.
    pub(super) sorted: usize,
    /// Whether its rows come in the wanted order.
    pub(super) ordered: bool,
}

impl Part {
    /// A part of one node, or of a node with the plans below it. Its rows come in no order.
    pub(super) fn new(operator: Operator, estimate: Estimate) -> Part {
        Part::unordered(Plan::new(operator, estimate))
    }

    /// A plan whose rows come in no order.
    pub(super) fn unordered(plan: Plan) -> Part {
        Part { plan, sorted: 0, ordered: false }
    }

    /// One row without columns.
    pub(super) fn one() -> Part {
        Part::unordered(Plan::one_row())
    }

    /// The estimated rows.
    pub(super) fn rows(&self) -> f64 {
        self.plan.estimate.rows
    }

    /// The estimated work.
    pub(super) fn cost(&self) -> f64 {
        self.plan.estimate.cost
    }

    /// The work of hashing its rows and of looking so many others up.
    pub(super) fn hashed_for(&self, rows: f64) -> f64 {
        self.cost() + self.rows() * cost::HASH_BUILD + rows * cost::HASH_PROBE
    }

    /// The part below one more node. Its rows keep their order.
    pub(super) fn below(self, node: impl FnOnce(Box<Plan>) -> Operator, estimate: Estimate) -> Part {
        Part { plan: Plan::new(node(Box::new(self.plan)), estimate), ..self }
    }
}

/// A source of a join.
pub(super) enum Leaf {
    /// A table. The conditions decide its access path.
    Table(SourceId, Arc<catalog::Table>),
    /// A part that is already planned.
    Planned(Box<Part>),
    /// A subquery, to be planned with the conditions that can move into it.
    Query(Box<Query>),
    /// A join below an outer or a semi join, to be planned with the conditions that can move into
    /// it.
    Joined(Box<(FromItem, Vec<Semi>)>),
    /// A full join.
    Full(Box<(FromItem, FromItem, Vec<Expr>)>),
}

/// The part of its rows that a query reads.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Share {
    #[default]
    All,
    /// So many of the first rows.
    Rows(f64),
    /// This fraction of them.
    Fraction(f64),
    /// The first rows, nobody knows how many.
    Some,
}

impl Share {
    /// The fraction of so many rows.
    pub(super) fn of(self, rows: f64) -> f64 {
        match self {
            Share::All => 1.0,
            Share::Rows(first) => (first / rows.max(1.0)).clamp(0.0, 1.0),
            Share::Fraction(fraction) => fraction,
            Share::Some => 0.1,
        }
    }

    /// The most rows that a sort has to keep.
    pub(super) fn kept(self, rows: f64) -> f64 {
        match self {
            Share::Rows(first) => first.min(rows),
            Share::All | Share::Fraction(_) | Share::Some => rows,
        }
    }
}

/// The work above rows that do not come in the wanted order.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Otherwise {
    #[default]
    Sort,
    /// The sort of a window, which takes no order of its leading keys.
    Window,
    /// A hash table of groups.
    Hash,
}

impl Otherwise {
    /// The work for so many rows.
    pub(super) fn work(self, rows: f64, share: Share, methods: Methods) -> f64 {
        match self {
            Otherwise::Sort | Otherwise::Window => {
                cost::of_method(methods.sort, cost::sort(rows, share.kept(rows)))
            }
            Otherwise::Hash => rows * cost::HASH_PROBE,
        }
    }
}

/// The order and the number of rows that a query wants.
#[derive(Clone, Copy, Default)]
pub(super) struct Wanted<'w> {
    pub(super) order: &'w [SortKey],
    pub(super) share: Share,
    pub(super) otherwise: Otherwise,
    /// Whether only a path in this order will do.
    pub(super) ordered: bool,
}

/// A condition EXISTS, NOT EXISTS or ANY that becomes a join.
#[derive(Clone)]
pub(super) struct Semi {
    pub(super) from: FromItem,
    /// The conditions on its rows and those that compare them with the rows around.
    pub(super) conditions: Vec<Expr>,
    /// Such conditions among its own.
    pub(super) inner: Vec<Semi>,
    /// Semi or Anti.
    pub(super) kind: JoinKind,
}

/// A source of a join, and its place among the others.
pub(super) struct Side {
    pub(super) leaf: Leaf,
    /// The registers that it fills for the others.
    pub(super) writes: Registers,
    /// Registers of the others that it reads (LATERAL, and the condition of its own join).
    pub(super) needs: Registers,
    /// How it joins the others. `None`: it is one of the sides of an inner join.
    pub(super) join: Option<(JoinKind, Vec<Expr>)>,
}
