//! Index entries of the rows that a DELETE deletes.
//!
//! The entries of the first rows are removed at once, so that a DELETE of few rows keeps nothing.
//! Those of later rows wait until all rows are deleted. Then each index loses its entries in the
//! order of their keys: neighbours lie in one leaf, which is walked to once.
//!
//! What must hold:
//!
//! 1. Until its entry is removed, a deleted row of a running transaction has an entry. A reader
//!    finds the row deleted or, in an older snapshot, there. A writer of the same unique key waits
//!    for the transaction, as it would at a removed entry.
//! 2. The entries are gone before the statement's referential checks and actions run.

use super::keys::tree;
use super::{Executor, from_txn};
use crate::spill::Sorter;
use catalog::{Index, Table};
use values::error::SqlError;

/// Rows whose entries are removed at once.
const AT_ONCE: usize = 16;

/// The entries of one statement's rows.
#[derive(Default)]
pub(super) struct Removals<'s> {
    rows: usize,
    /// The keys that wait, for each index.
    waiting: Vec<Sorter<'s>>,
}

impl<'s> Removals<'s> {
    /// Begins with the entries of another row. Returns whether they are to be removed at once.
    pub fn is_at_once(&mut self, cx: &Executor<'s>, table: &Table) -> bool {
        self.rows += 1;
        if self.rows > AT_ONCE && self.waiting.len() < table.indexes.len() {
            let memory = cx.work_mem() / table.indexes.len();
            self.waiting.resize_with(table.indexes.len(), || Sorter::new(cx.folder(), memory));
        }
        self.rows <= AT_ONCE
    }

    /// Notes an entry of the row in the index at this place.
    pub fn note(&mut self, index: usize, entry: &[u8]) -> Result<(), SqlError> {
        self.waiting[index].push(entry, |_| Ok(()))
    }

    /// Removes the entries that wait.
    pub fn finish(self, cx: &mut Executor<'s>, table: &Table) -> Result<(), SqlError> {
        for (index, waiting) in table.indexes.iter().zip(self.waiting) {
            let mut sorted = waiting.finish()?;
            while let Some((entry, _)) = sorted.next()? {
                cx.check()?;
                remove(cx, index, entry)?;
            }
        }
        Ok(())
    }
}

/// Removes an entry from an index.
pub(super) fn remove(cx: &Executor<'_>, index: &Index, entry: &[u8]) -> Result<(), SqlError> {
    cx.txn.remove_entry(&tree(index.tree), entry).map_err(from_txn)
}
