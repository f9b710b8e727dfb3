//! The nodes that change or lock rows.
//!
//! A changed row is in registers. `new_row` is the first of as many consecutive registers as the
//! table has columns, dropped ones included. The executor fills them with the complete new row,
//! evaluates the checks over them and encodes them. It leaves them there for RETURNING. Old values
//! are in the registers of the scan below.

use std::sync::Arc;

use super::{ColumnRead, Plan, Reg, RowIdentity};
use catalog::Table;
use expressions::expr::Expr;

/// INSERT.
#[derive(Debug)]
pub struct Insert {
    /// The rows to insert.
    pub input: Plan,
    /// The table to insert into.
    pub table: Arc<Table>,
    /// One expression for each column of the table, over the input's registers: the statement's
    /// value, the default or NULL. Each is cast to the column's type and modifier.
    pub values: Vec<Expr>,
    /// The first of the new row's registers.
    pub new_row: Reg,
    /// CHECK constraints over the new row's registers.
    pub checks: Vec<Check>,
    /// ON CONFLICT.
    pub conflict: Option<OnConflict>,
    /// The new row's columns that nodes above read.
    pub returned: Vec<u32>,
}

/// A CHECK constraint.
#[derive(Debug)]
pub struct Check {
    /// Its name, for the message.
    pub name: String,
    /// The condition. The check fails if it is false; NULL passes.
    pub expr: Expr,
}

/// ON CONFLICT.
#[derive(Debug)]
pub struct OnConflict {
    /// The unique key that counts; None means any unique key (only with DO NOTHING).
    pub arbiter: Option<Arbiter>,
    /// DO UPDATE, or None for DO NOTHING.
    pub update: Option<ConflictUpdate>,
}

/// The unique key that ON CONFLICT names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arbiter {
    /// The primary key.
    PrimaryKey,
    /// A position in `table.indexes`.
    Index(usize),
}

/// DO UPDATE SET.
#[derive(Debug)]
pub struct ConflictUpdate {
    /// Registers of the existing row's columns. `excluded.*` is the insert's `new_row`.
    pub existing: Vec<ColumnRead>,
    /// WHERE.
    pub condition: Option<Expr>,
    /// The columns to set.
    pub assignments: Vec<Assignment>,
    /// The first of the updated row's registers. RETURNING reads the insert's `new_row`, so the
    /// executor copies the updated row there.
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

/// The row that a node changes or locks, with the columns to decode again if another transaction
/// has changed it since the read.
#[derive(Debug)]
pub struct RowTarget {
    /// Its table.
    pub table: Arc<Table>,
    /// The scan's registers that identify the row.
    pub identity: RowIdentity,
    /// The columns that any expression reads. They are decoded again from the newest version.
    pub columns: Vec<ColumnRead>,
}

/// The plan of the second look. It runs when a wait ended with newer versions of the rows that a
/// node locks.
#[derive(Debug)]
pub struct SecondLook {
    /// The registers of the locked rows.
    pub fresh: Vec<Reg>,
    /// Subqueries that PostgreSQL converts to joins. They run first, while the rows' former
    /// versions are still in the registers.
    pub matches: Vec<Match>,
    /// Returns one row, in the register file it runs in, if the new versions qualify. None: they
    /// always do.
    pub plan: Option<Plan>,
}

/// EXISTS or ANY as a condition. It is true while one of the rows that matched the former version
/// matches the new one.
#[derive(Debug)]
pub struct Match {
    /// The register of the result.
    pub output: Reg,
    /// The subquery, run for the former version.
    pub subquery: Plan,
    /// ANY's comparison, which the former version met.
    pub comparison: Option<Expr>,
    /// Returns one row if the subquery's row matches the new version. None: it always does.
    pub plan: Option<Plan>,
}

/// UPDATE.
#[derive(Debug)]
pub struct Update {
    /// The rows to change.
    pub input: Plan,
    /// The row to change.
    pub target: RowTarget,
    /// The plan of the second look over a newer version of the row. None if there is nothing to
    /// evaluate.
    pub second_look: Option<Box<SecondLook>>,
    /// The columns to set, over the registers below.
    pub assignments: Vec<Assignment>,
    /// The first of the new row's registers.
    pub new_row: Reg,
    /// CHECK constraints over the new row's registers.
    pub checks: Vec<Check>,
    /// The new row's columns that nodes above read.
    pub returned: Vec<u32>,
}

/// DELETE.
#[derive(Debug)]
pub struct Delete {
    /// The rows to delete.
    pub input: Plan,
    /// The row to delete.
    pub target: RowTarget,
    /// As [`Update::second_look`].
    pub second_look: Option<Box<SecondLook>>,
}

/// One table of FOR UPDATE or a weaker locking clause.
#[derive(Debug)]
pub struct LockTarget {
    /// The row to lock.
    pub target: RowTarget,
    /// The strength of the lock.
    pub lock: txn::RowLock,
    /// The behaviour if another transaction holds a conflicting lock.
    pub wait: txn::Wait,
}
