//! Walks over whole levels: the pages of a tree, and its numbers of entries and pages.
//!
//! A walk goes on from the upper fence of the node that it has copied. So it may run while the tree
//! changes: it meets an entry that is there throughout exactly once.

use super::Tree;
use super::check::read;
use super::descend::{Aim, Retry, Stop, descend};
use crate::node::buffer::PageBuffer;
use crate::node::{KeyBuffer, Node};
use crate::{Error, PageNo, Store, page};

/// Leaves sampled for an estimate.
const SAMPLE: u64 = 32;

impl Tree {
    /// The pages of the tree by levels, the leaves first and the root last, for dropping it in
    /// steps that can be resumed. Nobody may change the tree meanwhile.
    ///
    /// With `begun`, some pages and all below them may have been freed already and be in use
    /// elsewhere. The walk then reads every page and leaves those out. Otherwise it reads no
    /// leaves. The result is empty when the root is not in use by this tree, or not any more.
    pub fn collect_levels(&self, store: &Store, begun: bool) -> Result<Vec<Vec<PageNo>>, Error> {
        if !self.owns(store, self.root)? {
            return Ok(Vec::new());
        }
        let mut levels = vec![vec![self.root]];
        for _ in 0..self.height(store)? {
            let mut below = Vec::new();
            for &page in levels.last().into_iter().flatten() {
                let copy = read(store, page)?;
                let node = Node::of(&*copy);
                let children = node.count().and_then(|count| {
                    (0..=count).map(|position| node.child(position)).collect::<Option<Vec<PageNo>>>()
                });
                for child in children.ok_or(Error::Corrupt { page, what: "unreadable inner node" })? {
                    if !begun || self.owns(store, child)? {
                        below.push(child);
                    }
                }
                runtime::fiber::safe_point();
            }
            levels.push(below);
        }
        levels.reverse();
        Ok(levels)
    }

    /// Whether a page is in use by this tree.
    fn owns(&self, store: &Store, page_no: PageNo) -> Result<bool, Error> {
        // A page that is not in use may hold anything and may be unreadable.
        Ok(store.space.is_used(page_no)? && page::tree(&*read(store, page_no)?) == self.id)
    }

    /// The number of entries, dead ones included. Reads all leaves.
    pub fn count(&self, store: &Store) -> Result<u64, Error> {
        let mut count = 0;
        self.walk_level(store, 0, |_, node| node.count().map(|entries| count += entries as u64))?;
        Ok(count)
    }

    /// The number of pages. Reads the inner nodes.
    pub fn pages(&self, store: &Store) -> Result<u64, Error> {
        self.statistics(store).map(|statistics| statistics.pages)
    }

    /// The tree's size for the planner: pages are counted, entries estimated from leaves spread
    /// over the tree.
    pub fn statistics(&self, store: &Store) -> Result<Statistics, Error> {
        let height = self.height(store)?;
        let mut statistics = Statistics { pages: 1, leaves: 1, entries: 0 };
        let mut bounds: Vec<KeyBuffer> = Vec::new();
        for level in 1..=height {
            let mut children = 0;
            self.walk_level(store, level, |bytes, node| {
                children += node.count()? as u64 + 1;
                if level == 1 {
                    bounds.push(KeyBuffer::of(bytes.get(node.lower()?)?)?);
                    if bounds.len() as u64 > 2 * SAMPLE {
                        let mut index = 0;
                        bounds.retain(|_| {
                            index += 1;
                            index % 2 == 1
                        });
                    }
                }
                Some(())
            })?;
            statistics.pages += children;
            if level == 1 {
                statistics.leaves = children;
            }
        }
        if bounds.is_empty() {
            bounds.push(KeyBuffer::new());
        }
        let (mut sampled, mut entries) = (0, 0);
        for bound in &bounds {
            let leaf = self.copy_node(store, Aim::At(bound.as_slice()), 0)?;
            let Some((page_no, leaf)) = leaf else { continue };
            let count = Node::of(&*leaf).count();
            entries += count.ok_or(Error::Corrupt { page: page_no, what: "unreadable leaf" })? as u64;
            sampled += 1;
        }
        statistics.entries = entries * statistics.leaves / sampled.max(1);
        Ok(statistics)
    }

    /// The root's level.
    pub fn height(&self, store: &Store) -> Result<u8, Error> {
        let mut retry = Retry::new(&store.pool);
        loop {
            match super::descend::root_level(&store.pool, self) {
                Ok(level) => return Ok(level),
                Err(stop) => retry.after(stop)?,
            }
        }
    }

    /// Copies a node; `None` when the tree is not that high.
    fn copy_node(
        &self,
        store: &Store,
        aim: Aim<'_>,
        level: u8,
    ) -> Result<Option<(PageNo, PageBuffer)>, Error> {
        let mut retry = Retry::new(&store.pool);
        let mut copy = PageBuffer::take();
        loop {
            let attempt = descend(&store.pool, self, aim, level).and_then(|place| {
                let Some(place) = place else { return Ok(None) };
                place.step.page.bytes().copy_all(&mut *copy);
                place.step.page.validate()?;
                Ok::<_, Stop>(Some(place.step.page_no))
            });
            match attempt {
                Ok(page_no) => return Ok(page_no.map(|page_no| (page_no, copy))),
                Err(stop) => retry.after(stop)?,
            }
        }
    }

    /// Calls `visit` with a private copy of each node of a level, from left to right. A `None` from
    /// it means that the node is damaged.
    pub(super) fn walk_level(
        &self,
        store: &Store,
        level: u8,
        mut visit: impl FnMut(&[u8], Node<'_>) -> Option<()>,
    ) -> Result<(), Error> {
        let mut bound = KeyBuffer::new();
        loop {
            let Some((page, copy)) = self.copy_node(store, Aim::At(bound.as_slice()), level)? else {
                return Ok(());
            };
            let node = Node::of(&*copy);
            let next = visit(&*copy, node).and_then(|()| match node.upper()? {
                Some(upper) => Some(Some(KeyBuffer::of(copy.get(upper)?)?)),
                None => Some(None),
            });
            match next {
                Some(Some(upper)) if upper.as_slice() > bound.as_slice() => bound = upper,
                Some(None) => return Ok(()),
                _ => return Err(Error::Corrupt { page, what: "unreadable node" }),
            }
            runtime::fiber::safe_point();
        }
    }
}

/// The size of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Pages in all.
    pub pages: u64,
    /// Pages that are leaves.
    pub leaves: u64,
    /// Entries, dead ones included: an estimate.
    pub entries: u64,
}
