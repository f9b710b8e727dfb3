//! Scans without their filters, for an executor that runs the filters itself.

use runtime::hash::HashMap;

use super::walk::children;
use super::{Operator, Plan, Scan};

/// Copies of a plan's scans that have a filter, without it, by the number of their node.
#[must_use]
pub fn unfiltered_scans(root: &Plan) -> HashMap<u32, Scan> {
    fn add(plan: &Plan, scans: &mut HashMap<u32, Scan>) {
        if let Operator::Scan(scan) = &plan.operator
            && scan.filter.is_some()
        {
            scans.insert(plan.node, Scan { filter: None, ..(**scan).clone() });
        }
        children(plan, &mut |child| add(child, scans));
    }
    let mut scans = HashMap::default();
    add(root, &mut scans);
    scans
}
