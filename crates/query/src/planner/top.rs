//! The nodes above a query's rows: order, limit and row locks.

use expressions::expr::Expr;

use crate::bound::SourceId;
use crate::plan::{Reg, SortKey};
use crate::registers::{self, Registers};

/// Order, limit and row locks of a query.
pub(super) struct Top {
    pub(super) order: Vec<SortKey>,
    pub(super) limit: Option<Expr>,
    pub(super) offset: Option<Expr>,
    pub(super) ties: bool,
    pub(super) locks: Vec<(SourceId, txn::RowLock, txn::Wait)>,
}

impl Top {
    /// A test for columns that are computed above the limit, only for rows that pass it. No sort
    /// key reads them.
    pub(super) fn late(&self) -> impl Fn(Reg) -> bool + use<> {
        let mut read = Registers::default();
        self.order.iter().for_each(|key| registers::of_expr(&key.expr, &mut read));
        let limited = self.limit.is_some();
        move |register| limited && !read.contains(&register)
    }
}

/// A copy of a sort key.
pub(super) fn copy_key(key: &SortKey) -> SortKey {
    SortKey { expr: key.expr.clone(), descending: key.descending, nulls_first: key.nulls_first }
}
