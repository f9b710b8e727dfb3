//! Numbers of the nodes of a statement.

use super::Plan;
use super::walk::children_mut;

/// Numbers the nodes of a plan from 0, those of a second look included.
pub(crate) fn number(root: &mut Plan) {
    fn next(plan: &mut Plan, number: &mut u32) {
        plan.node = *number;
        *number += 1;
        children_mut(plan, &mut |child| next(child, number));
    }
    next(root, &mut 0);
}
