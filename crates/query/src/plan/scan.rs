//! Access paths: how a scan reaches a table's rows.
//!
//! What must hold:
//!
//! 1. A path names trees and columns of one version of the table's definition. The generation of
//!    the statement tells whether that version is current.
//! 2. Bounds read only registers that are filled before the scan begins.
//! 3. Bounds are in the order of values, also for a descending column. The executor turns them
//!    round.

use std::sync::Arc;

use super::Reg;
use catalog::Table;
use expressions::expr::Expr;
use expressions::prefix::Matching;

/// A column of a stored row and the register it is decoded into. A column that nothing reads is not
/// decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnRead {
    /// The column's position in the table's list of columns (dropped ones included), from 0.
    pub column: u32,
    /// The register of its value.
    pub register: Reg,
}

/// Registers (bytea) that identify the scanned row for a node above that locks or changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowIdentity {
    /// The encoded key in the table's tree.
    pub key: Reg,
    /// The 16-byte version header of the version that was read.
    pub stamp: Reg,
    /// The whole encoded row.
    pub row: Reg,
}

/// A scan of one table.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The table.
    pub table: Arc<Table>,
    /// The way to its rows.
    pub path: AccessPath,
    /// The columns to decode.
    pub columns: Vec<ColumnRead>,
    /// The registers of the columns of an index's entry: of its own, then of the row's key. Set if
    /// the entry has all that the scan decodes, so that it reads no row.
    pub entry: Option<Box<[Option<Reg>]>>,
    /// Set if a node above locks or changes the row.
    pub identity: Option<RowIdentity>,
    /// The conditions that the key range does not cover; None keeps all rows.
    pub filter: Option<Expr>,
}

/// The way to a table's rows.
#[derive(Debug, Clone)]
pub enum AccessPath {
    /// At most one row, by the whole primary key.
    Point {
        /// A value for each primary key column. A NULL finds no row.
        key: Vec<Expr>,
    },
    /// The table's own tree, in primary-key order.
    Table {
        /// The parts of the tree to read.
        ranges: Vec<KeyRange>,
        /// Whether to read from the end to the beginning.
        backward: bool,
    },
    /// At most one row, by all columns of a unique index, none of them NULL.
    UniquePoint {
        /// The position in `table.indexes`.
        index: usize,
        /// A value for each index column. A NULL finds no row.
        key: Vec<Expr>,
    },
    /// A secondary index, and the table's tree for each of its entries.
    Index {
        /// The position in `table.indexes`.
        index: usize,
        /// The parts of the tree to read.
        ranges: Vec<KeyRange>,
        /// Whether to read from the end to the beginning.
        backward: bool,
    },
    /// The rows whose keys trees have in their ranges, in the order of the keys. If these are many,
    /// the scan reads the whole table instead. So the scan's filter has all conditions.
    Combined {
        /// The trees.
        parts: Vec<TreePart>,
        /// Whether a row has to be in all of them. Otherwise one is enough.
        all: bool,
    },
}

/// A tree's part of a combined path.
#[derive(Debug, Clone)]
pub struct TreePart {
    /// The position in `table.indexes`; `None` for the table's own tree.
    pub index: Option<usize>,
    /// The parts of the tree to read.
    pub ranges: Vec<KeyRange>,
}

/// A part of an ordered tree: values of the leading columns, then an interval on the next column.
/// It is contiguous if no leading column has several values. A scan reads the union of its ranges
/// in the tree's order, and each entry once.
#[derive(Debug, Clone, Default)]
pub struct KeyRange {
    /// Values of the first columns.
    pub equal: Vec<KeyValue>,
    /// Lower bounds of the next column, in the order of values even for descending columns. All
    /// hold.
    pub low: Vec<KeyBound>,
    /// Upper bounds of the next column. With any bound set, NULLs are not in the range.
    pub high: Vec<KeyBound>,
}

/// A leading column's value in a range.
#[derive(Debug, Clone)]
pub enum KeyValue {
    /// This value. A NULL finds nothing.
    One(Expr),
    /// NULL.
    Null,
    /// Each value of a list. Equal ones count once, NULLs find nothing.
    List(Vec<Expr>),
    /// Each element of an array, likewise. Integers may be wider or narrower than the column.
    Array(Expr),
    /// Each value that the tree has. The scan looks for them one by one. Behind the last of `most`
    /// values it reads all entries, so the scan's filter has all conditions.
    Each {
        /// The bounds of the values, without leading columns. Without bounds NULL is one of them.
        between: KeyRange,
        /// The most values that it looks up, in the whole scan.
        most: usize,
    },
}

/// A condition on a column that gives an interval one end, or both.
#[derive(Debug, Clone)]
pub enum KeyBound {
    /// A comparison with a value. NULL makes the range empty.
    Value {
        /// The value.
        value: Expr,
        /// Whether the interval includes the value.
        inclusive: bool,
    },
    /// The texts that begin with a pattern's prefix. It stands in both lists. NULL makes the range
    /// empty.
    Pattern {
        /// The pattern, a text.
        pattern: Expr,
        /// The kind of pattern.
        matching: Matching,
    },
    /// All values but NULL. It stands in the list of lower bounds.
    NotNull,
}

impl KeyBound {
    /// The value from which the end is computed.
    pub(crate) fn value(&self) -> Option<&Expr> {
        match self {
            KeyBound::Value { value, .. } | KeyBound::Pattern { pattern: value, .. } => Some(value),
            KeyBound::NotNull => None,
        }
    }

    /// The value, to change it.
    pub(crate) fn value_mut(&mut self) -> Option<&mut Expr> {
        match self {
            KeyBound::Value { value, .. } | KeyBound::Pattern { pattern: value, .. } => Some(value),
            KeyBound::NotNull => None,
        }
    }
}

impl KeyRange {
    /// Whether it contains all keys.
    pub(crate) fn is_all(&self) -> bool {
        self.equal.is_empty() && self.low.is_empty() && self.high.is_empty()
    }

    /// Whether its keys lie next to each other in the tree.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.equal.iter().all(|value| matches!(value, KeyValue::One(_) | KeyValue::Null))
    }
}
