//! Queries that may wait between their rows.

use expressions::function::Volatility;

use super::{Plan, walk};

/// Whether a query may wait between its rows while its session runs other statements.
///
/// It may if it reads tables, changes nothing, and computes the same values now and later.
/// PostgreSQL computes some expressions before the first row, with their errors. Queries with such
/// expressions run at once instead.
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
