//! The engine: what all sessions share.
#![allow(unused_variables, dead_code)]

use std::sync::Arc;

use storage::Store;
use storage::btree::Tree;

use crate::{Error, TxnSession};

/// Transactions on one store. One engine for each runtime.
pub struct Engine {
    store: Arc<Store>,
}

/// A lock held or awaited, for `pg_locks`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockInfo {
    /// The session.
    pub session: u32,
}

impl Engine {
    /// Begins to serve transactions on a store that has been recovered.
    pub fn open(store: Arc<Store>) -> Result<Arc<Engine>, Error> {
        todo!()
    }
    /// The store below.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }
    /// A new session, used on the core it is made on.
    pub fn session(self: &Arc<Self>) -> Result<TxnSession, Error> {
        todo!()
    }
    /// Removes the entries of `tree` that nobody can see any more; gives their number.
    pub fn vacuum(&self, tree: &Tree) -> Result<u64, Error> {
        todo!()
    }
    /// All locks held and awaited.
    pub fn locks(&self) -> Vec<LockInfo> {
        todo!()
    }
}
