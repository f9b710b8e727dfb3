//! The parts from which the planner builds joins.

use std::sync::Arc;

use expressions::expr::Expr;

use crate::bound::{FromItem, Query, SourceId};
use crate::plan::{JoinKind, Plan, SortKey};
use crate::registers::Registers;

/// A plan with its estimates.
pub(super) struct Part {
    pub(super) plan: Plan,
    pub(super) rows: f64,
    pub(super) cost: f64,
    /// Whether its rows come in the wanted order.
    pub(super) ordered: bool,
}

/// A source of an inner join.
pub(super) enum Leaf {
    /// A table. The conditions decide its access path.
    Table(SourceId, Arc<catalog::Table>),
    /// A part that is already planned.
    Planned(Box<Part>),
    /// An outer join, to be planned with the conditions that can move into it.
    Outer(Box<(JoinKind, FromItem, FromItem, Vec<Expr>)>),
    /// A subquery, to be planned with the conditions that can move into it.
    Query(Box<Query>),
}

/// The order and limit that a query wants for its rows.
#[derive(Clone, Copy, Default)]
pub(super) struct Wanted<'w> {
    pub(super) order: &'w [SortKey],
    pub(super) limited: bool,
}

pub(super) struct Candidate {
    pub(super) leaf: Option<Leaf>,
    pub(super) writes: Registers,
    /// Registers of other leaves that it reads (LATERAL).
    pub(super) needs: Registers,
    /// Its price when it was last computed.
    pub(super) known: Option<Known>,
}

/// Conditions that must all hold, and the registers each needs; see [`super::Planner::required`].
pub(super) struct Conditions {
    pub(super) list: Vec<Expr>,
    pub(super) required: Vec<Registers>,
    pub(super) used: Vec<bool>,
    /// The number of subqueries without a node when `required` was computed.
    pub(super) pending: usize,
}

/// A candidate's cost. It stays valid while the same conditions apply, whatever other leaves are
/// joined meanwhile.
pub(super) struct Known {
    /// The conditions on it alone, and those that join it.
    pub(super) own: Vec<usize>,
    pub(super) joining: Vec<usize>,
    /// The cost of running it once for each row.
    pub(super) run: f64,
    /// The cost of a hash table of it, if a hash join is possible.
    pub(super) hashed: Option<f64>,
}
