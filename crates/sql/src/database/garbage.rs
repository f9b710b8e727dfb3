//! Trees nobody refers to.
//!
//! 1. A new tree is entered as made by a transaction of its own; the transaction that creates the object enters it as
//!    claimed. So after a rollback, or a crash, it is made and not claimed: garbage.
//! 2. A dropped tree is entered as such by the transaction that drops it.
//! 3. After every transaction with such changes, and at start, garbage is freed and the lists are cleaned. A tree whose
//!    creation is in progress is in a busy set in memory, which keeps it.
//!
//! A tree goes off the lists before its pages are freed: a crash in between leaks them, and never frees a page twice.

use std::sync::Arc;

use storage::PageNo;
use storage::btree::Tree;
use storage::log::TxnLink;
use txn::TxnSession;

use super::{Shared, system};
use crate::catalog::TreeAddress;
use crate::error::SqlError;
use crate::exec::{from_storage, tree};

impl Shared {
    /// Makes a tree for an object that `txn` creates. The caller keeps it from being collected until the transaction
    /// has ended ([`Shared::trees_settled`]).
    pub(crate) fn create_tree(&self, txn: &TxnSession) -> Result<TreeAddress, SqlError> {
        let id = self.new_tree_id();
        self.busy_trees.lock().insert(id);
        let store = self.engine.store();
        let (made, _) = Tree::create(store, id, TxnLink::NONE, &[]).map_err(|error| from_storage(&error))?;
        let address = TreeAddress { id, root: made.root.0 };
        let root = address.root.to_le_bytes();
        self.internal(|own| system::put(own, system::MADE, &id.to_be_bytes(), Some(&root)))?;
        system::put(txn, system::CLAIMED, &id.to_be_bytes(), Some(&[]))?;
        Ok(address)
    }

    /// Lists a tree that `txn` drops.
    pub(crate) fn drop_tree(&self, txn: &TxnSession, address: TreeAddress) -> Result<(), SqlError> {
        let root = address.root.to_le_bytes();
        system::put(txn, system::DROPPED, &address.id.to_be_bytes(), Some(&root))
    }

    /// The transaction that created or dropped these trees has ended: what is garbage now is freed.
    pub(crate) fn trees_settled(self: &Arc<Shared>, created: &[TreeAddress]) {
        {
            let mut busy = self.busy_trees.lock();
            for address in created {
                busy.remove(&address.id);
            }
        }
        collect_in_background(self);
    }

    /// Frees what is garbage and cleans the lists.
    fn collect(&self) -> Result<(), SqlError> {
        let listed = self.internal(|txn| {
            let mut listed = system::list(txn, system::MADE, &[])?;
            listed.extend(system::list(txn, system::DROPPED, &[])?);
            Ok(listed)
        })?;
        for (key, root) in &listed {
            let (Some(id), Some(root)) = (key.first_chunk(), root.first_chunk()) else { continue };
            let address = TreeAddress { id: u32::from_be_bytes(*id), root: u32::from_le_bytes(*root) };
            if self.busy_trees.lock().insert(address.id) {
                let done = self.settle(address);
                self.busy_trees.lock().remove(&address.id);
                done?;
            }
        }
        Ok(())
    }

    /// Takes a tree off the lists, and frees it when it is garbage. The lists are read again now that nobody else may
    /// settle it: its creation may have been committed, or it may have been freed, in the meantime.
    fn settle(&self, address: TreeAddress) -> Result<(), SqlError> {
        let key = address.id.to_be_bytes();
        let (made, claimed, dropped) = self.internal(|txn| {
            let has = |area| system::get(txn, area, &key).map(|value| value.is_some());
            Ok((has(system::MADE)?, has(system::CLAIMED)?, has(system::DROPPED)?))
        })?;
        if !made && !dropped {
            return Ok(());
        }
        let store = self.engine.store();
        let pages: Vec<PageNo> = match dropped || !claimed {
            true => tree(address).collect_pages(store).map_err(|error| from_storage(&error))?,
            false => Vec::new(),
        };
        self.internal(|txn| {
            for area in [system::MADE, system::CLAIMED, system::DROPPED] {
                system::put(txn, area, &key, None)?;
            }
            Ok(())
        })?;
        store.space.free(&pages).map_err(|error| from_storage(&error))
    }
}

/// Frees listed trees on a fiber of its own.
pub(super) fn collect_in_background(shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    runtime::fiber::spawn_local(move || {
        if let Err(error) = shared.collect() {
            log::warn!("dropped trees are not freed yet: {error}");
        }
    });
}
