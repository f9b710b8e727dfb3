//! Splits: one node becomes two, or the root gets two children. Each is one change: nodes and space
//! map together.
//!
//! The steps of a split:
//! 1. The split reserves page numbers, frames and log room (`reserve`).
//! 2. It finds the node, and latches its parent and it in the states that the search saw. If the
//!    node has room by now, the split is over.
//! 3. It drops the dead entries of a full leaf, as a change of their own. If the leaf has room now,
//!    the split is over.
//! 4. It builds both halves in private buffers. If the parent has no room for the separator, the
//!    parent is split first.
//! 5. It latches the map page and makes the new page. Both halves, the separator and the bit are
//!    put in and logged as one.
//!
//! A root split moves the root's halves to two new nodes and leaves the root with one separator.

use runtime::stop;

use super::Tree;
use super::descend::{Aim, Place, Stop, descend};
use super::reserve::{MapBits, Reservation, attempt, latch_maps};
use crate::log::{Share, TxnLink};
use crate::node::buffer::PageBuffer;
use crate::node::edit::{self, Fences};
use crate::node::redo::{NodePayload, install, op};
use crate::node::shape::{self, Cut};
use crate::node::{KeyBuffer, MAX_LEVEL, Node};
use crate::page::PageKind;
use crate::space::OP_MAP_SET;
use crate::{Error, PageMut, Store};

/// The room that is needed: for an entry with this key and so many bytes beside it, in a node of
/// this level.
struct Need {
    level: u8,
    key: KeyBuffer,
    payload_len: usize,
}

/// The outcome of an attempt.
enum Outcome {
    /// There is room now, or more than before.
    Done,
    /// The parent needs a split first, to take this separator.
    ParentFull(Box<KeyBuffer>),
}

/// Makes room in the leaf of `key` for an entry with `payload_len` bytes beside the key. One call
/// may do only a step of it (such as a split of the parent), so the caller searches and tests
/// again.
#[cold]
pub(super) fn make_room(
    tree: &Tree,
    store: &Store,
    share: Share,
    key: &[u8],
    payload_len: usize,
) -> Result<(), Error> {
    make_room_at(tree, store, share, 0, key, payload_len)
}

/// As [`make_room`], for an entry of the node of `level` that covers `key`.
#[cold]
pub(super) fn make_room_at(
    tree: &Tree,
    store: &Store,
    share: Share,
    level: u8,
    key: &[u8],
    payload_len: usize,
) -> Result<(), Error> {
    let corrupt = |what| Error::Corrupt { page: tree.root, what };
    let mut need =
        Need { level, key: KeyBuffer::of(key).ok_or_else(|| corrupt("key too long"))?, payload_len };
    loop {
        match attempt(store, share, 2, |reservation| try_split(tree, store, reservation, &need))? {
            Outcome::Done => return Ok(()),
            Outcome::ParentFull(_) if need.level >= MAX_LEVEL => return Err(corrupt("tree too high")),
            Outcome::ParentFull(separator) => {
                need = Need { level: need.level + 1, key: *separator, payload_len: 4 }
            }
        }
    }
}

fn try_split<'s>(
    tree: &Tree,
    store: &'s Store,
    reservation: &mut Reservation<'s>,
    need: &Need,
) -> Result<Outcome, Stop> {
    let key = need.key.as_slice();
    let Some(place) = descend(&store.pool, tree, Aim::At(key), need.level)? else { return Ok(Outcome::Done) };
    let Place { step, parent } = place;
    let mut parent_page = match parent {
        Some((parent, _)) => Some(parent.page.lock()?),
        None => None,
    };
    let mut page = step.page.lock()?;
    stop::point("btree.split.latched");
    let corrupt = || Stop::Corrupt(step.page_no, "node can't be split");
    if has_room_now(page.bytes(), need).ok_or_else(corrupt)? {
        return Ok(Outcome::Done);
    }
    if need.level == 0 && purge(tree, store, &mut page).ok_or_else(corrupt)? {
        return Ok(Outcome::Done);
    }
    let (mut left, mut right) = (PageBuffer::take(), PageBuffer::take());
    let cut = shape::split(page.bytes(), key, &mut *left, &mut *right).ok_or_else(corrupt)?;
    let halves = Halves { cut, left, right };
    let Some(parent_page) = parent_page.as_mut() else {
        split_root(tree, store, reservation, &mut page, halves)?;
        return Ok(Outcome::Done);
    };
    let separator = halves.cut.separator.as_slice();
    let parent_corrupt = || Stop::Corrupt(parent_page.page_no(), "unreadable inner node");
    if !edit::has_room(parent_page.bytes(), separator, 4).ok_or_else(parent_corrupt)? {
        return Ok(Outcome::ParentFull(Box::new(halves.cut.separator)));
    }
    split_below(tree, store, reservation, parent_page, &mut page, halves)?;
    Ok(Outcome::Done)
}

/// Whether the node has room: another session may have made it, or even done the change that needed
/// it.
fn has_room_now(page: &[u8], need: &Need) -> Option<bool> {
    let found = Node::of(page).search(need.key.as_slice())?;
    match (found.exact, need.level) {
        (false, _) => edit::has_room(page, need.key.as_slice(), need.payload_len),
        (true, 0) => edit::has_room_for_value(page, found.index, need.payload_len.checked_sub(2)?),
        (true, _) => Some(true),
    }
}

/// Drops the entries that nobody can see any more; true when there were any.
fn purge(tree: &Tree, store: &Store, page: &mut PageMut<'_>) -> Option<bool> {
    let Some(dead) = tree.purge else { return Some(false) };
    let node = Node::of(page.bytes());
    let mut indexes = Vec::new();
    for index in (0..node.count()?).rev() {
        if dead(page.bytes().get(node.value(index)?)?) {
            indexes.push(index as u16);
        }
    }
    if indexes.is_empty() {
        return Some(false);
    }
    let bytes = page.bytes_mut();
    indexes.iter().try_for_each(|&index| edit::remove(bytes, usize::from(index)))?;
    let payload: Vec<u8> = indexes.iter().flat_map(|index| index.to_le_bytes()).collect();
    let mut record = store.wal.change();
    record.page(page, op::PURGE, &[&payload]);
    record.commit(TxnLink::NONE);
    Some(true)
}

/// The two sides of a split, in private buffers.
pub(super) struct Halves {
    pub cut: Cut,
    pub left: PageBuffer,
    pub right: PageBuffer,
}

const TORN: &str = "node can't be logged";

fn split_below<'s>(
    tree: &Tree,
    store: &'s Store,
    reservation: &mut Reservation<'s>,
    parent: &mut PageMut<'_>,
    left: &mut PageMut<'_>,
    halves: Halves,
) -> Result<(), Stop> {
    let right_no = reservation.page(0);
    let corrupt = || Stop::Corrupt(right_no, TORN);
    let payload = NodePayload::of(&halves.right, right_no, tree.id).ok_or_else(corrupt)?;
    let mut maps = latch_maps(store, &store.pool, &[right_no])?;
    let level = Node::of(left.bytes()).level().ok_or_else(corrupt)?;
    let mut right = store.pool.create(right_no, kind_of(level), tree.id, level);
    install(&halves.right, right.bytes_mut()).ok_or_else(corrupt)?;
    install(&halves.left, left.bytes_mut()).ok_or_else(corrupt)?;
    let separator = halves.cut.separator.as_slice();
    edit::insert_child(parent.bytes_mut(), separator, right_no).ok_or_else(corrupt)?;
    mark_used(store, &mut maps);
    let mut record = store.wal.change();
    record.page(parent, op::INSERT_CHILD, &[&right_no.0.to_le_bytes(), separator]);
    record.page(left, op::CUT, &[&(halves.cut.at as u16).to_le_bytes(), separator]);
    record.new_page(&mut right, op::NODE, &payload.pieces());
    for map in &mut maps {
        record.page(&mut map.map, OP_MAP_SET, &[&map.bits]);
    }
    record.commit(TxnLink::NONE);
    stop::point("btree.split.logged");
    reservation.used(1);
    Ok(())
}

/// Gives the root two children.
pub(super) fn split_root<'s>(
    tree: &Tree,
    store: &'s Store,
    reservation: &mut Reservation<'s>,
    root: &mut PageMut<'_>,
    halves: Halves,
) -> Result<(), Stop> {
    let (left_no, right_no) = (reservation.page(0), reservation.page(1));
    let corrupt = || Stop::Corrupt(tree.root, TORN);
    let level = Node::of(root.bytes()).level().ok_or_else(corrupt)?;
    if level >= MAX_LEVEL {
        return Err(Stop::Corrupt(tree.root, "tree too high"));
    }
    let mut top = PageBuffer::take();
    edit::init(&mut *top, level + 1, Fences::ALL).ok_or_else(corrupt)?;
    edit::set_first_child(&mut *top, left_no);
    edit::insert_child(&mut *top, halves.cut.separator.as_slice(), right_no).ok_or_else(corrupt)?;
    let left_payload = NodePayload::of(&halves.left, left_no, tree.id).ok_or_else(corrupt)?;
    let right_payload = NodePayload::of(&halves.right, right_no, tree.id).ok_or_else(corrupt)?;
    let top_payload = NodePayload::of(&top, tree.root, tree.id).ok_or_else(corrupt)?;
    let mut maps = latch_maps(store, &store.pool, &[left_no, right_no])?;
    let mut left = store.pool.create(left_no, kind_of(level), tree.id, level);
    let mut right = store.pool.create(right_no, kind_of(level), tree.id, level);
    install(&halves.left, left.bytes_mut()).ok_or_else(corrupt)?;
    install(&halves.right, right.bytes_mut()).ok_or_else(corrupt)?;
    install(&top, root.bytes_mut()).ok_or_else(corrupt)?;
    mark_used(store, &mut maps);
    let mut record = store.wal.change();
    record.new_page(root, op::NODE, &top_payload.pieces());
    record.new_page(&mut left, op::NODE, &left_payload.pieces());
    record.new_page(&mut right, op::NODE, &right_payload.pieces());
    for map in &mut maps {
        record.page(&mut map.map, OP_MAP_SET, &[&map.bits]);
    }
    record.commit(TxnLink::NONE);
    stop::point("btree.root_split.logged");
    reservation.used(2);
    Ok(())
}

fn kind_of(level: u8) -> PageKind {
    if level == 0 { PageKind::Leaf } else { PageKind::Inner }
}

/// Sets the bits in the latched map pages.
pub(super) fn mark_used(store: &Store, maps: &mut [MapBits<'_>]) {
    for map in maps {
        map.each().for_each(|bit| store.space.mark_used(&mut map.map, bit));
    }
}
