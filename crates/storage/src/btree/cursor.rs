//! Scans in both directions over private copies of whole leaves.
//!
//! What must hold:
//! - A copy is validated before use. It equals the leaf at one moment, for all keys between its
//!   fences.
//! - A scan goes on by key: forward from the copy's upper fence, backward below its lower one. So
//!   splits and merges at any time make it neither skip nor repeat a key that is there throughout.
//! - The cursor stands in a gap between two entries. It holds nothing of the tree between two
//!   calls.
//! - When a scan meets a leaf that is not resident, it reads the leaves after it too: 4 at first,
//!   more each time.

use std::ops::{Bound, Range};

use super::Tree;
use super::descend::{Aim, Retry, Stop, descend};
use crate::node::buffer::PageBuffer;
use crate::node::{KeyBuffer, Node};
use crate::{Error, Miss, PageNo, Store};

/// Key and value, lent until the cursor moves on.
pub type Entry<'c> = (&'c [u8], &'c [u8]);

/// A scan: it copies whole leaves and yields entries from the copy. It stands in a gap between two
/// entries.
pub struct Cursor {
    tree: Tree,
    leaf: PageBuffer,
    /// The leaf that was copied; None before the first seek.
    copied: Option<PageNo>,
    /// The entry after the gap.
    index: usize,
    count: usize,
    /// Key of the entry yielded last, and where its value lies in the copy. The first `prefix`
    /// bytes are those that all keys of the copy share.
    key: Vec<u8>,
    prefix: usize,
    value: Range<usize>,
    /// How many leaves to read ahead when the next one is missing.
    ahead: usize,
}

/// Leaves read ahead at the first missing leaf of a scan, and the most after many.
const AHEAD_FIRST: usize = 4;
const AHEAD_MOST: usize = 64;

/// How a cursor reaches a leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By a seek.
    Jump,
    /// From the leaf beside it, as a scan does.
    Step,
}

/// Where a seek puts the gap in the leaf.
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
            copied: None,
            index: 0,
            count: 0,
            key: Vec::new(),
            prefix: 0,
            value: 0..0,
            ahead: AHEAD_FIRST,
        }
    }

    /// The tree that the cursor scans.
    pub fn tree(&self) -> Tree {
        self.tree
    }

    /// Moves to the gap before the first entry with a key of at least `key`.
    pub fn seek(&mut self, store: &Store, key: &[u8]) -> Result<(), Error> {
        self.move_to(store, Way::Jump, Aim::At(key), Gap::Before(key))
    }

    /// As [`Cursor::seek`], without a descent if the copied leaf covers the key.
    pub fn seek_near(&mut self, store: &Store, key: &[u8]) -> Result<(), Error> {
        let node = Node::of(&*self.leaf);
        if self.copied.is_none() || node.covers(key) != Some(true) {
            return self.seek(store, key);
        }
        self.index = node.search(key).ok_or_else(|| self.corrupt())?.index;
        Ok(())
    }

    /// Moves to the gap after the last entry with a key of at most `key`.
    pub fn seek_after(&mut self, store: &Store, key: &[u8]) -> Result<(), Error> {
        self.move_to(store, Way::Jump, Aim::At(key), Gap::After(key))
    }

    /// Moves to the gap after the last entry.
    pub fn seek_end(&mut self, store: &Store) -> Result<(), Error> {
        self.move_to(store, Way::Jump, Aim::End, Gap::End)
    }

    /// Returns the entry after the gap and moves past it.
    #[inline]
    pub fn next(&mut self, store: &Store) -> Result<Option<Entry<'_>>, Error> {
        if self.copied.is_none() {
            self.seek(store, &[])?;
        }
        while self.index >= self.count {
            if !self.go_on(store)? {
                return Ok(None);
            }
        }
        self.index += 1;
        self.entry(self.index - 1).map(Some)
    }

    /// Moves past the entries after the gap that lie in one leaf before `end`, and returns their
    /// places for [`Cursor::value_at`]. None if no entry is left.
    pub fn next_places(&mut self, store: &Store, end: Bound<&[u8]>) -> Result<Option<Range<usize>>, Error> {
        if self.copied.is_none() {
            self.seek(store, &[])?;
        }
        while self.index >= self.count {
            if !self.go_on(store)? {
                return Ok(None);
            }
        }
        let stop = self.place_of(end).ok_or_else(|| self.corrupt())?;
        if stop <= self.index {
            return Ok(None);
        }
        Ok(Some(std::mem::replace(&mut self.index, stop)..stop))
    }

    /// The place behind the last entry of the copied leaf that lies before `end`.
    fn place_of(&self, end: Bound<&[u8]>) -> Option<usize> {
        let node = Node::of(&*self.leaf);
        let (Bound::Included(key) | Bound::Excluded(key)) = end else { return Some(self.count) };
        if node.upper()?.is_some_and(|upper| self.leaf[upper] <= *key) {
            return Some(self.count);
        }
        let found = node.search(key)?;
        Some(found.index + usize::from(found.exact && matches!(end, Bound::Included(_))))
    }

    /// The value of the entry at a place. The cursor must not have moved to another leaf since.
    #[inline]
    pub fn value_at(&self, place: usize) -> Result<&[u8], Error> {
        let value = Node::of(&*self.leaf).value(place).and_then(|value| self.leaf.get(value));
        value.ok_or_else(|| self.corrupt())
    }

    /// Moves to the leaf after the copied one. False if there is none.
    #[inline(never)]
    fn go_on(&mut self, store: &Store) -> Result<bool, Error> {
        let upper = match Node::of(&*self.leaf).upper() {
            Some(None) => return Ok(false),
            Some(Some(range)) => KeyBuffer::of(&self.leaf[range]),
            None => None,
        };
        let upper = upper.ok_or_else(|| self.corrupt())?;
        self.move_to(store, Way::Step, Aim::At(upper.as_slice()), Gap::Before(upper.as_slice()))?;
        Ok(true)
    }

    /// Returns the entry before the gap and moves before it.
    pub fn prev(&mut self, store: &Store) -> Result<Option<Entry<'_>>, Error> {
        if self.copied.is_none() {
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

    /// The entry yielded last. The cursor must not have moved since.
    #[inline]
    pub fn current(&self) -> Entry<'_> {
        (&self.key, &self.leaf[self.value.clone()])
    }

    #[inline]
    fn entry(&mut self, index: usize) -> Result<Entry<'_>, Error> {
        let node = Node::of(&*self.leaf);
        self.key.truncate(self.prefix);
        let complete = node.suffix(index).zip(node.value(index)).and_then(|(suffix, value)| {
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
        self.copied.unwrap_or(self.tree.root)
    }

    #[cold]
    fn corrupt(&self) -> Error {
        Error::Corrupt { page: self.page_no(), what: "unreadable leaf" }
    }

    /// Reads the leaf that `aim` names, together with those after it on the scan's way. Best
    /// effort: a failure here shows again when the scan looks at the leaf.
    #[cold]
    fn read_ahead(&mut self, store: &Store, aim: Aim<'_>) {
        if let Some(leaves) = self.leaves_ahead(store, aim) {
            store.pool.load_ahead(&leaves);
            self.ahead = (2 * self.ahead).min(AHEAD_MOST);
        }
    }

    fn leaves_ahead(&self, store: &Store, aim: Aim<'_>) -> Option<Vec<PageNo>> {
        let parent = descend(&store.pool, &self.tree, aim, 1).ok()??;
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
        leaves.filter(|_| parent.step.page.validate().is_ok())
    }

    fn move_to(&mut self, store: &Store, way: Way, aim: Aim<'_>, gap: Gap<'_>) -> Result<(), Error> {
        let mut retry = Retry::new(&store.pool);
        loop {
            match self.try_move(store, aim, &mut retry) {
                Ok(()) => break,
                Err(stop) => {
                    self.copied = None;
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
            Some((index, count, node.prefix()?))
        });
        let (index, count, prefix) = found.ok_or_else(|| self.corrupt())?;
        (self.index, self.count, self.prefix) = (index, count, prefix.len());
        self.key.clear();
        self.key.extend_from_slice(self.leaf.get(prefix).ok_or_else(|| self.corrupt())?);
        Ok(())
    }

    fn try_move(&mut self, store: &Store, aim: Aim<'_>, retry: &mut Retry<'_>) -> Result<(), Stop> {
        if retry.latch_now() {
            let page = retry.latch_leaf(&self.tree, aim)?;
            self.leaf.copy_from_slice(page.bytes());
            self.copied = Some(page.page_no());
            return Ok(());
        }
        let place = descend(&store.pool, &self.tree, aim, 0)?.ok_or(Stop::Restart)?;
        place.step.page.bytes().copy_all(&mut *self.leaf);
        place.step.page.validate()?;
        self.copied = Some(place.step.page_no);
        Ok(())
    }
}
