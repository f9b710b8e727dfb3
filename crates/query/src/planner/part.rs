//! The parts a join is made of while it is planned.

use std::sync::Arc;

use expressions::expr::Expr;

use crate::bound::{FromItem, Query, SourceId};
use crate::plan::{JoinKind, Plan, SortKey};
use crate::registers::Registers;

/// A plan with what is expected of it.
pub(super) struct Part {
    pub(super) plan: Plan,
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// Its rows come in the wanted order.
    pub(super) ordered: bool,
}

/// A source of an inner join.
pub(super) enum Leaf {
    /// A table, whose path depends on the conditions.
    Table(SourceId, Arc<catalog::Table>),
    /// Anything planned already.
    Planned(Box<Part>),
    /// An outer join, planned with the conditions that can go into it.
    Outer(Box<(JoinKind, FromItem, FromItem, Vec<Expr>)>),
    /// A subquery, planned with the conditions that can go into it.
    Query(Box<Query>),
}

/// The order and limit a query wants of its rows.
#[derive(Clone, Copy, Default)]
pub(super) struct Wanted<'w> {
    pub(super) order: &'w [SortKey],
    pub(super) limited: bool,
}

pub(super) struct Candidate {
    pub(super) leaf: Option<Leaf>,
    pub(super) writes: Registers,
    /// Registers of other leaves it reads (LATERAL).
    pub(super) needs: Registers,
    /// The price when it was last looked at.
    pub(super) known: Option<Known>,
}

/// Conditions that must all hold, and what each reads; see [`Planner::required`].
pub(super) struct Conditions {
    pub(super) list: Vec<Expr>,
    pub(super) required: Vec<Registers>,
    pub(super) used: Vec<bool>,
    /// Subqueries that were not computed yet when this was found out.
    pub(super) pending: usize,
}

/// A candidate with its cost. The cost stays the same while the same conditions apply, whatever
/// else is joined meanwhile.
pub(super) struct Known {
    /// The conditions on it alone, and those that join it.
    pub(super) own: Vec<usize>,
    pub(super) joining: Vec<usize>,
    /// Running it once for each row.
    pub(super) run: f64,
    /// Making a hash table of it, if it can be joined so.
    pub(super) hashed: Option<f64>,
}
