//! The access paths: how a table's rows are reached.

use std::sync::Arc;

use super::Reg;
use catalog::Table;
use expressions::expr::Expr;

/// A column of a stored row and the register it is decoded into. Columns nobody reads are not
/// decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnRead {
    /// The column's position in the table's list of columns (dropped ones included), from 0.
    pub column: u32,
    /// Where it goes.
    pub register: Reg,
}

/// Registers (bytea) that identify the scanned row to a node above that locks or changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowIdentity {
    /// The encoded key in the table's tree.
    pub key: Reg,
    /// The 16 bytes of the version seen.
    pub stamp: Reg,
    /// The whole encoded row.
    pub row: Reg,
}

/// A scan of one table.
#[derive(Debug)]
pub struct Scan {
    /// The table.
    pub table: Arc<Table>,
    /// The way to its rows.
    pub path: AccessPath,
    /// The decoded columns.
    pub columns: Vec<ColumnRead>,
    /// Set when a node above locks or changes the row.
    pub identity: Option<RowIdentity>,
    /// Rows kept: everything the key range doesn't say.
    pub filter: Option<Expr>,
}

/// The way to a table's rows.
#[derive(Debug)]
pub enum AccessPath {
    /// At most one row, by the whole primary key.
    Point {
        /// A value for each primary key column. A NULL gives no row.
        key: Vec<Expr>,
    },
    /// The table's own tree, in primary-key order.
    Table {
        /// The part of it.
        range: KeyRange,
        /// From the end to the beginning.
        backward: bool,
    },
    /// At most one row, by all columns of a unique index, none of them NULL.
    UniquePoint {
        /// Which of `table.indexes`.
        index: usize,
        /// A value for each index column. A NULL gives no row.
        key: Vec<Expr>,
    },
    /// A secondary index, then the table's tree for each entry.
    Index {
        /// Which of `table.indexes`.
        index: usize,
        /// The part of it.
        range: KeyRange,
        /// From the end to the beginning.
        backward: bool,
    },
}

/// A contiguous part of an ordered tree: equality on leading columns, then an interval on the next
/// one.
#[derive(Debug, Default)]
pub struct KeyRange {
    /// Values of the first columns. NULL here finds nothing unless listed in `null_equal`.
    pub equal: Vec<Expr>,
    /// Positions in `equal` that mean IS NULL (the expression is the NULL constant there).
    pub null_equal: Vec<usize>,
    /// Lower bound of the next column, in the column's value order (also for descending columns).
    pub low: Option<KeyBound>,
    /// Upper bound of the next column. With either bound set, NULLs are not in the range.
    pub high: Option<KeyBound>,
}

/// An end of an interval. A NULL value gives an empty range.
#[derive(Debug)]
pub struct KeyBound {
    /// The value.
    pub value: Expr,
    /// Whether the value itself is in.
    pub inclusive: bool,
}

impl KeyRange {
    /// Everything.
    #[must_use]
    pub fn all() -> KeyRange {
        KeyRange::default()
    }
}
