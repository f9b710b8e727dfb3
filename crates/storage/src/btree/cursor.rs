//! Scans in both directions over private copies of whole leaves.
//!
//! What must hold:
//! - A copy is validated before it is used: it is what the leaf held at one moment, for all keys between its fences.
//! - A scan goes on by key: forward from the copy's upper fence, backward below its lower one. So splits and merges,
//!   whenever they happen, make it neither skip nor repeat a key that is there throughout.
//! - The cursor stands in a gap between two entries; nothing of the tree is held between two calls.
//! - A scan that meets a leaf that is not resident has those after it read at once, more each time.

use std::ops::Range;

use super::descend::{Aim, Retry, Stop, descend};
use super::{LeafHint, Tree};
use crate::node::buffer::PageBuffer;
use crate::node::{KeyBuffer, Node};
use crate::{Error, Miss, PageNo, Store};

/// Key and value, lent until the cursor moves on.
pub type Entry<'c> = (&'c [u8], &'c [u8]);

/// A scan: copies whole leaves privately and yields entries from the copy. It stands in a gap between two entries.
pub struct Cursor {
    tree: Tree,
    leaf: PageBuffer,
    /// The leaf that was copied; none before the first seek.
    hint: Option<LeafHint>,
    /// The entry after the gap.
    index: usize,
    count: usize,
    /// Key of the entry yielded last, and where its value lies in the copy.
    key: Vec<u8>,
    value: Range<usize>,
    /// Leaves to be read ahead at the next one that is missing.
    ahead: usize,
}

/// Leaves read ahead when a scan first meets a missing one, and when it has met many.
const AHEAD_FIRST: usize = 4;
const AHEAD_MOST: usize = 64;

/// How a cursor comes to a leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Anew.
    Jump,
    /// From the leaf beside it, as a scan does.
    Step,
}

/// Where in the leaf a seek puts the gap.
#[derive(Clone, Copy)]
enum Gap<'k> {
    Before(&'k [u8]),
    After(&'k [u8]),
    End,
}

impl Cursor {
    /// A cursor before the first entry.
    pub fn new(tree: Tree) -> Cursor {
        Cursor {
            tree,
            leaf: PageBuffer::take(),
            hint: None,
            index: 0,
            count: 0,
            key: Vec::new(),
            value: 0..0,
            ahead: AHEAD_FIRST,
        }
    }

    /// The tree it scans.
    pub fn tree(&self) -> Tree {
        self.tree
    }

    /// The place of the entries of the present copy, for a [`Tree::change_at`] of a key just yielded.
    pub fn hint(&self) -> Option<LeafHint> {
        self.hint
    }

    /// Moves to the gap before the first entry whose key is `key` or greater.
    pub fn seek(&mut self, store: &Store, key: &[u8]) -> Result<(), Error> {
        self.move_to(store, Way::Jump, Aim::At(key), Gap::Before(key))
    }

    /// Moves to the gap after the last entry whose key is `key` or less.
    pub fn seek_after(&mut self, store: &Store, key: &[u8]) -> Result<(), Error> {
        self.move_to(store, Way::Jump, Aim::At(key), Gap::After(key))
    }

    /// Moves to the gap after the last entry.
    pub fn seek_end(&mut self, store: &Store) -> Result<(), Error> {
        self.move_to(store, Way::Jump, Aim::End, Gap::End)
    }

    /// The entry after the gap, moving past it.
    pub fn next(&mut self, store: &Store) -> Result<Option<Entry<'_>>, Error> {
        if self.hint.is_none() {
            self.seek(store, &[])?;
        }
        while self.index >= self.count {
            let upper = match Node::of(&*self.leaf).upper() {
                Some(None) => return Ok(None),
                Some(Some(range)) => KeyBuffer::of(&self.leaf[range]),
                None => None,
            };
            let upper = upper.ok_or_else(|| self.corrupt())?;
            self.move_to(store, Way::Step, Aim::At(upper.as_slice()), Gap::Before(upper.as_slice()))?;
        }
        self.index += 1;
        self.entry(self.index - 1).map(Some)
    }

    /// The entry before the gap, moving before it.
    pub fn prev(&mut self, store: &Store) -> Result<Option<Entry<'_>>, Error> {
        if self.hint.is_none() {
            return Ok(None);
        }
        while self.index == 0 {
            let lower = Node::of(&*self.leaf).lower().and_then(|range| KeyBuffer::of(&self.leaf[range]));
            let lower = lower.ok_or_else(|| self.corrupt())?;
            if lower.as_slice().is_empty() {
                return Ok(None);
            }
            self.move_to(store, Way::Step, Aim::Below(lower.as_slice()), Gap::Before(lower.as_slice()))?;
        }
        self.index -= 1;
        self.entry(self.index).map(Some)
    }

    /// The entry yielded last, as long as the cursor has not moved on.
    #[inline]
    pub fn current(&self) -> Entry<'_> {
        (&self.key, &self.leaf[self.value.clone()])
    }

    #[inline]
    fn entry(&mut self, index: usize) -> Result<Entry<'_>, Error> {
        let node = Node::of(&*self.leaf);
        self.key.clear();
        let parts = node.prefix().zip(node.suffix(index)).zip(node.value(index));
        let complete = parts.and_then(|((prefix, suffix), value)| {
            self.key.extend_from_slice(self.leaf.get(prefix)?);
            self.key.extend_from_slice(self.leaf.get(suffix)?);
            self.value = value;
            self.leaf.get(self.value.clone())
        });
        match complete {
            Some(value) => Ok((&self.key, value)),
            None => Err(Error::Corrupt { page: self.page_no(), what: "unreadable leaf" }),
        }
    }

    fn page_no(&self) -> PageNo {
        self.hint.map_or(self.tree.root, |hint| hint.page)
    }

    #[cold]
    fn corrupt(&self) -> Error {
        Error::Corrupt { page: self.page_no(), what: "unreadable leaf" }
    }

    /// Has the leaf that `aim` means read, together with those that come after it on the scan's way. Best effort:
    /// whoever looks at the leaf next meets again what failed here.
    #[cold]
    fn read_ahead(&mut self, store: &Store, aim: Aim<'_>) {
        let Ok(Some(parent)) = descend(&store.pool, &self.tree, aim, 1) else { return };
        let node = parent.step.node();
        let leaves: Option<Vec<PageNo>> = match aim {
            Aim::At(key) => node.child_position(key).zip(node.count()).and_then(|(first, last)| {
                (first..=last).take(self.ahead).map(|position| node.child(position)).collect()
            }),
            Aim::Below(key) => node.child_position_below(key).and_then(|first| {
                (0..=first).rev().take(self.ahead).map(|position| node.child(position)).collect()
            }),
            Aim::End => None,
        };
        if let Some(leaves) = leaves
            && parent.step.page.validate().is_ok()
        {
            store.pool.load_ahead(&leaves);
            self.ahead = (2 * self.ahead).min(AHEAD_MOST);
        }
    }

    fn move_to(&mut self, store: &Store, way: Way, aim: Aim<'_>, gap: Gap<'_>) -> Result<(), Error> {
        let mut retry = Retry::new(&store.pool);
        loop {
            match self.try_move(store, aim, retry.latch_now()) {
                Ok(()) => break,
                Err(stop) => {
                    self.hint = None;
                    if way == Way::Step && matches!(stop, Stop::Missing(_, Miss::Absent)) {
                        self.read_ahead(store, aim);
                    }
                    retry.after(stop)?;
                }
            }
        }
        let node = Node::of(&*self.leaf);
        let found = node.count().and_then(|count| {
            let index = match gap {
                Gap::Before(key) => node.search(key)?.index,
                Gap::After(key) => node.search(key).map(|found| found.index + usize::from(found.exact))?,
                Gap::End => count,
            };
            Some((index, count))
        });
        (self.index, self.count) = found.ok_or_else(|| self.corrupt())?;
        Ok(())
    }

    fn try_move(&mut self, store: &Store, aim: Aim<'_>, latch: bool) -> Result<(), Stop> {
        let place = descend(&store.pool, &self.tree, aim, 0)?.ok_or(Stop::Restart)?;
        let page = place.step.page;
        if latch {
            let page = page.lock()?;
            self.leaf.copy_from_slice(page.bytes());
        } else {
            page.bytes().copy_all(&mut *self.leaf);
            page.validate()?;
        }
        self.hint = Some(LeafHint { page: place.step.page_no, frame: page.frame(), version: page.version() });
        Ok(())
    }
}
