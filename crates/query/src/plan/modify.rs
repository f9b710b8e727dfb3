//! The nodes that change or lock rows.
//!
//! A changed row passes through registers: `new_row` is the first of as many consecutive registers
//! as the table has columns (dropped ones included); the executor fills them with the complete new
//! row, evaluates the checks over them, encodes them, and leaves them there for RETURNING. Old
//! values are in the registers of the scan below.

use std::sync::Arc;

use super::{ColumnRead, Plan, Reg, RowIdentity};
use catalog::Table;
use expressions::expr::Expr;

/// INSERT.
#[derive(Debug)]
pub struct Insert {
    /// The rows to insert.
    pub input: Plan,
    /// Into which table.
    pub table: Arc<Table>,
    /// One expression for each column of the table, over the input's registers: given, default or
    /// NULL, cast to the column's type and modifier.
    pub values: Vec<Expr>,
    /// The first of the new row's registers.
    pub new_row: Reg,
    /// CHECK constraints over the new row's registers.
    pub checks: Vec<Check>,
    /// ON CONFLICT.
    pub conflict: Option<OnConflict>,
    /// The columns of the new row that nodes above read.
    pub returned: Vec<u32>,
}

/// A CHECK constraint.
#[derive(Debug)]
pub struct Check {
    /// Its name, for the message.
    pub name: String,
    /// Fails when false; NULL passes.
    pub expr: Expr,
}

/// ON CONFLICT.
#[derive(Debug)]
pub struct OnConflict {
    /// The key that decides: None = any unique key (only with DO NOTHING).
    pub arbiter: Option<Arbiter>,
    /// DO UPDATE, or None for DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

/// The unique key ON CONFLICT names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arbiter {
    /// The primary key.
    PrimaryKey,
    /// One of `table.indexes`.
    Index(usize),
}

/// DO UPDATE SET.
#[derive(Debug)]
pub struct ConflictUpdate {
    /// Where the existing row's columns go; `excluded.*` are the `new_row` registers of the insert.
    pub existing: Vec<ColumnRead>,
    /// WHERE.
    pub condition: Option<Expr>,
    /// The assignments.
    pub assignments: Vec<Assignment>,
    /// The first of the updated row's registers. RETURNING reads the insert's `new_row`; the
    /// executor copies them there.
    pub updated_row: Reg,
    /// CHECK constraints over the updated row's registers.
    pub checks: Vec<Check>,
}

/// SET column = value.
#[derive(Debug)]
pub struct Assignment {
    /// The column's position in the table.
    pub column: u32,
    /// Its value, cast to the column's type and modifier.
    pub value: Expr,
}

/// The row a node changes or locks, and what to do when somebody else has changed it since it was
/// read.
#[derive(Debug)]
pub struct RowTarget {
    /// Its table.
    pub table: Arc<Table>,
    /// The scan's registers that identify it.
    pub identity: RowIdentity,
    /// The columns of it that any expression reads: decoded again from the newest version.
    pub columns: Vec<ColumnRead>,
}

/// The plan that is evaluated again when a wait ended with newer versions of the rows a node locks.
#[derive(Debug)]
pub struct Again {
    /// The registers of the locked rows.
    pub fresh: Vec<Reg>,
    /// Subqueries that PostgreSQL makes joins of: looked through first, with the rows' former
    /// versions at hand.
    pub matches: Vec<Match>,
    /// Gives one row, in the file it runs in, if the new versions qualify. None: they do.
    pub plan: Option<Plan>,
}

/// EXISTS or ANY as a condition: true as long as one of the rows that matched the former version
/// matches the new one.
#[derive(Debug)]
pub struct Match {
    /// Where the result goes.
    pub output: Reg,
    /// The subquery, run for the former version.
    pub subquery: Plan,
    /// ANY's comparison, which the former version met.
    pub comparison: Option<Expr>,
    /// Gives one row if the subquery's row matches the new version. None: it does.
    pub plan: Option<Plan>,
}

/// UPDATE.
#[derive(Debug)]
pub struct Update {
    /// The rows to change.
    pub input: Plan,
    /// The row.
    pub target: RowTarget,
    /// The plan that is evaluated again over a newer version of the row. None: nothing is.
    pub again: Option<Box<Again>>,
    /// The assignments, over the registers below.
    pub assignments: Vec<Assignment>,
    /// The first of the new row's registers.
    pub new_row: Reg,
    /// CHECK constraints over the new row's registers.
    pub checks: Vec<Check>,
    /// The columns of the new row that nodes above read.
    pub returned: Vec<u32>,
}

/// DELETE.
#[derive(Debug)]
pub struct Delete {
    /// The rows to delete.
    pub input: Plan,
    /// The row.
    pub target: RowTarget,
    /// As [`Update::again`].
    pub again: Option<Box<Again>>,
}

/// One table of FOR UPDATE and its kin.
#[derive(Debug)]
pub struct LockTarget {
    /// The row.
    pub target: RowTarget,
    /// How strongly.
    pub lock: txn::RowLock,
    /// The action if another session holds it.
    pub wait: txn::Wait,
}
