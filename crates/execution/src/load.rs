//! Bulk storage of the rows of one INSERT or COPY into a table whose tree is new.
//!
//! The tree must be as [`txn::Load`] asks: made by this transaction since its last savepoint (the
//! session says which are, [`Executor::fresh`]), and empty. Only the statement's own INSERT changes
//! it then. No reader sees any of the statement's rows meanwhile, bulk or not. The foreign keys'
//! work at the statement's end comes after the load. From the first key that is not above the
//! previous one, rows are inserted in the ordinary way.

use txn::trees::Tree;
use txn::{InsertOutcome, Load, Loaded, TxnSession};

use super::keys::table_tree;
use super::{Executor, from_txn};
use catalog::{Table, TreeAddress};
use query::plan::{Insert, Operator, Plan};
use values::error::SqlError;

/// A table's tree being filled by the statement.
pub(super) struct TableLoad {
    tree: TreeAddress,
    /// None once a key was out of order.
    load: Option<Load>,
}

/// The INSERT that a query is, if it is one.
pub(super) fn insert_of(root: &Plan) -> Option<&Insert> {
    match &root.operator {
        Operator::Insert(insert) => Some(insert),
        Operator::Project { input, .. } => insert_of(input),
        _ => None,
    }
}

/// Whether a plan gives one row: not worth a load.
fn single(plan: &Plan) -> bool {
    match &plan.operator {
        Operator::OneRow => true,
        Operator::Project { input, .. } => single(input),
        _ => false,
    }
}

/// Before a query runs: it may be the INSERT of many rows into a new table.
pub(super) fn begin_query(cx: &mut Executor<'_>, root: &Plan) -> Result<(), SqlError> {
    match insert_of(root).filter(|insert| !single(&insert.input)) {
        Some(insert) => begin(cx, insert),
        None => Ok(()),
    }
}

/// Before many rows are inserted: they are stored in bulk if the table allows it.
pub(super) fn begin(cx: &mut Executor<'_>, insert: &Insert) -> Result<(), SqlError> {
    let tree = insert.table.tree;
    if insert.conflict.is_none() && cx.fresh.contains(&tree) {
        let load = cx.txn.load(&table_tree(&insert.table)).map_err(from_txn)?;
        cx.load = load.map(|load| TableLoad { tree, load: Some(load) });
    }
    Ok(())
}

/// Stores a row's bytes in its table.
#[inline]
pub(super) fn insert(
    cx: &mut Executor<'_>,
    table: &Table,
    key: &[u8],
    row: &[u8],
) -> Result<InsertOutcome, SqlError> {
    let done = match &mut cx.load {
        Some(load) if load.tree == table.tree => load.insert(cx.txn, &table_tree(table), key, row),
        _ => cx.txn.insert(&table_tree(table), key, row),
    };
    done.map_err(from_txn)
}

impl TableLoad {
    fn insert(
        &mut self,
        txn: &TxnSession,
        tree: &Tree,
        key: &[u8],
        row: &[u8],
    ) -> Result<InsertOutcome, txn::Error> {
        if let Some(load) = &mut self.load {
            match load.push(txn, key, row)? {
                Loaded::Done => return Ok(InsertOutcome::Done),
                Loaded::Duplicate => return Ok(InsertOutcome::Duplicate),
                Loaded::OutOfOrder => {}
            }
        }
        if let Some(load) = self.load.take() {
            load.finish(txn)?;
        }
        txn.insert(tree, key, row)
    }

    /// All rows have come.
    pub fn finish(self, txn: &TxnSession) -> Result<(), SqlError> {
        match self.load {
            Some(load) => load.finish(txn).map_err(from_txn),
            None => Ok(()),
        }
    }
}
