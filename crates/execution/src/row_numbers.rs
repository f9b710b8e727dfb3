//! Numbers for rows of tables without a primary key, and for values out of line.
//!
//! What must hold: a number is given once, and each number of a tree is above all that the tree
//! held at its first use.

use std::cell::RefCell;

use catalog::TreeAddress;
use runtime::hash::HashMap;
use sync::{SpinLock, core_local};
use txn::{Folder, trees};
use values::error::SqlError;

use crate::error::from_txn;

/// Row numbers a core claims at a time.
const BATCH: u64 = 1024;
/// Trees for which a core may hold claimed numbers at a time.
const CLAIMS: usize = 4096;

core_local! {
    /// This core's claimed row numbers: next and end, by database folder and tree.
    static CLAIMED: RefCell<HashMap<(u64, u32), (u64, u64)>> = RefCell::default();
}

/// The row numbers of a folder's trees.
pub struct RowNumbers {
    /// Distinguishes the folders of one process in a core's claims.
    instance: u64,
    /// The next unclaimed row number of each tree in use.
    next: SpinLock<HashMap<u32, u64>>,
}

impl RowNumbers {
    /// The row numbers of a folder whose trees nobody has used yet. `instance` is the folder's own.
    #[must_use]
    pub fn new(instance: u64) -> RowNumbers {
        RowNumbers { instance, next: SpinLock::new(&"row numbers", HashMap::default()) }
    }

    /// The number of a new row, or of a new value, of a tree whose keys begin with such numbers (8
    /// bytes, big endian).
    pub fn take(&self, folder: &Folder, tree: TreeAddress) -> Result<u64, SqlError> {
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
            None => self.claim(folder, tree, key),
        }
    }

    #[cold]
    fn claim(&self, folder: &Folder, tree: TreeAddress, key: (u64, u32)) -> Result<u64, SqlError> {
        let known = self.next.lock().contains_key(&tree.id);
        // The first session to enter the tree in the map wins. Nobody inserts a row before that, so
        // every session reads the same last number.
        let first = if known { 0 } else { last_number(folder, tree)? + 1 };
        let start = {
            let mut numbers = self.next.lock();
            let next = numbers.entry(tree.id).or_insert(first);
            *next += BATCH;
            *next - BATCH
        };
        CLAIMED.with_borrow_mut(|claimed| {
            // Drops all claims: most may belong to dropped trees. The others leave at most 1,023
            // numbers a tree unused.
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

fn last_number(folder: &Folder, tree: TreeAddress) -> Result<u64, SqlError> {
    let last = trees::last_prefix(folder, crate::tree(tree)).map_err(|error| from_txn(error.into()))?;
    Ok(last.map_or(0, u64::from_be_bytes))
}
