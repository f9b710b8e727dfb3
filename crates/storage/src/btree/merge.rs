//! Merges: a node that removals left nearly empty is joined with a neighbour under the same parent,
//! and its page is freed. A root with a single child takes in the child's content. Each is one
//! change: nodes and space map together.
//!
//! A merge is housekeeping: it gives up at the first obstacle, since the tree is right without it.
//! The freed page's number is free again as soon as the record is appended. Readers that still go
//! there find another version.

use runtime::stop;

use super::Tree;
use super::descend::{Aim, Stop, descend, look};
use super::reserve::{MapBits, attempt, latch_maps};
use crate::log::{Share, TxnLink};
use crate::node::buffer::PageBuffer;
use crate::node::redo::{NodePayload, clear, install, op};
use crate::node::{CAPACITY, MAX_LEVEL, Node};
use crate::node::{edit, shape};
use crate::space::OP_MAP_CLEAR;
use crate::{PageNo, Store};

/// An inner node with fewer bytes in use is merged.
const INNER_MERGE_BELOW: usize = CAPACITY / 4;

/// The outcome of an attempt.
enum Outcome {
    /// Nothing to do, or an obstacle.
    Left,
    /// The page was freed; true when the parent has become small enough for a merge.
    Freed(PageNo, bool),
}

/// Merges the leaf of `key` with a neighbour, then each node above it that becomes nearly empty.
/// After a failure the node stays as it is.
#[cold]
pub(super) fn tidy(tree: &Tree, store: &Store, key: &[u8]) {
    for level in 0..MAX_LEVEL {
        let freed = attempt(store, Share::Ordinary, 0, |_| try_merge(tree, store, key, level));
        let Ok(Outcome::Freed(page_no, more)) = freed else { return };
        release(store, page_no);
        if !more {
            return;
        }
        if let Ok(Outcome::Freed(page_no, _)) =
            attempt(store, Share::Ordinary, 0, |_| try_collapse(tree, store))
        {
            release(store, page_no);
        }
    }
}

/// Frees a page whose bit has been cleared.
fn release(store: &Store, page_no: PageNo) {
    store.pool.discard(page_no);
    store.space.unclaim(page_no);
}

fn try_merge(tree: &Tree, store: &Store, key: &[u8], level: u8) -> Result<Outcome, Stop> {
    let place = descend(&store.pool, tree, Aim::At(key), level)?;
    let Some((parent, position)) = place.and_then(|place| place.parent) else { return Ok(Outcome::Left) };
    let count = parent.node().count().ok_or_else(|| parent.damaged("unreadable inner node"))?;
    if count == 0 {
        // An only child has no neighbour under this parent.
        parent.page.validate()?;
        return Ok(Outcome::Left);
    }
    // A child is merged with its left neighbour, the first child with its right one.
    let index = position.saturating_sub(1);
    let children = parent.node().child(index).zip(parent.node().child(index + 1));
    let (left_no, right_no) = children.ok_or_else(|| parent.damaged("unreadable inner node"))?;
    let left = look(&store.pool, left_no, Some(&parent))?;
    let right = look(&store.pool, right_no, Some(&parent))?;
    let mut parent_page = parent.page.lock()?;
    let mut left_page = left.page.lock()?;
    let mut right_page = right.page.lock()?;
    stop::point("btree.merge.latched");
    let corrupt = || Stop::Corrupt(parent.page_no, "nodes can't be merged");
    let separator = Node::of(parent_page.bytes()).key(index).ok_or_else(corrupt)?;
    let mut merged = PageBuffer::take();
    let fits = shape::merge(left_page.bytes(), right_page.bytes(), separator.as_slice(), &mut *merged);
    if !fits.ok_or_else(corrupt)? {
        return Ok(Outcome::Left);
    }
    let mut maps = latch_maps(store, &store.pool, &[right_no])?;
    let payload = NodePayload::of(&merged, left_no, tree.id).ok_or_else(corrupt)?;
    install(&merged, left_page.bytes_mut()).ok_or_else(corrupt)?;
    edit::remove(parent_page.bytes_mut(), index).ok_or_else(corrupt)?;
    clear(right_page.bytes_mut(), right_no);
    mark_free(store, &mut maps);
    let mut record = store.wal.change();
    record.page(&mut parent_page, op::REMOVE_CHILD, &[&(index as u16).to_le_bytes()]);
    record.new_page(&mut left_page, op::NODE, &payload.pieces());
    record.new_page(&mut right_page, op::FREE, &[&right_no.0.to_le_bytes()]);
    for map in &mut maps {
        record.page(&mut map.map, OP_MAP_CLEAR, &[&map.bits]);
    }
    record.commit(TxnLink::NONE);
    stop::point("btree.merge.logged");
    let used = Node::of(parent_page.bytes()).used().ok_or_else(corrupt)?;
    Ok(Outcome::Freed(right_no, used <= INNER_MERGE_BELOW))
}

/// Replaces a root that has a single child by that child.
fn try_collapse(tree: &Tree, store: &Store) -> Result<Outcome, Stop> {
    let root = look(&store.pool, tree.root, None)?;
    let (Some(leaf), Some(count)) = (root.node().is_leaf(), root.node().count()) else {
        return Err(root.damaged("not the root of its tree"));
    };
    root.page.validate()?;
    if leaf || count > 0 {
        return Ok(Outcome::Left);
    }
    let child_no = root.node().child(0).ok_or_else(|| root.damaged("unreadable inner node"))?;
    let child = look(&store.pool, child_no, Some(&root))?;
    let mut root_page = root.page.lock()?;
    let mut child_page = child.page.lock()?;
    let corrupt = || Stop::Corrupt(tree.root, "root can't be lowered");
    let body = PageBuffer::copy_of(child_page.bytes()).ok_or_else(corrupt)?;
    let payload = NodePayload::of(&body, tree.root, tree.id).ok_or_else(corrupt)?;
    let mut maps = latch_maps(store, &store.pool, &[child_no])?;
    install(&body, root_page.bytes_mut()).ok_or_else(corrupt)?;
    clear(child_page.bytes_mut(), child_no);
    mark_free(store, &mut maps);
    let mut record = store.wal.change();
    record.new_page(&mut root_page, op::NODE, &payload.pieces());
    record.new_page(&mut child_page, op::FREE, &[&child_no.0.to_le_bytes()]);
    for map in &mut maps {
        record.page(&mut map.map, OP_MAP_CLEAR, &[&map.bits]);
    }
    record.commit(TxnLink::NONE);
    stop::point("btree.collapse.logged");
    Ok(Outcome::Freed(child_no, false))
}

fn mark_free(store: &Store, maps: &mut [MapBits<'_>]) {
    for map in maps {
        map.each().for_each(|bit| store.space.mark_free(&mut map.map, bit));
    }
}
