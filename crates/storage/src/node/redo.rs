//! The log operations of nodes: their codes, their payloads, and their redo.
//!
//! Each function here changes one page and needs only the payload and that page: recovery redoes
//! the pages of one record one by one. Operations on leaf entries name the entry by its key;
//! splits, cuts and merges name it by its index. Redo gives the same entries in the same order,
//! though their offsets in the page may differ.

use super::buffer::PageBuffer;
use super::{COUNT, HEAP, Node, SLOT, SLOTS};
use super::{edit, shape};
use crate::page::{PAGE_SIZE, PageNo, offset};

/// Redo codes of nodes.
pub mod op {
    /// A leaf entry inserted. Payload: key length u16, key, value.
    pub const INSERT: u8 = 16;
    /// A leaf value replaced. Payload: key length u16, unchanged bytes at the front u16 and at the
    /// back u16, key, and the bytes between the unchanged ends.
    pub(crate) const REPLACE: u8 = 17;
    /// A leaf entry removed. Payload: key.
    pub const REMOVE: u8 = 18;
    /// Dead leaf entries dropped. Payload: their indexes, u16 each, highest first.
    pub(crate) const PURGE: u8 = 19;
    /// A whole node, into a zeroed page. Payload: page number u32, page header from the tree's
    /// number on (8 bytes), node header and slots, heap.
    pub(crate) const NODE: u8 = 20;
    /// A node cut down to the left half of a split. Payload: index u16, separator.
    pub(crate) const CUT: u8 = 21;
    /// A separator and the child to the right of it inserted. Payload: child u32, separator.
    pub(crate) const INSERT_CHILD: u8 = 22;
    /// A separator and the child to the right of it removed. Payload: index u16.
    pub(crate) const REMOVE_CHILD: u8 = 23;
    /// A node freed: a zeroed page with its number. Payload: page number u32.
    pub(crate) const FREE: u8 = 24;
}

/// Bytes before node header and slots in the payload of [`op::NODE`].
const NODE_PREFIX: usize = 12;

/// The payload that makes a node: its pieces in order.
pub(crate) struct NodePayload<'a> {
    head: [u8; NODE_PREFIX],
    slots: &'a [u8],
    heap: &'a [u8],
}

impl<'a> NodePayload<'a> {
    /// The payload that makes `body` the content of `page_no`. `body` is a private buffer with
    /// kind, level and everything after the page header.
    pub fn of(body: &'a PageBuffer, page_no: PageNo, tree: u32) -> Option<NodePayload<'a>> {
        let slots = SLOTS + Node::of(&**body).count()? * SLOT;
        let heap = usize::from(u16::from_le_bytes([body[HEAP], body[HEAP + 1]]));
        let mut head = [0; NODE_PREFIX];
        head[..4].copy_from_slice(&page_no.0.to_le_bytes());
        head[4..8].copy_from_slice(&tree.to_le_bytes());
        head[8] = body[offset::KIND];
        head[9] = body[offset::LEVEL];
        Some(NodePayload { head, slots: body.get(COUNT..slots)?, heap: body.get(heap..)? })
    }

    /// The pieces of the payload, to be joined in this order.
    pub fn pieces(&self) -> [&[u8]; 3] {
        [&self.head, self.slots, self.heap]
    }
}

/// Copies a private buffer into the page that it becomes.
pub(crate) fn install(body: &PageBuffer, page: &mut [u8]) -> Option<()> {
    page.get_mut(offset::KIND..=offset::LEVEL)?.copy_from_slice(&body[offset::KIND..=offset::LEVEL]);
    page.get_mut(COUNT..)?.copy_from_slice(body.get(COUNT..)?);
    Some(())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

/// Redoes an operation of this module. False when there is no such operation, or it does not fit
/// the page.
pub fn redo(code: u8, payload: &[u8], page: &mut [u8]) -> bool {
    if page.len() != PAGE_SIZE {
        return false;
    }
    let done = match code {
        op::INSERT => redo_insert(payload, page),
        op::REPLACE => redo_replace(payload, page),
        op::REMOVE => redo_remove(payload, page),
        op::PURGE => redo_purge(payload, page),
        op::NODE => redo_node(payload, page),
        op::CUT => u16_at(payload, 0).and_then(|at| shape::cut(page, at, &payload[2..])),
        op::INSERT_CHILD => redo_insert_child(payload, page),
        op::REMOVE_CHILD => u16_at(payload, 0).and_then(|index| edit::remove(page, index)),
        op::FREE => redo_free(payload, page),
        _ => None,
    };
    done.is_some()
}

fn redo_insert(payload: &[u8], page: &mut [u8]) -> Option<()> {
    let key_len = u16_at(payload, 0)?;
    let (key, value) = payload.get(2..)?.split_at_checked(key_len)?;
    edit::insert_value(page, key, value)?.then_some(())
}

fn redo_replace(payload: &[u8], page: &mut [u8]) -> Option<()> {
    let (key_len, front, back) = (u16_at(payload, 0)?, u16_at(payload, 2)?, u16_at(payload, 4)?);
    let (key, middle) = payload.get(6..)?.split_at_checked(key_len)?;
    let node = Node::of(page);
    let found = node.search(key)?;
    if !found.exact {
        return None;
    }
    let old = page.get(node.value(found.index)?)?;
    let (front, back) = (old.get(..front)?, old.get(old.len().checked_sub(back)?..)?);
    let new = [front, middle, back].concat();
    edit::replace_value(page, found.index, &new)?.then_some(())
}

fn redo_remove(key: &[u8], page: &mut [u8]) -> Option<()> {
    let found = Node::of(page).search(key)?;
    if !found.exact {
        return None;
    }
    edit::remove(page, found.index)
}

fn redo_purge(payload: &[u8], page: &mut [u8]) -> Option<()> {
    let (indexes, rest) = payload.as_chunks::<2>();
    for index in indexes {
        edit::remove(page, usize::from(u16::from_le_bytes(*index)))?;
    }
    rest.is_empty().then_some(())
}

fn redo_node(payload: &[u8], page: &mut [u8]) -> Option<()> {
    let (head, body) = payload.split_at_checked(NODE_PREFIX)?;
    let slots = SLOTS - COUNT + u16_at(body, 0)? * SLOT;
    let heap = u16_at(body, HEAP - COUNT)?;
    let (slots, heap_bytes) = body.split_at_checked(slots)?;
    page.fill(0);
    page[offset::PAGE_NO..offset::PAGE_NO + 4].copy_from_slice(&head[..4]);
    page[offset::TREE..offset::TREE + 8].copy_from_slice(&head[4..]);
    page.get_mut(COUNT..COUNT + slots.len())?.copy_from_slice(slots);
    let into = page.get_mut(heap..)?;
    (into.len() == heap_bytes.len()).then(|| into.copy_from_slice(heap_bytes))
}

fn redo_insert_child(payload: &[u8], page: &mut [u8]) -> Option<()> {
    let (child, key) = payload.split_first_chunk::<4>()?;
    edit::insert_child(page, key, PageNo(u32::from_le_bytes(*child)))?.then_some(())
}

fn redo_free(payload: &[u8], page: &mut [u8]) -> Option<()> {
    let number: [u8; 4] = payload.try_into().ok()?;
    clear(page, PageNo(u32::from_le_bytes(number)));
    Some(())
}

/// Turns a page into a free one.
pub(crate) fn clear(page: &mut [u8], page_no: PageNo) {
    page.fill(0);
    page[offset::PAGE_NO..offset::PAGE_NO + 4].copy_from_slice(&page_no.0.to_le_bytes());
}
