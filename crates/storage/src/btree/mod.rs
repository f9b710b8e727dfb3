//! The B+-tree: every table, index and catalog is one.
//!
//! What must hold:
//! - A tree is named by its number and its root page; the root page never changes (a root split copies its content down).
//! - Keys are compared byte by byte; a node covers the keys from its lower fence (included) to its upper fence (excluded).
//! - Readers take no latch and write nothing: they read through `RacyBytes`, and what they read counts only once the
//!   version of its page is validated. A child's version is read before its parent is validated.
//! - Writers latch the leaf alone. Structure changes latch parent, then left, then right node, then the space-map page,
//!   all by attempts that give up; page numbers, frames and log room are reserved before the first latch.
//! - Each change, of one leaf or of a structure, is one log record: applied as a whole or not at all.

use crate::log::TxnLink;
use crate::{Error, Lsn, PageNo, Store};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 1000;
/// The longest entry: key and value together, in bytes.
pub const MAX_ENTRY: usize = 2500;

/// A B+-tree: its number, its root page, and which of its entries may be dropped when room is short.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    /// The number stamped into each page of the tree.
    pub id: u32,
    /// The root page; it never changes.
    pub root: PageNo,
    /// Says of an entry's value that nobody can see the entry any more. Asked before a full leaf is split, under its
    /// latch: it may not park, latch or allocate.
    pub purge: Option<fn(&[u8]) -> bool>,
}

/// What an [`EntryChange`] decided.
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
    /// What to do, given the present value. May not park. May run again (after a split or a restart): no side effects.
    fn decide(&mut self, present: Option<&[u8]>) -> Action;
    /// For [`Action::Put`]: the new value's length (known after `decide`).
    fn value_len(&self) -> usize;
    /// Runs exactly once, room guaranteed, under the latch: writes the new value (`value_len` bytes; none for a removal)
    /// and gives the undo information and the link for the log record.
    fn apply(&mut self, present: Option<&[u8]>, value: &mut [u8], undo: &mut Vec<u8>) -> TxnLink;
    /// The position of the logged change, still under the latch.
    fn logged(&mut self, lsn: Lsn);
}

/// Where a key was found: lets a change of the same key skip the descent while the leaf is unchanged.
#[derive(Clone, Copy, Debug)]
pub struct LeafHint {
    page: PageNo,
    frame: u32,
    version: u64,
}

impl Tree {
    /// A handle on an existing tree.
    pub fn new(id: u32, root: PageNo) -> Tree {
        Tree { id, root, purge: None }
    }

    /// Makes an empty tree. `link` ties the record to the transaction that creates it; `undo` is what that transaction
    /// needs to take it back.
    pub fn create(store: &Store, id: u32, link: TxnLink, undo: &[u8]) -> Result<Tree, Error> {
        todo!()
    }

    /// Copies the value of `key` into `value` (cleared first); false when there is no such key.
    pub fn get_into(&self, store: &Store, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        todo!()
    }

    /// As [`Tree::get_into`], and gives the place for a [`Tree::change_at`] of the same key.
    pub fn get_hint(&self, store: &Store, key: &[u8], value: &mut Vec<u8>) -> Result<(bool, LeafHint), Error> {
        todo!()
    }

    /// Calls `read` with a validated private copy of the value of `key`; None when there is no such key.
    pub fn get<R>(&self, store: &Store, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, Error> {
        todo!()
    }

    /// Runs one change of the entry at `key`.
    pub fn change(&self, store: &Store, key: &[u8], change: &mut impl EntryChange) -> Result<(), Error> {
        todo!()
    }

    /// As [`Tree::change`], trying the leaf of `hint` first.
    pub fn change_at(
        &self,
        store: &Store,
        hint: LeafHint,
        key: &[u8],
        change: &mut impl EntryChange,
    ) -> Result<(), Error> {
        todo!()
    }

    /// All pages of the tree, for dropping it. Nobody may change the tree meanwhile.
    pub fn collect_pages(&self, store: &Store) -> Result<Vec<PageNo>, Error> {
        todo!()
    }

    /// The number of entries, dead ones included: a walk over all leaves.
    pub fn count(&self, store: &Store) -> Result<u64, Error> {
        todo!()
    }

    /// The number of pages: a walk over the inner nodes.
    pub fn pages(&self, store: &Store) -> Result<u64, Error> {
        todo!()
    }
}

/// A scan: copies whole leaves privately and yields entries from the copy. It stands in a gap between two entries.
pub struct Cursor {
    tree: Tree,
}

impl Cursor {
    /// A cursor before the first entry.
    pub fn new(tree: Tree) -> Cursor {
        Cursor { tree }
    }

    /// Moves to the gap before the first entry whose key is `key` or greater.
    pub fn seek(&mut self, store: &Store, key: &[u8]) -> Result<(), Error> {
        todo!()
    }

    /// Moves to the gap after the last entry whose key is `key` or less.
    pub fn seek_after(&mut self, store: &Store, key: &[u8]) -> Result<(), Error> {
        todo!()
    }

    /// Moves to the gap after the last entry.
    pub fn seek_end(&mut self, store: &Store) -> Result<(), Error> {
        todo!()
    }

    /// The entry after the gap, moving past it.
    pub fn next(&mut self, store: &Store) -> Result<Option<(&[u8], &[u8])>, Error> {
        todo!()
    }

    /// The entry before the gap, moving before it.
    pub fn prev(&mut self, store: &Store) -> Result<Option<(&[u8], &[u8])>, Error> {
        todo!()
    }
}
