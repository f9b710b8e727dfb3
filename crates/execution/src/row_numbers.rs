//! Numbers of rows in tables without a primary key, and of values out of line: they only go up.

use std::cell::RefCell;

use catalog::TreeAddress;
use runtime::hash::HashMap;
use sync::{SpinLock, core_local};
use txn::{Store, trees};
use values::error::SqlError;

use crate::error::from_txn;

/// Row numbers a core claims at a time.
const BATCH: u64 = 1024;
/// Trees of whose numbers a core has some claimed at a time.
const CLAIMS: usize = 4096;

core_local! {
    /// This core's claimed row numbers: next and end, by database folder and tree.
    static CLAIMED: RefCell<HashMap<(u64, u32), (u64, u64)>> = RefCell::default();
}

/// The row numbers of a folder's trees.
pub struct RowNumbers {
    /// Tells folders of one process apart in a core's claims.
    instance: u64,
    /// The next unclaimed row number of each tree in use.
    next: SpinLock<HashMap<u32, u64>>,
}

impl RowNumbers {
    /// The row numbers of a folder whose trees nobody has used yet. `instance` is the folder's own.
    #[must_use]
    pub fn new(instance: u64) -> RowNumbers {
        RowNumbers { instance, next: SpinLock::new(HashMap::default()) }
    }

    /// The number of a new row, or of a new value, of a tree whose keys begin with such numbers (8
    /// bytes, big endian).
    pub fn take(&self, store: &Store, tree: TreeAddress) -> Result<u64, SqlError> {
        let key = (self.instance, tree.id);
        let claimed = CLAIMED.with_borrow_mut(|claimed| {
            let (next, end) = claimed.get_mut(&key)?;
            (*next < *end).then(|| {
                *next += 1;
                *next - 1
            })
        });
        match claimed {
            Some(number) => Ok(number),
            None => self.claim(store, tree, key),
        }
    }

    #[cold]
    fn claim(&self, store: &Store, tree: TreeAddress, key: (u64, u32)) -> Result<u64, SqlError> {
        let known = self.next.lock().contains_key(&tree.id);
        // The first to publish wins: nobody has inserted a row before its tree is in the map.
        let first = if known { 0 } else { last_number(store, tree)? + 1 };
        let start = {
            let mut numbers = self.next.lock();
            let next = numbers.entry(tree.id).or_insert(first);
            *next += BATCH;
            *next - BATCH
        };
        CLAIMED.with_borrow_mut(|claimed| {
            // Most may be of trees that are gone; of the others some numbers stay unused.
            if claimed.len() >= CLAIMS {
                claimed.clear();
            }
            claimed.insert(key, (start + 1, start + BATCH))
        });
        Ok(start)
    }

    /// Forgets the numbers of a tree that is gone.
    pub fn forget(&self, tree: u32) {
        self.next.lock().remove(&tree);
    }
}

fn last_number(store: &Store, tree: TreeAddress) -> Result<u64, SqlError> {
    let last = trees::last_prefix(store, crate::tree(tree)).map_err(|error| from_txn(error.into()))?;
    Ok(last.map_or(0, u64::from_be_bytes))
}
