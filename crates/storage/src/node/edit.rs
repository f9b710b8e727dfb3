//! Changes of a node under its exclusive latch, in a private buffer, or in redo: pure functions on
//! page bytes.
//!
//! What must hold:
//! - The same operations on the same entries give the same entries again: redo repeats them by key
//!   or by index.
//! - No operation stops half way: it first finds out that it fits (`Some(false)` when not), then
//!   changes the page.
//! - `None` means that the bytes are no node. No function panics.

use std::ops::Range;

use super::buffer::PageBuffer;
use super::{
    CAPACITY, COUNT, FIRST_CHILD, HEAP, KeyBuffer, LAST_INSERT, LIVE, LOWER_LEN, Node, PREFIX, PREFIX_INLINE,
    PREFIX_LEN, RUN, SLOT, SLOTS, UNBOUNDED, UPPER_LEN, common, head_of,
};
use crate::page::{PAGE_SIZE, PageKind, PageNo, offset};

fn put_u16(page: &mut [u8], at: usize, value: usize) -> Option<()> {
    page.get_mut(at..at + 2)?.copy_from_slice(&u16::try_from(value).ok()?.to_le_bytes());
    Some(())
}

fn get_u16(page: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_le_bytes(page.get(at..at + 2)?.try_into().ok()?)))
}

/// Bytes that a prefix takes in the heap.
pub(crate) fn stored_prefix(len: usize) -> usize {
    if len > PREFIX_INLINE { len } else { 0 }
}

/// The fences of a node; `upper` is None for the rightmost node of its level.
#[derive(Clone, Copy)]
pub(crate) struct Fences<'a> {
    pub lower: &'a [u8],
    pub upper: Option<&'a [u8]>,
}

impl<'a> Fences<'a> {
    /// The fences of a node without bounds.
    pub const ALL: Fences<'static> = Fences { lower: &[], upper: None };

    /// The fences of `page`.
    pub fn of(page: &'a [u8]) -> Option<Fences<'a>> {
        let node = Node::of(page);
        let upper = match node.upper()? {
            Some(range) => Some(page.get(range)?),
            None => None,
        };
        Some(Fences { lower: page.get(node.lower()?)?, upper })
    }

    /// The prefix that all keys between the fences share.
    fn common(&self) -> usize {
        self.upper.map_or(0, |upper| common(self.lower, upper))
    }
}

/// Sets the node's fields of the page header. The pool sets the others.
pub(crate) fn set_kind(page: &mut [u8], level: u8) {
    page[offset::KIND] = if level == 0 { PageKind::Leaf } else { PageKind::Inner } as u8;
    page[offset::LEVEL] = level;
}

/// Sets the child of the keys below entry 0.
pub(crate) fn set_first_child(page: &mut [u8], child: PageNo) {
    page[FIRST_CHILD..FIRST_CHILD + 4].copy_from_slice(&child.0.to_le_bytes());
}

/// Writes a node from nothing, entry after entry in key order.
pub(crate) struct Builder<'a> {
    page: &'a mut [u8],
    prefix_len: usize,
    count: usize,
    heap: usize,
}

impl<'a> Builder<'a> {
    /// Empties the node and sets its fences and prefix. The page header stays.
    pub fn start(page: &'a mut [u8], fences: Fences<'_>, prefix: &[u8]) -> Option<Builder<'a>> {
        page.get_mut(COUNT..PAGE_SIZE)?.fill(0);
        let mut heap = PAGE_SIZE;
        if let Some(upper) = fences.upper {
            heap -= upper.len();
            page.get_mut(heap..heap + upper.len())?.copy_from_slice(upper);
        }
        heap -= fences.lower.len();
        page.get_mut(heap..heap + fences.lower.len())?.copy_from_slice(fences.lower);
        if prefix.len() > PREFIX_INLINE {
            heap -= prefix.len();
            page.get_mut(heap..heap + prefix.len())?.copy_from_slice(prefix);
            put_u16(page, PREFIX, heap)?;
        } else {
            page[PREFIX..PREFIX + prefix.len()].copy_from_slice(prefix);
        }
        put_u16(page, PREFIX_LEN, prefix.len())?;
        put_u16(page, LOWER_LEN, fences.lower.len())?;
        put_u16(page, UPPER_LEN, fences.upper.map_or(UNBOUNDED, <[u8]>::len))?;
        Some(Builder { page, prefix_len: prefix.len(), count: 0, heap })
    }

    /// Adds an entry; false when there is no room for it.
    pub fn push(&mut self, key: &[u8], payload: &[u8]) -> Option<bool> {
        let suffix = key.get(self.prefix_len..)?;
        let len = suffix.len() + payload.len();
        let slots_end = SLOTS + (self.count + 1) * SLOT;
        if self.heap < slots_end + len {
            return Some(false);
        }
        self.heap -= len;
        put_entry(self.page, self.heap, suffix, payload, &[])?;
        put_slot(self.page, self.count, suffix, self.heap)?;
        self.count += 1;
        Some(true)
    }

    /// Writes the entries' count and the heap's bounds into the header.
    pub fn finish(self) -> Option<()> {
        put_u16(self.page, COUNT, self.count)?;
        put_u16(self.page, HEAP, self.heap)?;
        put_u16(self.page, LIVE, PAGE_SIZE - self.heap)
    }
}

fn put_slot(page: &mut [u8], index: usize, suffix: &[u8], at: usize) -> Option<()> {
    let slot = u64::from(head_of(suffix)) << 32 | (suffix.len() as u64) << 16 | at as u64;
    let start = SLOTS + index * SLOT;
    page.get_mut(start..start + SLOT)?.copy_from_slice(&slot.to_le_bytes());
    Some(())
}

fn put_entry(page: &mut [u8], at: usize, suffix: &[u8], payload: &[u8], more: &[u8]) -> Option<()> {
    let entry = page.get_mut(at..at + suffix.len() + payload.len() + more.len())?;
    let (front, rest) = entry.split_at_mut(suffix.len());
    let (middle, back) = rest.split_at_mut(payload.len());
    front.copy_from_slice(suffix);
    middle.copy_from_slice(payload);
    back.copy_from_slice(more);
    Some(())
}

/// Makes `page` a node without entries.
pub(crate) fn init(page: &mut [u8], level: u8, fences: Fences<'_>) -> Option<()> {
    set_kind(page, level);
    Builder::start(page, fences, &fences.lower[..fences.common()])?.finish()
}

/// The length of the prefix for a node with one key: all but four bytes of the key. That suits the
/// keys that follow in ascending loads. A key that does not fit shortens the prefix.
pub(crate) fn lone_prefix(key: &[u8]) -> usize {
    key.len().saturating_sub(4)
}

/// The prefix for a node with the entries `range` of `source`: the bytes that its keys share.
fn best_prefix(source: &[u8], range: &Range<usize>, fences: Fences<'_>) -> Option<KeyBuffer> {
    let node = Node::of(source);
    let shared = fences.common();
    if range.is_empty() {
        return KeyBuffer::of(&fences.lower[..shared]);
    }
    let first = node.key(range.start)?;
    let len = match range.len() {
        1 => shared.max(lone_prefix(first.as_slice())),
        _ => common(first.as_slice(), node.key(range.end - 1)?.as_slice()),
    };
    KeyBuffer::of(first.as_slice().get(..len)?)
}

/// Copies the entries `range` of `source` (another buffer) into the node `page`. False when they do
/// not fit; then the node is unusable.
fn copy_entries(source: &[u8], range: Range<usize>, builder: &mut Builder<'_>) -> Option<bool> {
    let node = Node::of(source);
    for index in range {
        let payload = source.get(node.payload(index)?)?;
        if !builder.push(node.key(index)?.as_slice(), payload)? {
            return Some(false);
        }
    }
    Some(true)
}

/// Makes `page` a node of the entries `range` of `source`. The caller sets kind, level and first
/// child.
pub(crate) fn copy_range(
    source: &[u8],
    range: Range<usize>,
    fences: Fences<'_>,
    page: &mut [u8],
) -> Option<bool> {
    let prefix = best_prefix(source, &range, fences)?;
    let first_child = Node::of(source).child(0)?;
    let mut builder = Builder::start(page, fences, prefix.as_slice())?;
    if !copy_entries(source, range, &mut builder)? {
        return Some(false);
    }
    builder.finish()?;
    set_first_child(page, first_child);
    Some(true)
}

/// Rebuilds the node with another prefix of all its keys, and with its free space in one piece.
fn rebuild(page: &mut [u8], prefix: &[u8]) -> Option<()> {
    let source = PageBuffer::copy_of(page)?;
    let count = Node::of(&*source).count()?;
    let mut builder = Builder::start(page, Fences::of(&*source)?, prefix)?;
    if !copy_entries(&*source, 0..count, &mut builder)? {
        return None;
    }
    builder.finish()?;
    page[LAST_INSERT..PREFIX].copy_from_slice(&source[LAST_INSERT..PREFIX]);
    Some(())
}

/// How an entry fits into a node.
struct Placement {
    /// The prefix that the node needs for it.
    prefix_len: usize,
    /// Whether that differs from the present prefix, or the free space must be joined.
    rebuild: bool,
}

/// The placement of an entry with `key` and `payload_len` more bytes; `Some(None)` when there is no
/// room.
#[expect(clippy::option_option, reason = "the outer one says damaged, as everywhere here")]
fn place(page: &[u8], key: &[u8], payload_len: usize) -> Option<Option<Placement>> {
    let node = Node::of(page);
    let count = node.count()?;
    let old = node.prefix()?;
    let old_len = old.len();
    let prefix_len = match count {
        0 => Fences::of(page)?.common().max(lone_prefix(key)),
        _ => common(page.get(old)?, key),
    };
    let live = (get_u16(page, LIVE)? + stored_prefix(prefix_len)).checked_sub(stored_prefix(old_len))?
        + count * old_len.saturating_sub(prefix_len);
    let entry = key.len().checked_sub(prefix_len)? + payload_len;
    if live + entry + (count + 1) * SLOT > CAPACITY {
        return Some(None);
    }
    let contiguous = get_u16(page, HEAP)?.checked_sub(SLOTS + count * SLOT)?;
    let rebuild = count == 0 || prefix_len != old_len || contiguous < entry + SLOT;
    Some(Some(Placement { prefix_len, rebuild }))
}

/// Whether an entry with a new `key` and `payload_len` more bytes fits.
pub(crate) fn has_room(page: &[u8], key: &[u8], payload_len: usize) -> Option<bool> {
    place(page, key, payload_len).map(|placement| placement.is_some())
}

/// Whether the value at `index` can become `len` bytes.
pub(crate) fn has_room_for_value(page: &[u8], index: usize, len: usize) -> Option<bool> {
    let node = Node::of(page);
    Some(node.used()? + len <= CAPACITY + node.value(index)?.len())
}

/// Inserts an entry with a new key. Its payload is `payload` followed by `more`. False when there
/// is no room.
fn insert(page: &mut [u8], key: &[u8], payload: &[u8], more: &[u8]) -> Option<bool> {
    let len = payload.len() + more.len();
    let Some(placement) = place(page, key, len)? else { return Some(false) };
    if placement.rebuild {
        let prefix = KeyBuffer::of(key.get(..placement.prefix_len)?)?;
        rebuild(page, prefix.as_slice())?;
    }
    let node = Node::of(page);
    let found = node.search(key)?;
    let count = node.count()?;
    if found.exact {
        return None;
    }
    let suffix = &key[placement.prefix_len..];
    let at = get_u16(page, HEAP)?.checked_sub(suffix.len() + len)?;
    put_entry(page, at, suffix, payload, more)?;
    let start = SLOTS + found.index * SLOT;
    page.get(start..start + (count + 1 - found.index) * SLOT)?;
    page.copy_within(start..SLOTS + count * SLOT, start + SLOT);
    put_slot(page, found.index, suffix, at)?;
    put_u16(page, COUNT, count + 1)?;
    put_u16(page, HEAP, at)?;
    put_u16(page, LIVE, get_u16(page, LIVE)? + suffix.len() + len)?;
    let follows = count > 0 && found.index == get_u16(page, LAST_INSERT)? + 1;
    put_u16(page, RUN, if follows { (get_u16(page, RUN)? + 1).min(1000) } else { 0 })?;
    put_u16(page, LAST_INSERT, found.index)?;
    Some(true)
}

/// Inserts an entry into a leaf.
pub(crate) fn insert_value(page: &mut [u8], key: &[u8], value: &[u8]) -> Option<bool> {
    insert(page, key, &u16::try_from(value.len()).ok()?.to_le_bytes(), value)
}

/// Inserts a separator and the child to the right of it into an inner node.
pub(crate) fn insert_child(page: &mut [u8], key: &[u8], child: PageNo) -> Option<bool> {
    insert(page, key, &child.0.to_le_bytes(), &[])
}

/// Removes the entry at `index`.
pub(crate) fn remove(page: &mut [u8], index: usize) -> Option<()> {
    let node = Node::of(page);
    let count = node.count()?;
    if index >= count {
        return None;
    }
    let len = node.suffix(index)?.len() + node.payload(index)?.len();
    let live = get_u16(page, LIVE)?.checked_sub(len)?;
    let start = SLOTS + index * SLOT;
    page.get(start..SLOTS + count * SLOT)?;
    page.copy_within(start + SLOT..SLOTS + count * SLOT, start);
    put_u16(page, COUNT, count - 1)?;
    put_u16(page, LIVE, live)?;
    // The newest entry moves with the others. A run ends when its newest entry is removed.
    let last = get_u16(page, LAST_INSERT)?;
    if last > index {
        put_u16(page, LAST_INSERT, last - 1)?;
    } else if last == index {
        put_u16(page, RUN, 0)?;
    }
    Some(())
}

/// Replaces the value of the leaf's entry at `index`; false when there is no room.
pub(crate) fn replace_value(page: &mut [u8], index: usize, value: &[u8]) -> Option<bool> {
    let node = Node::of(page);
    let old = node.value(index)?;
    if value.len() > old.len() {
        if !has_room_for_value(page, index, value.len())? {
            return Some(false);
        }
        let key = node.key(index)?;
        let run = get_u16(page, RUN)?;
        let last = get_u16(page, LAST_INSERT)?;
        remove(page, index)?;
        let inserted = insert_value(page, key.as_slice(), value)?;
        put_u16(page, RUN, run)?;
        put_u16(page, LAST_INSERT, last)?;
        return Some(inserted);
    }
    page.get_mut(old.start..old.start + value.len())?.copy_from_slice(value);
    if value.len() < old.len() {
        put_u16(page, old.start - 2, value.len())?;
        put_u16(page, LIVE, get_u16(page, LIVE)?.checked_sub(old.len() - value.len())?)?;
    }
    Some(true)
}
