//! Plans of one row at most.

use crate::plan::{AccessPath, Plan};

/// Whether a plan returns at most one row, whatever the tables contain.
pub(super) fn at_most_one(plan: &Plan) -> bool {
    match plan {
        Plan::OneRow | Plan::Nothing => true,
        Plan::Values { rows, .. } => rows.len() <= 1,
        Plan::Scan(scan) => matches!(scan.path, AccessPath::Point { .. } | AccessPath::UniquePoint { .. }),
        Plan::Filter { input, .. } | Plan::Project { input, .. } | Plan::Subquery { input, .. } => {
            at_most_one(input)
        }
        Plan::Aggregate { input, groups, .. } => groups.is_empty() || at_most_one(input),
        Plan::NestedLoop { left, right, .. } => at_most_one(left) && at_most_one(right),
        _ => false,
    }
}
