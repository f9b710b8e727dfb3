//! Queries that may wait between their rows.

use expressions::function::Volatility;

use super::{Operator, Plan, walk};

/// Whether a query may wait between its rows while its session runs other statements.
///
/// It may if it reads tables, changes nothing, and computes the same values now and later.
/// PostgreSQL computes some expressions before the first row, with their errors. Queries with such
/// expressions run at once instead.
pub fn may_be_live(root: &Plan) -> bool {
    let mut may = !matches!(
        root.operator,
        Operator::Virtual { .. }
            | Operator::LockRows { .. }
            | Operator::Insert(_)
            | Operator::Update(_)
            | Operator::Delete(_)
    );
    walk::exprs(root, &mut |expr| {
        may &= expr.volatility() < Volatility::Volatile && !expr.computes_ahead();
    });
    walk::children(root, &mut |child| may = may && may_be_live(child));
    may
}
