//! A column of a target list while it is bound.

use std::cell::OnceCell;
use std::ops::Range;

use expressions::expr::Expr;

use super::alike::Twins;

/// A column of the target list while it is being bound.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) expr: Expr,
    pub(crate) location: i32,
    /// The columns it reads above the grouping, as places in the level's uses.
    pub(super) uses: Range<usize>,
    fingerprint: OnceCell<u64>,
}

impl Target {
    pub(crate) fn new(name: String, expr: Expr, location: i32) -> Target {
        Target { name, expr, location, uses: 0..0, fingerprint: OnceCell::new() }
    }

    /// The expression's fingerprint: see [`Twins::fingerprint`].
    pub(super) fn fingerprint(&self, twins: &Twins) -> u64 {
        *self.fingerprint.get_or_init(|| twins.fingerprint(&self.expr))
    }

    /// Replaces the expression.
    pub(crate) fn set(&mut self, expr: Expr) {
        self.expr = expr;
        self.fingerprint = OnceCell::new();
    }
}
