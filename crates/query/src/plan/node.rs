//! A node of a plan: an operator, its estimate and its number.
//!
//! What must hold:
//!
//! 1. Each node has the estimate by which the planner chose it. [`Plan::new`] is the one way to
//!    make a node.
//! 2. The numbers of a statement's nodes are unique once the plan is complete.

use expressions::expr::Expr;

use super::{Operator, Reg};

/// The rows and the work that the planner expects of a node and of all nodes below it, for one run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Estimate {
    /// Work until the first row, in rows read in order.
    pub start: f64,
    /// Work until the last row, in the same unit.
    pub cost: f64,
    /// The rows that it gives.
    pub rows: f64,
}

/// A plan: its topmost operator, with the plans below it.
#[derive(Debug)]
pub struct Plan {
    /// The operator.
    pub operator: Operator,
    /// Its estimate.
    pub estimate: Estimate,
    /// Its number among the nodes of the statement, from 0.
    pub node: u32,
}

impl Plan {
    /// A node with its estimate.
    pub(crate) fn new(operator: Operator, estimate: Estimate) -> Plan {
        Plan { operator, estimate, node: 0 }
    }

    /// One row without columns.
    pub(crate) fn one_row() -> Plan {
        Plan::new(Operator::OneRow, Estimate { rows: 1.0, ..Estimate::default() })
    }

    /// A projection of `expressions` over this plan, or the plan itself if there are none.
    #[must_use]
    pub(crate) fn project(self, expressions: Vec<(Expr, Reg)>) -> Plan {
        if expressions.is_empty() {
            return self;
        }
        let estimate = self.estimate;
        Plan::new(Operator::Project { input: Box::new(self), expressions }, estimate)
    }
}
