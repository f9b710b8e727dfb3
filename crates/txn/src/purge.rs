//! Dead entries: deletions that everybody sees. Dropped when a leaf is full, and by vacuum.

use std::cell::Cell;

use runtime::fiber;
use storage::btree::{Action, Cursor, EntryChange, Tree};
use storage::log::TxnLink;
use storage::{Lsn, Store};

use crate::Error;
use crate::version::Stamp;

thread_local! {
    /// The horizon of the engine that runs on this core, as of its last change. There is one engine for each runtime, and
    /// horizons only grow, so a stale value is safe.
    static HORIZON: Cell<u64> = const { Cell::new(0) };
}

/// Before a change of a tree whose purge hook is [`dead`].
#[inline]
pub fn set_horizon(horizon: u64) {
    HORIZON.set(horizon);
}

/// Whether nobody can see the entry any more.
pub fn dead(value: &[u8]) -> bool {
    is_dead(value, HORIZON.get())
}

fn is_dead(value: &[u8], horizon: u64) -> bool {
    Stamp::decode(value).is_some_and(|stamp| stamp.deleted && stamp.txid < horizon)
}

/// Removes an entry that is dead.
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

/// Entries looked at between two safe points.
const ENTRIES_BETWEEN: u64 = 64;

/// Removes all dead entries of `tree`; gives their number. Yields as it goes.
pub fn vacuum(store: &Store, tree: &Tree, horizon: u64) -> Result<u64, Error> {
    let mut cursor = Cursor::new(*tree);
    cursor.seek(store, &[])?;
    let (mut removed, mut seen) = (0, 0_u64);
    let mut key = Vec::new();
    while let Some((found, value)) = cursor.next(store)? {
        if is_dead(value, horizon) {
            key.clear();
            key.extend_from_slice(found);
            let mut purge = Purge { horizon, removed: false };
            tree.change(store, &key, &mut purge)?;
            removed += u64::from(purge.removed);
        }
        seen += 1;
        if seen.is_multiple_of(ENTRIES_BETWEEN) {
            runtime::interrupt::check()?;
            fiber::safe_point();
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::UndoPointer;

    #[test]
    fn only_deletions_below_the_horizon_are_dead() {
        let value = |txid, deleted| Stamp { txid, undo: UndoPointer::NONE, command: 0, deleted }.encode();
        set_horizon(100);
        assert!(dead(&value(99, true)));
        assert!(!dead(&value(100, true)) && !dead(&value(99, false)) && !dead(&[]));
    }
}
