//! The input of a search for the access path to one table's rows.

use std::cell::RefCell;
use std::sync::Arc;

use super::part::{Otherwise, Share};
use crate::bind::Binder;
use crate::plan::{Choice, Reg, SortKey};
use crate::registers::Registers;
use crate::request::Methods;
use catalog::{Table, TableStatistics};
use expressions::expr::Expr;
use values::types::Value;

/// Values of parameters at planning.
pub(super) trait Peek {
    /// The value of a parameter, if it is known.
    fn peek(&self, parameter: u32) -> Option<Value>;

    /// Whether a register holds a column of a table.
    fn is_column(&self, register: Reg) -> bool;
}

impl Peek for Binder<'_> {
    fn peek(&self, parameter: u32) -> Option<Value> {
        Binder::peek(self, parameter)
    }

    fn is_column(&self, register: Reg) -> bool {
        self.sources.iter().any(|source| source.columns.contains(&Some(register)))
    }
}

/// The input of the search for a path.
pub(super) struct Search<'s> {
    pub(super) table: &'s Table,
    /// The register of each column.
    pub(super) columns: &'s [Option<Reg>],
    pub(super) conditions: &'s [Expr],
    /// Registers filled before the scan.
    pub(super) available: &'s Registers,
    pub(super) rows: f64,
    pub(super) statistics: Option<&'s Arc<TableStatistics>>,
    pub(super) values: &'s dyn Peek,
    /// The choices noted so far.
    pub(super) choices: &'s RefCell<Vec<Choice>>,
    /// Whether the columns are all that the statement needs of a row.
    pub(super) reads_columns: bool,
    /// Whether the statement reads no other table.
    pub(super) alone: bool,
    /// The order that the query wants, and the part of the rows.
    pub(super) order: &'s [SortKey],
    pub(super) share: Share,
    pub(super) otherwise: Otherwise,
    pub(super) methods: Methods,
}
