//! Garbage collection of trees that no definition names.
//!
//! 1. A transaction of its own lists a new tree as made. The transaction that creates the object
//!    lists it as claimed. So after a rollback or a crash, the tree is made and not claimed:
//!    garbage.
//! 2. The transaction that drops a tree lists it as dropped.
//! 3. After every transaction with such changes, and at start, a fiber frees garbage and cleans the
//!    lists. A busy set in memory keeps a tree whose creation is in progress.
//!
//! What must hold, so that a crash at any point neither loses a page nor frees one in use:
//!
//! - A tree is listed as made before its root page is in use. The page's number is claimed first;
//!   that is in memory alone.
//! - A tree is listed as being freed before its first page is freed, and leaves the lists after its
//!   last one. A page is freed after the pages below it, the root last. So the rest can be found
//!   from the root. A page found that way is freed only if the tree still uses it.
//!
//! A tree with a damaged inner page cannot be freed, because the pages below that page are unknown.
//! It stays on its list and its pages stay in use, which only costs their space. The server logs it
//! once after each start, and `allcore check` names it.

use std::sync::Arc;
use std::time::Duration;

use runtime::hash::HashSet;
use runtime::stop;
use txn::{TxnSession, trees};

use super::{Shared, system};
use catalog::TreeAddress;
use execution::{from_storage, tree};
use values::error::{SqlError, SqlState};

/// Bytes of a root page's number in a list; one more says that freeing has begun.
const ROOT_BYTES: usize = 4;
/// The pause between two checks whether other collectors are done.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

impl Shared {
    /// Makes a tree for an object that `txn` creates. The caller keeps it from being collected
    /// until the transaction has ended ([`Shared::trees_settled`]).
    pub(crate) fn create_tree(&self, txn: &TxnSession) -> Result<TreeAddress, SqlError> {
        let id = self.new_tree_id();
        self.busy_trees.lock().insert(id);
        let made = self.make_tree(txn, id);
        if made.is_err() {
            // The pages that were made are garbage.
            self.busy_trees.lock().remove(&id);
        }
        made
    }

    fn make_tree(&self, txn: &TxnSession, id: u32) -> Result<TreeAddress, SqlError> {
        let folder = self.engine.folder();
        let root = trees::claim_root(folder).map_err(|error| from_storage(&error))?;
        let listed =
            self.internal(|own| system::put(own, system::MADE, &id.to_be_bytes(), Some(&root.to_le_bytes())));
        listed.inspect_err(|_| trees::unclaim_root(folder, root))?;
        stop::point("sql.tree.listed");
        trees::create(folder, id, root).map_err(|error| from_storage(&error))?;
        stop::point("sql.tree.made");
        system::put(txn, system::CLAIMED, &id.to_be_bytes(), Some(&[]))?;
        Ok(TreeAddress { id, root })
    }

    /// Lists a tree that `txn` drops.
    pub(crate) fn drop_tree(&self, txn: &TxnSession, address: TreeAddress) -> Result<(), SqlError> {
        let root = address.root.to_le_bytes();
        system::put(txn, system::DROPPED, &address.id.to_be_bytes(), Some(&root))
    }

    /// Frees the trees that are garbage now that the transaction that created or dropped them has
    /// ended.
    pub(crate) fn trees_settled(self: &Arc<Shared>, created: &[TreeAddress]) {
        {
            let mut busy = self.busy_trees.lock();
            for address in created {
                busy.remove(&address.id);
            }
        }
        collect_in_background(self);
    }

    /// Frees garbage and cleans the lists. A tree that cannot be freed does not stop the others.
    /// Returns the reason for each such tree.
    fn collect(&self) -> Result<Vec<SqlError>, SqlError> {
        let listed = self.internal(|txn| {
            let mut listed = system::list(txn, system::MADE, &[])?;
            listed.extend(system::list(txn, system::DROPPED, &[])?);
            Ok(listed)
        })?;
        let mut left = Vec::new();
        let mut looked_at = HashSet::default();
        for (key, root) in &listed {
            let (Some(id), Some(root)) = (key.first_chunk(), root.first_chunk()) else { continue };
            let address = TreeAddress { id: u32::from_be_bytes(*id), root: u32::from_le_bytes(*root) };
            if !looked_at.insert(address.id) {
                continue;
            }
            let damaged = self.damaged_trees.lock().get(&address.id).cloned();
            if let Some(why) = damaged {
                left.push(why);
                continue;
            }
            while self.busy_trees.lock().insert(address.id) {
                let done = self.settle(address);
                self.busy_trees.lock().remove(&address.id);
                match done.and_then(|()| self.is_dropped(address)) {
                    // A transaction that dropped the tree meanwhile found it busy, so this call
                    // looks at it once more.
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        left.push(self.cannot_free(address, &error));
                        break;
                    }
                }
            }
        }
        Ok(left)
    }

    /// The error for a tree that cannot be freed. A damaged tree is not tried again before the next
    /// start.
    fn cannot_free(&self, address: TreeAddress, error: &SqlError) -> SqlError {
        let (id, root) = (address.id, address.root);
        let words =
            format!("dropped tree {id} (root page {root}) cannot be freed, its pages stay in use: {error}");
        log::warn!("{words}");
        let why = SqlError::new(error.code, words);
        if error.code == SqlState::DATA_CORRUPTED {
            self.damaged_trees.lock().insert(id, why.clone());
        }
        why
    }

    fn is_dropped(&self, address: TreeAddress) -> Result<bool, SqlError> {
        self.internal(|txn| Ok(system::get(txn, system::DROPPED, &address.id.to_be_bytes())?.is_some()))
    }

    /// As [`Shared::collect`], but also waits for other collectors. For a check, while there is no
    /// session.
    pub(crate) fn collect_all(&self) -> Result<Vec<SqlError>, SqlError> {
        self.collect()?;
        while !self.busy_trees.lock().is_empty() {
            runtime::fiber::sleep(BUSY_PAUSE);
        }
        // Frees the rest, now that no other collector has a tree in hand.
        self.collect()
    }

    /// Takes a tree off the lists, and frees it if it is garbage. No other fiber handles this tree
    /// now, so it reads the lists again. The tree's creation may have been committed meanwhile, or
    /// it may have been freed.
    fn settle(&self, address: TreeAddress) -> Result<(), SqlError> {
        let key = address.id.to_be_bytes();
        let [made, claimed, dropped] = self.internal(|txn| {
            let get = |area| system::get(txn, area, &key);
            Ok([get(system::MADE)?, get(system::CLAIMED)?, get(system::DROPPED)?])
        })?;
        stop::point("sql.tree.maintenance");
        let garbage = dropped.is_some() || made.is_some() && claimed.is_none();
        if garbage {
            self.free(address, dropped.is_some_and(|value| value.len() > ROOT_BYTES))?;
        }
        self.internal(|txn| {
            for area in [system::MADE, system::CLAIMED] {
                system::put(txn, area, &key, None)?;
            }
            // For a tree in use, such an entry belongs to a transaction that is dropping it.
            if garbage {
                system::put(txn, system::DROPPED, &key, None)?;
            }
            Ok(())
        })
    }

    /// Frees a tree's pages. `begun`: an earlier call may have freed some of them.
    fn free(&self, address: TreeAddress, begun: bool) -> Result<(), SqlError> {
        let folder = self.engine.folder();
        let levels = trees::levels(folder, tree(address), begun).map_err(|error| from_storage(&error))?;
        if !begun {
            let mut value = address.root.to_le_bytes().to_vec();
            value.push(1);
            self.internal(|txn| system::put(txn, system::DROPPED, &address.id.to_be_bytes(), Some(&value)))?;
        }
        let freed = || stop::point("sql.tree.freed_part");
        levels.free(folder, freed).map_err(|error| from_storage(&error))?;
        self.row_numbers.forget(address.id);
        stop::point("sql.tree.freed");
        Ok(())
    }
}

/// Frees listed trees on a fiber of its own.
pub(crate) fn collect_in_background(shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    runtime::fiber::spawn_local(move || {
        // The log has a line of its own for each tree that cannot be freed.
        if let Err(error) = shared.collect() {
            log::warn!("dropped trees are not freed yet: {error}");
        }
    });
}
