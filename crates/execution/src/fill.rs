//! A new tree filled in bulk with entries that come in any order.
//!
//! Entries are sorted first, within `maintenance_work_mem` and in temporary pages beyond it. If the
//! first MiB of entries came in ascending order, they are loaded into the tree at once, and later
//! entries behind them. An entry that then comes out of order goes to the sorter. The end of the
//! filling inserts those entries in the ordinary way.
//!
//! The tree must be as [`txn::Load`] asks. Two entries with the same key end the filling:
//! [`Broken::Duplicate`].

use txn::trees::Tree;
use txn::{Folder, InsertOutcome, Load, Loaded};

use super::{Executor, from_txn};
use crate::spill::Sorter;
use values::error::SqlError;
use values::work;

/// Bytes of entries to watch before the filling concludes that they come in order.
const PROBE: usize = 1 << 20;

/// Why filling ended early.
pub(super) enum Broken {
    /// Two entries have the same key. This is the payload of one of them.
    Duplicate(Vec<u8>),
    /// Something else.
    Error(SqlError),
}

impl From<SqlError> for Broken {
    fn from(error: SqlError) -> Broken {
        Broken::Error(error)
    }
}

/// A tree being filled.
pub(super) struct TreeFill<'s> {
    tree: Tree,
    folder: &'s Folder,
    memory: usize,
    /// The load into the tree, once entries go there.
    load: Option<Load>,
    /// All other entries.
    sorter: Sorter<'s>,
    /// Bytes of the entries so far, whether they came in order, and the last key. Kept up to date
    /// only while the tree is empty.
    come: usize,
    ascending: bool,
    last: Vec<u8>,
}

impl<'s> TreeFill<'s> {
    /// Fills this tree.
    pub fn new(cx: &Executor<'s>, tree: Tree) -> TreeFill<'s> {
        let (folder, memory) = (cx.folder(), cx.session.maintenance_work_mem());
        let sorter = Sorter::new(folder, memory);
        TreeFill { tree, folder, memory, load: None, sorter, come: 0, ascending: true, last: Vec::new() }
    }

    /// Takes an entry.
    pub fn add(&mut self, cx: &mut Executor<'s>, key: &[u8], payload: &[u8]) -> Result<(), Broken> {
        if let Some(load) = &mut self.load {
            match load.push(cx.txn, key, payload).map_err(from_txn)? {
                Loaded::Done => return Ok(()),
                Loaded::Duplicate => return Err(Broken::Duplicate(payload.to_vec())),
                Loaded::OutOfOrder => {}
            }
        }
        self.sorter.push(key, |to| work::put(payload, to))?;
        if self.ascending && self.load.is_none() {
            self.ascending = self.come == 0 || self.last.as_slice() < key;
            self.last.clear();
            self.last.extend_from_slice(key);
            self.come += key.len() + payload.len();
            if self.ascending && self.come >= PROBE {
                self.load = Some(self.load(cx)?);
            }
        }
        Ok(())
    }

    /// All entries have come.
    pub fn finish(mut self, cx: &mut Executor<'s>) -> Result<(), Broken> {
        let Some(load) = self.load.take() else {
            let load = self.load(cx)?;
            return Ok(load.finish(cx.txn).map_err(from_txn)?);
        };
        load.finish(cx.txn).map_err(from_txn)?;
        let mut late = self.sorter.finish()?;
        while let Some((key, payload)) = late.next()? {
            cx.check()?;
            if cx.txn.insert(&self.tree, key, payload).map_err(from_txn)? == InsertOutcome::Duplicate {
                return Err(Broken::Duplicate(payload.to_vec()));
            }
        }
        Ok(())
    }

    /// Begins to load the tree, with what has been sorted.
    fn load(&mut self, cx: &mut Executor<'s>) -> Result<Load, Broken> {
        let sorter = std::mem::replace(&mut self.sorter, Sorter::new(self.folder, self.memory));
        let mut sorted = sorter.finish()?;
        let load = cx.txn.load(&self.tree).map_err(from_txn)?;
        let mut load = load.ok_or_else(|| SqlError::internal("a new tree that is not empty"))?;
        while let Some((key, payload)) = sorted.next()? {
            cx.check()?;
            match load.push(cx.txn, key, payload).map_err(from_txn)? {
                Loaded::Done => {}
                Loaded::Duplicate => return Err(Broken::Duplicate(payload.to_vec())),
                Loaded::OutOfOrder => return Err(SqlError::internal("sorted entries out of order").into()),
            }
        }
        Ok(load)
    }
}
