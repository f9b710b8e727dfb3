//! Plans of one row at most.

use crate::plan::{AccessPath, Operator, Plan};

/// Whether a plan returns at most one row, whatever the tables contain.
pub(super) fn at_most_one(plan: &Plan) -> bool {
    match &plan.operator {
        Operator::OneRow | Operator::Nothing => true,
        Operator::Values { rows, .. } => rows.len() <= 1,
        Operator::Scan(scan) => {
            matches!(scan.path, AccessPath::Point { .. } | AccessPath::UniquePoint { .. })
        }
        Operator::Filter { input, .. }
        | Operator::Project { input, .. }
        | Operator::Subquery { input, .. } => at_most_one(input),
        Operator::Aggregate { input, groups, .. } => groups.is_empty() || at_most_one(input),
        Operator::NestedLoop { left, right, .. } => at_most_one(left) && at_most_one(right),
        _ => false,
    }
}
