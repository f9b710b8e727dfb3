//! Dead entries: deletions that everybody sees. A full leaf drops its dead entries, and so does
//! vacuum.
//!
//! Each core counts deletions by tree, for the task that chooses trees to vacuum. A deletion that
//! is taken back stays counted.

use std::cell::{Cell, RefCell};

use hashbrown::HashTable;
use runtime::{core_local, fiber};
use storage::Lsn;
use storage::btree::{Action, Cursor, EntryChange, Tree};
use storage::log::TxnLink;

use crate::version::Stamp;
use crate::{Engine, Error};

core_local! {
    /// The horizon of the engine that runs on this core, as of its last change. Each runtime has
    /// one engine, and horizons only grow, so a stale value is safe.
    static HORIZON: Cell<u64> = const { Cell::new(0) };

    /// Deletions on this core that [`take_deletions`] has not returned yet: tree and number.
    static DELETIONS: RefCell<HashTable<(u32, u64)>> = const { RefCell::new(HashTable::new()) };
}

fn spread(tree: u32) -> u64 {
    u64::from(tree).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Counts an entry of the tree that was marked as deleted.
#[inline]
pub(crate) fn count_deletion(tree: u32) {
    DELETIONS.with_borrow_mut(|counts| {
        let place = counts.entry(spread(tree), |count| count.0 == tree, |count| spread(count.0));
        place.or_insert((tree, 0)).into_mut().1 += 1;
    });
}

/// Tree and number of the deletions that this core has counted since the last call.
pub fn take_deletions() -> Vec<(u32, u64)> {
    DELETIONS.with_borrow_mut(|counts| counts.drain().collect())
}

/// Sets this core's horizon. Call it before a change of a tree whose purge hook is [`dead`].
#[inline]
pub fn set_horizon(horizon: u64) {
    HORIZON.set(horizon);
}

/// Whether no snapshot can see the entry any more.
pub fn dead(value: &[u8]) -> bool {
    is_dead(value, HORIZON.get())
}

fn is_dead(value: &[u8], horizon: u64) -> bool {
    Stamp::decode(value).is_some_and(|stamp| stamp.deleted && stamp.txid < horizon)
}

/// The change that removes a dead entry.
struct Purge {
    horizon: u64,
    removed: bool,
}

impl EntryChange for Purge {
    fn decide(&mut self, present: Option<&[u8]>) -> Action {
        match present {
            Some(value) if is_dead(value, self.horizon) => Action::Remove,
            _ => Action::None,
        }
    }

    fn value_len(&self) -> usize {
        0
    }

    fn apply(&mut self, _present: Option<&[u8]>, _value: &mut [u8], _undo: &mut Vec<u8>) -> TxnLink {
        TxnLink::NONE
    }

    fn logged(&mut self, _lsn: Lsn) {
        self.removed = true;
    }
}

/// Entries that a vacuum visits before it reads the horizon again.
const VACUUM_STEP: u64 = 4096;
/// Entries visited between two safe points.
const ENTRIES_BETWEEN: u64 = 64;

/// A vacuum of a tree, in steps. Between two steps it holds nothing of the tree.
pub struct Vacuum {
    cursor: Cursor,
    key: Vec<u8>,
    seen: u64,
    removed: u64,
    left: u64,
    newest: u64,
}

impl Vacuum {
    /// A vacuum that begins at the first entry.
    pub fn new(tree: &Tree) -> Vacuum {
        Vacuum { cursor: Cursor::new(*tree), key: Vec::new(), seen: 0, removed: 0, left: 0, newest: 0 }
    }

    /// Visits this many entries more and removes the dead ones. False at the end of the tree.
    /// Yields as it goes.
    pub fn step(&mut self, engine: &Engine, entries: u64) -> Result<bool, Error> {
        let (store, horizon, tree) = (engine.store(), engine.horizon(), self.cursor.tree());
        for _ in 0..entries {
            let Some((found, value)) = self.cursor.next(store)? else { return Ok(false) };
            self.seen += 1;
            if let Some(stamp) = Stamp::decode(value).filter(|stamp| stamp.deleted) {
                let mut purge = Purge { horizon, removed: false };
                if stamp.txid < horizon {
                    self.key.clear();
                    self.key.extend_from_slice(found);
                    tree.change(store, &self.key, &mut purge)?;
                }
                if purge.removed {
                    self.removed += 1;
                } else {
                    self.left += 1;
                    self.newest = self.newest.max(stamp.txid);
                }
            }
            if self.seen.is_multiple_of(ENTRIES_BETWEEN) {
                runtime::interrupt::check()?;
                fiber::safe_point();
            }
        }
        Ok(true)
    }

    /// Number of entries removed.
    pub fn removed(&self) -> u64 {
        self.removed
    }

    /// Number of entries visited and not removed.
    pub fn kept(&self) -> u64 {
        self.seen - self.removed
    }

    /// Number of deleted entries that stay because a snapshot may still see them, and the horizon
    /// from which on none does.
    pub fn left(&self) -> (u64, u64) {
        (self.left, self.newest + 1)
    }
}

impl Engine {
    /// Removes the entries of `tree` that no snapshot can see any more, and returns their number.
    pub fn vacuum(&self, tree: &Tree) -> Result<u64, Error> {
        let mut vacuum = Vacuum::new(tree);
        while vacuum.step(self, VACUUM_STEP)? {}
        Ok(vacuum.removed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::UndoPointer;

    #[test]
    fn only_deletions_below_the_horizon_are_dead() {
        let stamp = Stamp { txid: 0, undo: UndoPointer::NONE, command: 0, keys: false, deleted: false };
        let value = |txid, deleted| Stamp { txid, deleted, ..stamp }.encode();
        set_horizon(100);
        assert!(dead(&value(99, true)));
        assert!(!dead(&value(100, true)) && !dead(&value(99, false)) && !dead(&[]));
    }
}
