//! The B+-tree: every table, index and catalog is one.
//!
//! What must hold:
//! - A tree is named by its number and its root page. The root page never changes: a root split
//!   copies its content down.
//! - Keys compare byte by byte. A node covers the keys from its lower fence (included) to its upper
//!   fence (excluded).
//! - Readers take no latch and write nothing. They read through `RacyBytes`, and a result counts
//!   only once the page's version is validated. A child's version is read before its parent is
//!   validated.
//! - Writers latch the leaf alone. Structure changes latch the parent, then the left node, then the
//!   right one, then the space map's page. Each latch is an attempt that may give up. Page numbers,
//!   frames and log room are reserved before the first latch.
//! - Each change, of one leaf or of a structure, is one log record: applied as a whole or not at
//!   all.
//!
//! `crate::node` reads and changes one page. The files here, from below: `descend` (the way to a
//! node), `lookup`, `cursor`, `near`, `change`, `split`, `merge`, `build`, `walk`, `sample`,
//! `check`.

mod build;
mod change;
mod check;
mod cursor;
mod descend;
mod logged;
mod lookup;
mod merge;
mod near;
mod reserve;
mod sample;
mod split;
mod walk;

#[cfg(test)]
mod tests;

pub use build::{Builder, Pushed};
pub use change::unchanged_ends;
pub(crate) use check::space as checked_space;
pub use check::{Problem, Report};
pub use cursor::{Cursor, Entry};
pub(crate) use lookup::read_value;
pub use near::Near;
pub use sample::{Drawn, Size};
pub use walk::Statistics;

use crate::log::{Share, TxnLink};
pub use crate::node::MAX_KEY;
use crate::node::buffer::PageBuffer;
use crate::node::edit::{self, Fences};
use crate::node::redo::{NodePayload, install, op};
use crate::page::PageKind;
use crate::space::{OP_MAP_SET, SYSTEM_ROOT};
use crate::{Error, Lsn, PageNo, Store};
use descend::Stop;

/// The longest entry: key and value together, in bytes.
pub const MAX_ENTRY: usize = 2500;

/// A B+-tree: its number, its root page, and which of its entries a full leaf may drop.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    /// The number stamped into each page of the tree.
    pub id: u32,
    /// The root page; it never changes.
    pub root: PageNo,
    /// Whether nobody can see the entry with this value any more. The tree calls it under the latch
    /// of a full leaf, before a split. It may not park, latch or allocate.
    pub purge: Option<fn(&[u8]) -> bool>,
}

/// The decision of an [`EntryChange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Leave the entry as it is.
    None,
    /// Insert the entry or replace its value.
    Put,
    /// Remove the entry.
    Remove,
}

/// One write to one entry, decided under the leaf's exclusive latch.
pub trait EntryChange {
    /// Decides, given the present value. May not park. May run again after a split or a restart, so
    /// it has no side effects.
    fn decide(&mut self, present: Option<&[u8]>) -> Action;
    /// The new value's length for [`Action::Put`], known after `decide`.
    fn value_len(&self) -> usize;
    /// Runs exactly once, with room guaranteed, under the latch. Writes the new value into `value`:
    /// `value_len` zeroed bytes, none for a removal. Writes the undo information and returns the
    /// link for the log record.
    fn apply(&mut self, present: Option<&[u8]>, value: &mut [u8], undo: &mut Vec<u8>) -> TxnLink;
    /// Receives the position of the logged change, still under the latch.
    fn logged(&mut self, lsn: Lsn);
    /// Whether this change takes an earlier one back. Then it may use the log's reserve when the
    /// disk is full.
    fn compensates(&self) -> bool {
        false
    }
}

impl Tree {
    /// A handle on an existing tree.
    pub fn new(id: u32, root: PageNo) -> Tree {
        Tree { id, root, purge: None }
    }

    /// Makes an empty tree with a root page whose number the caller has claimed. So the caller can
    /// list the page before it is in use, and a crash loses no page. After an error the number is
    /// free again.
    pub fn create_at(store: &Store, id: u32, root: PageNo) -> Result<Tree, Error> {
        reserve::attempt_with(reserve::Reservation::of(store, root), 1, |reservation| {
            let mut maps = reserve::latch_maps(store, &store.pool, &[root])?;
            split::mark_used(store, &mut maps);
            make_root(store, id, root, &mut maps)?;
            reservation.used(1);
            Ok(Tree::new(id, root))
        })
    }

    /// Makes the store's first tree. Its root is the page that is in use from the start.
    pub fn create_first(store: &Store, id: u32) -> Result<Tree, Error> {
        reserve::attempt(store, Share::Ordinary, 1, |_| make_root(store, id, SYSTEM_ROOT, &mut []))?;
        Ok(Tree::new(id, SYSTEM_ROOT))
    }
}

/// Makes and logs the page of an empty tree.
fn make_root(store: &Store, id: u32, root: PageNo, maps: &mut [reserve::MapBits<'_>]) -> Result<(), Stop> {
    let mut body = PageBuffer::take();
    let corrupt = || Stop::Corrupt(root, "root can't be made");
    edit::init(&mut *body, 0, Fences::ALL).ok_or_else(corrupt)?;
    let payload = NodePayload::of(&body, root, id).ok_or_else(corrupt)?;
    let mut page = store.pool.create(root, PageKind::Leaf, id, 0);
    install(&body, page.bytes_mut()).ok_or_else(corrupt)?;
    let mut record = store.wal.change();
    record.new_page(&mut page, op::NODE, &payload.pieces());
    for map in maps {
        record.page(&mut map.map, OP_MAP_SET, &[&map.bits]);
    }
    record.commit(TxnLink::NONE);
    Ok(())
}
