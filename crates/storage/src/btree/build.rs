//! Bulk building: entries in ascending order fill an empty tree that nobody else changes, leaf by
//! leaf.
//!
//! The builder collects entries outside the tree until they fill a leaf. Meanwhile the tree's last
//! leaf is empty. When a leaf is full and the next key is known, one change gives the last leaf all
//! its entries and its upper fence. The same change makes the next empty leaf behind it. So each
//! page is logged once, as a whole, without undo of its entries. What must hold:
//!
//! - The tree is sound after each change: it has some of the entries, and the root reaches every
//!   page. A crash in the middle leaves a tree like any other. The undo of the tree's creation
//!   drops it with all its pages.
//! - Nothing takes single entries back: the undo of a build drops the tree.
//! - All entries are in the tree once [`Builder::finish`] has returned. Before that, the entries
//!   collected last are not.
//!
//! Separators fill inner nodes in the ordinary way. Such a node splits at its end, which leaves it
//! full.

use runtime::stop;

use super::descend::{Aim, Place, Stop, descend};
use super::reserve::{Reservation, attempt, latch_maps};
use super::split::{self, Halves, make_room_at};
use super::{MAX_ENTRY, MAX_KEY, Tree};
use crate::log::{Share, TxnLink};
use crate::node::buffer::PageBuffer;
use crate::node::edit::{self, Fences, lone_prefix, stored_prefix};
use crate::node::redo::{NodePayload, install, op};
use crate::node::shape::{Cut, shortest_between};
use crate::node::{CAPACITY, KeyBuffer, Node, SLOT, common};
use crate::page::PageKind;
use crate::space::OP_MAP_SET;
use crate::{Error, PageMut, Store};

/// Bytes kept for collected keys and values: a leaf, and keys whose shared part the leaf stores
/// once.
const COLLECTED: usize = 12 << 10;

/// The outcome of an entry offered to a [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The builder took the entry.
    Done,
    /// The builder refused the entry: the last one has the same key.
    Equal,
    /// The builder refused the entry: its key is below the last one's.
    Below,
}

/// An entry waiting for its leaf: where its key begins, where its payload begins (value length u16,
/// value), and where it ends.
#[derive(Clone, Copy)]
struct Waiting {
    key: u32,
    payload: u32,
    end: u32,
}

/// Fills an empty tree.
pub struct Builder {
    tree: Tree,
    /// The lower fence of the tree's last leaf.
    lower: Vec<u8>,
    /// Keys and payloads of the entries collected for that leaf.
    bytes: Vec<u8>,
    entries: Vec<Waiting>,
    /// The prefix that all collected keys share, or a part of it.
    prefix: usize,
    /// Whether the root is still the last leaf.
    low: bool,
}

impl Builder {
    /// Begins to fill a tree; None when it has entries. Nobody else may change the tree until the
    /// builder has finished.
    pub fn new(store: &Store, tree: Tree) -> Result<Option<Builder>, Error> {
        let root = super::check::read(store, tree.root)?;
        let node = Node::of(&*root);
        let empty = node.is_leaf().zip(node.count()).map(|(leaf, count)| leaf && count == 0);
        let empty = empty.ok_or(Error::Corrupt { page: tree.root, what: "not the root of its tree" })?;
        Ok(empty.then(|| Builder {
            tree,
            lower: Vec::new(),
            bytes: Vec::with_capacity(COLLECTED),
            entries: Vec::new(),
            prefix: 0,
            low: true,
        }))
    }

    /// The tree that the builder fills.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Takes an entry above the last one. Its value is `head` followed by `rest`. Parks when a leaf
    /// is full.
    pub fn push(&mut self, store: &Store, key: &[u8], head: &[u8], rest: &[u8]) -> Result<Pushed, Error> {
        let len = head.len() + rest.len();
        if key.len() > MAX_KEY {
            return Err(Error::TooLarge { bytes: key.len(), limit: MAX_KEY });
        }
        if key.len() + len > MAX_ENTRY {
            return Err(Error::TooLarge { bytes: key.len() + len, limit: MAX_ENTRY });
        }
        if let Some(last) = self.entries.last() {
            match self.key(*last).cmp(key) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(Pushed::Equal),
                std::cmp::Ordering::Greater => return Ok(Pushed::Below),
            }
        }
        let mut prefix = self.prefix_with(key);
        if !self.fits(prefix, key.len(), len) {
            self.append(store, key)?;
            prefix = self.prefix_with(key);
        }
        self.prefix = prefix;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(&(len as u16).to_le_bytes());
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(rest);
        let (payload, end) = (start + key.len(), self.bytes.len());
        self.entries.push(Waiting { key: start as u32, payload: payload as u32, end: end as u32 });
        Ok(Pushed::Done)
    }

    /// Puts the entries collected last into the tree.
    pub fn finish(mut self, store: &Store) -> Result<(), Error> {
        if self.entries.is_empty() {
            return Ok(());
        }
        let body = self.leaf(None).ok_or_else(|| self.corrupt())?;
        attempt(store, Share::Ordinary, 0, |_| self.try_finish(store, &body))?;
        self.entries.clear();
        Ok(())
    }

    fn key(&self, entry: Waiting) -> &[u8] {
        &self.bytes[entry.key as usize..entry.payload as usize]
    }

    fn payload(&self, entry: Waiting) -> &[u8] {
        &self.bytes[entry.payload as usize..entry.end as usize]
    }

    /// The length of the prefix that the collected keys and this one share. Keys ascend, so all of
    /// them share what the first and the last share.
    fn prefix_with(&self, key: &[u8]) -> usize {
        match self.entries.first() {
            Some(first) => common(self.key(*first), key),
            None => lone_prefix(key),
        }
    }

    /// Whether a leaf has room for the collected entries and one more, whatever its upper fence
    /// will be. The fence is at most one byte longer than the key before it.
    fn fits(&self, prefix: usize, key_len: usize, value_len: usize) -> bool {
        let count = self.entries.len() + 1;
        let fences = self.lower.len() + (key_len + 1).min(MAX_KEY);
        let heap = self.bytes.len() + key_len + 2 + value_len - count * prefix + stored_prefix(prefix);
        fences + heap + count * SLOT <= CAPACITY
    }

    /// A leaf that holds the collected entries.
    fn leaf(&self, upper: Option<&[u8]>) -> Option<PageBuffer> {
        let first = self.key(*self.entries.first()?);
        let mut body = PageBuffer::take();
        edit::set_kind(&mut *body, 0);
        let fences = Fences { lower: &self.lower, upper };
        let mut node = edit::Builder::start(&mut *body, fences, &first[..self.prefix])?;
        for entry in &self.entries {
            node.push(self.key(*entry), self.payload(*entry))?.then_some(())?;
        }
        node.finish()?;
        Some(body)
    }

    fn corrupt(&self) -> Error {
        Error::Corrupt { page: self.tree.root, what: "entries that make no leaf" }
    }

    /// Gives the last leaf its entries, which lie below `next`, and makes an empty leaf behind it.
    fn append(&mut self, store: &Store, next: &[u8]) -> Result<(), Error> {
        let last = self.entries.last().and_then(|last| shortest_between(self.key(*last), next));
        let separator = last.ok_or_else(|| self.corrupt())?;
        let body = self.leaf(Some(separator.as_slice())).ok_or_else(|| self.corrupt())?;
        let pages = if self.low { 2 } else { 1 };
        while !attempt(store, Share::Ordinary, pages, |reservation| {
            self.try_append(store, reservation, &body, &separator)
        })? {
            make_room_at(&self.tree, store, Share::Ordinary, 1, separator.as_slice(), 4)?;
        }
        stop::point("btree.build.appended");
        self.low = false;
        self.lower.clear();
        self.lower.extend_from_slice(separator.as_slice());
        self.bytes.clear();
        self.entries.clear();
        Ok(())
    }

    /// As [`Builder::append`]; false when the parent has no room for the separator.
    fn try_append<'s>(
        &self,
        store: &'s Store,
        reservation: &mut Reservation<'s>,
        body: &PageBuffer,
        separator: &KeyBuffer,
    ) -> Result<bool, Stop> {
        let (parent, mut page) = self.last_leaf(store)?;
        let mut right = PageBuffer::take();
        let corrupt = || Stop::Corrupt(self.tree.root, "leaf can't be appended");
        let fences = Fences { lower: separator.as_slice(), upper: None };
        edit::init(&mut *right, 0, fences).ok_or_else(corrupt)?;
        let Some(mut parent) = parent else {
            let left = PageBuffer::copy_of(&**body).ok_or_else(corrupt)?;
            let halves = Halves { cut: Cut { at: 0, separator: separator.clone() }, left, right };
            split::split_root(&self.tree, store, reservation, &mut page, halves)?;
            return Ok(true);
        };
        if !edit::has_room(parent.bytes(), separator.as_slice(), 4).ok_or_else(corrupt)? {
            return Ok(false);
        }
        let right_no = reservation.page(0);
        let left_payload = NodePayload::of(body, page.page_no(), self.tree.id).ok_or_else(corrupt)?;
        let right_payload = NodePayload::of(&right, right_no, self.tree.id).ok_or_else(corrupt)?;
        let mut maps = latch_maps(store, &store.pool, &[right_no])?;
        let mut right_page = store.pool.create(right_no, PageKind::Leaf, self.tree.id, 0);
        install(&right, right_page.bytes_mut()).ok_or_else(corrupt)?;
        install(body, page.bytes_mut()).ok_or_else(corrupt)?;
        edit::insert_child(parent.bytes_mut(), separator.as_slice(), right_no).ok_or_else(corrupt)?;
        split::mark_used(store, &mut maps);
        let mut record = store.wal.change();
        record.page(&mut parent, op::INSERT_CHILD, &[&right_no.0.to_le_bytes(), separator.as_slice()]);
        record.new_page(&mut page, op::NODE, &left_payload.pieces());
        record.new_page(&mut right_page, op::NODE, &right_payload.pieces());
        for map in &mut maps {
            record.page(&mut map.map, OP_MAP_SET, &[&map.bits]);
        }
        record.commit(TxnLink::NONE);
        reservation.used(1);
        Ok(true)
    }

    fn try_finish(&self, store: &Store, body: &PageBuffer) -> Result<(), Stop> {
        let (_, mut page) = self.last_leaf(store)?;
        let corrupt = || Stop::Corrupt(self.tree.root, "last leaf can't be filled");
        let payload = NodePayload::of(body, page.page_no(), self.tree.id).ok_or_else(corrupt)?;
        install(body, page.bytes_mut()).ok_or_else(corrupt)?;
        let mut record = store.wal.change();
        record.new_page(&mut page, op::NODE, &payload.pieces());
        record.commit(TxnLink::NONE);
        Ok(())
    }

    /// The tree's last leaf, which is empty, and its parent, both latched.
    fn last_leaf<'s>(&self, store: &'s Store) -> Result<(Option<PageMut<'s>>, PageMut<'s>), Stop> {
        let place = descend(&store.pool, &self.tree, Aim::End, 0)?;
        let Place { step, parent } = place.ok_or(Stop::Restart)?;
        let parent = match parent {
            Some((parent, _)) => Some(parent.page.lock()?),
            None => None,
        };
        let page = step.page.lock()?;
        let node = Node::of(page.bytes());
        let lower = node.lower().and_then(|lower| page.bytes().get(lower));
        if node.count() != Some(0) || lower != Some(&self.lower) || parent.is_none() != self.low {
            return Err(Stop::Corrupt(step.page_no, "a tree was changed while it was being built"));
        }
        Ok((parent, page))
    }
}
