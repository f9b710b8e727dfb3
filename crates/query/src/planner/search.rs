//! The input of a search for the access path to one table's rows.

use crate::plan::{Reg, SortKey};
use crate::registers::Registers;
use catalog::{Table, TableStatistics};
use expressions::expr::Expr;

/// The input of the search for a path.
pub(super) struct Search<'s> {
    pub(super) table: &'s Table,
    /// The register of each column.
    pub(super) columns: &'s [Option<Reg>],
    pub(super) conditions: &'s [Expr],
    /// Registers filled before the scan.
    pub(super) available: &'s Registers,
    pub(super) rows: f64,
    pub(super) statistics: Option<&'s TableStatistics>,
    /// The order that the query wants, and whether it then needs only some of the rows.
    pub(super) order: &'s [SortKey],
    pub(super) limited: bool,
}
