//! Which queries may wait between their rows.

use expressions::function::Volatility;

use super::{Plan, walk};

/// Whether a query may wait between its rows while its session runs other statements: it reads
/// tables and changes nothing, and all that it computes is the same now and later. Queries that
/// PostgreSQL computes in part before the first row, with the errors of that part, run at once.
pub fn may_be_live(root: &Plan) -> bool {
    let mut may = !matches!(
        root,
        Plan::Virtual { .. } | Plan::LockRows { .. } | Plan::Insert(_) | Plan::Update(_) | Plan::Delete(_)
    );
    walk::exprs(root, &mut |expr| {
        may &= expr.volatility() < Volatility::Volatile && !expr.computes_ahead();
    });
    walk::children(root, &mut |child| may = may && may_be_live(child));
    may
}
