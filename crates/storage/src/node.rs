//! The read view of a node, over memory that may change during the read.
//!
//! A node is a slotted page (byte picture in `docs/formats.md`). After the page header and the node
//! header come the slots, one u64 each: head << 32 | suffix length << 16 | offset. The head is the
//! first four bytes of the key's suffix, big endian, zero-padded. The heap grows down from the
//! fences at the page's end. A leaf's entry is the key's suffix, the value's length (u16) and the
//! value. An inner node's entry is the key's suffix and the child's page number (u32).
//!
//! What must hold:
//! - All keys of a node start with its prefix, which is stored once. The prefix may be longer than
//!   the fences promise, so a search compares it.
//! - The child of entry i holds the keys from its key (included) to the next one's. The first child
//!   holds those below entry 0.
//! - Everything here returns `None` for bytes that are no node: torn bytes when the version does
//!   not validate, damaged ones when it does.

use std::cmp::Ordering;
use std::ops::Range;

use sync::racy::RacyBytes;

pub(crate) mod buffer;
pub(crate) mod edit;
pub(crate) mod redo;
pub(crate) mod shape;
#[cfg(test)]
mod tests;

use crate::page::{PAGE_SIZE, PageKind, PageNo, offset};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 1000;

/// Number of entries, u16. One u64 load gets it with the three fields after it.
pub(crate) const COUNT: usize = 32;
/// Lowest offset of the heap, u16.
pub(crate) const HEAP: usize = 34;
/// Bytes of the heap in use, fences and long prefix included, u16.
pub(crate) const LIVE: usize = 36;
/// Length of the common prefix, u16.
pub(crate) const PREFIX_LEN: usize = 38;
/// Length of the lower fence, u16; empty is below every key.
pub(crate) const LOWER_LEN: usize = 40;
/// Length of the upper fence, u16, or [`UNBOUNDED`].
pub(crate) const UPPER_LEN: usize = 42;
/// Index of the newest entry, u16.
pub(crate) const LAST_INSERT: usize = 44;
/// Number of successive inserts that each came just after the entry before, u16.
pub(crate) const RUN: usize = 46;
/// Inner nodes: child of the keys below entry 0, u32.
pub(crate) const FIRST_CHILD: usize = 48;
/// The prefix when it is at most [`PREFIX_INLINE`] bytes, else its offset, u16.
pub(crate) const PREFIX: usize = 52;
/// Bytes of prefix kept in the node header, so that comparing it touches no further cache line.
pub(crate) const PREFIX_INLINE: usize = 12;
/// The slots begin here, on a cache line of their own.
pub(crate) const SLOTS: usize = 64;
/// Bytes of a slot.
pub(crate) const SLOT: usize = 8;
/// An upper fence above every key.
pub(crate) const UNBOUNDED: usize = 0xffff;
/// Bytes for slots and heap.
pub(crate) const CAPACITY: usize = PAGE_SIZE - SLOTS;
/// More slots than a page has room for.
const MAX_COUNT: usize = CAPACITY / SLOT;
const _: () =
    assert!(COUNT == crate::page::HEADER_SIZE && PREFIX + PREFIX_INLINE == SLOTS && SLOTS.is_multiple_of(64));
/// Highest level of a node: with a fanout of at least 3, far beyond 2^31 pages.
pub(crate) const MAX_LEVEL: u8 = 24;

/// A whole key, put together from prefix and suffix.
#[derive(Clone)]
pub(crate) struct KeyBuffer {
    len: usize,
    bytes: [u8; MAX_KEY],
}

impl KeyBuffer {
    /// The empty key.
    pub fn new() -> KeyBuffer {
        KeyBuffer { len: 0, bytes: [0; MAX_KEY] }
    }

    /// A copy of `key`; `None` when it is longer than [`MAX_KEY`].
    pub fn of(key: &[u8]) -> Option<KeyBuffer> {
        let mut buffer = KeyBuffer::new();
        buffer.bytes.get_mut(..key.len())?.copy_from_slice(key);
        buffer.len = key.len();
        Some(buffer)
    }

    /// The key.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The place of a key, or the place where it would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Index of the first entry whose key is not less.
    pub index: usize,
    /// Whether that entry has exactly the key.
    pub exact: bool,
}

/// A read view of a node.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    bytes: RacyBytes<'a>,
}

/// The first four bytes of a key's suffix as a number that compares as they do.
#[inline]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 4];
            bytes[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(bytes)
        }
    }
}

/// Length of the common prefix of two keys.
pub(crate) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

impl<'a> Node<'a> {
    /// A view on a page's bytes.
    #[inline]
    pub fn new(bytes: RacyBytes<'a>) -> Node<'a> {
        Node { bytes }
    }

    /// A view on bytes that nobody else changes.
    #[inline]
    pub fn of(page: &'a [u8]) -> Node<'a> {
        // SAFETY: the slice is borrowed for 'a, so the bytes stay mapped and nobody writes them.
        Node { bytes: unsafe { RacyBytes::new(page.as_ptr(), page.len()) } }
    }

    /// Whether the page is a leaf; `None` when it is no node.
    #[inline]
    pub fn is_leaf(&self) -> Option<bool> {
        match self.bytes.u8_at(offset::KIND)? {
            kind if kind == PageKind::Leaf as u8 => Some(true),
            kind if kind == PageKind::Inner as u8 => Some(false),
            _ => None,
        }
    }

    /// The unused bytes between slots and heap.
    pub fn hole(&self) -> Option<Range<usize>> {
        let slots_end = SLOTS + self.count()? * SLOT;
        let heap = self.u16_at(HEAP)?;
        (slots_end <= heap && heap <= PAGE_SIZE).then_some(slots_end..heap)
    }

    /// The level of the node above the leaves.
    pub fn level(&self) -> Option<u8> {
        self.bytes.u8_at(offset::LEVEL).filter(|&level| level <= MAX_LEVEL)
    }

    #[inline]
    fn u16_at(&self, at: usize) -> Option<usize> {
        self.bytes.u16_at(at).map(usize::from)
    }

    /// Number of entries.
    #[inline]
    pub fn count(&self) -> Option<usize> {
        self.u16_at(COUNT).filter(|&count| count <= MAX_COUNT)
    }

    /// Bytes in use by slots and heap.
    pub fn used(&self) -> Option<usize> {
        Some(self.count()? * SLOT + self.u16_at(LIVE)?).filter(|&used| used <= CAPACITY)
    }

    /// The range of the prefix.
    #[inline]
    pub fn prefix(&self) -> Option<Range<usize>> {
        let len = self.u16_at(PREFIX_LEN)?;
        let start = if len <= PREFIX_INLINE { PREFIX } else { self.u16_at(PREFIX)? };
        (len <= MAX_KEY && start + len <= PAGE_SIZE).then_some(start..start + len)
    }

    /// The range of the lower fence.
    pub fn lower(&self) -> Option<Range<usize>> {
        let end = match self.u16_at(UPPER_LEN)? {
            UNBOUNDED => PAGE_SIZE,
            len => PAGE_SIZE.checked_sub(len)?,
        };
        let len = self.u16_at(LOWER_LEN)?;
        (len <= MAX_KEY && end >= SLOTS + len).then(|| end - len..end)
    }

    /// The range of the upper fence; `Some(None)` when there is none.
    #[expect(
        clippy::option_option,
        reason = "the outer one says damaged, as everywhere here; the inner one unbounded"
    )]
    pub fn upper(&self) -> Option<Option<Range<usize>>> {
        match self.u16_at(UPPER_LEN)? {
            UNBOUNDED => Some(None),
            len if len <= MAX_KEY => Some(Some(PAGE_SIZE - len..PAGE_SIZE)),
            _ => None,
        }
    }

    /// Whether `key` lies between the fences.
    pub fn covers(&self, key: &[u8]) -> Option<bool> {
        let lower = self.lower()?;
        if self.bytes.compare(lower.start, lower.len(), key)? == Ordering::Greater {
            return Some(false);
        }
        match self.upper()? {
            None => Some(true),
            Some(upper) => Some(self.bytes.compare(upper.start, upper.len(), key)? == Ordering::Greater),
        }
    }

    #[inline]
    fn slot(&self, index: usize) -> Option<u64> {
        self.bytes.u64_at(SLOTS + index * SLOT)
    }

    #[inline]
    fn head(&self, index: usize) -> Option<u32> {
        self.slot(index).map(|slot| (slot >> 32) as u32)
    }

    /// The range of the suffix of the key at `index`. It is not checked against the page's end: the
    /// readers of bytes do that.
    #[inline]
    pub fn suffix(&self, index: usize) -> Option<Range<usize>> {
        let slot = self.slot(index)?;
        let start = (slot & 0xffff) as usize;
        Some(start..start + (slot >> 16 & 0xffff) as usize)
    }

    /// The range of the value at `index` of a leaf.
    #[inline]
    pub fn value(&self, index: usize) -> Option<Range<usize>> {
        let at = self.suffix(index)?.end;
        let start = at + 2;
        let end = start + self.u16_at(at)?;
        (end <= PAGE_SIZE).then_some(start..end)
    }

    /// The range of what follows the key's suffix at `index`: value length and value, or the child.
    pub fn payload(&self, index: usize) -> Option<Range<usize>> {
        if self.is_leaf()? {
            return self.value(index).map(|value| value.start - 2..value.end);
        }
        let start = self.suffix(index)?.end;
        (start + 4 <= PAGE_SIZE).then_some(start..start + 4)
    }

    /// The child of the keys at or above entry `index`.
    #[inline]
    pub fn child_of_entry(&self, index: usize) -> Option<PageNo> {
        self.bytes.u32_at(self.suffix(index)?.end).map(PageNo)
    }

    /// The child at `position`: 0 is the first child, `i + 1` that of entry i.
    #[inline]
    pub fn child(&self, position: usize) -> Option<PageNo> {
        match position {
            0 => self.bytes.u32_at(FIRST_CHILD).map(PageNo),
            _ => self.child_of_entry(position - 1),
        }
    }

    /// Joins prefix and suffix of the key at `index`.
    pub fn key(&self, index: usize) -> Option<KeyBuffer> {
        let (prefix, suffix) = (self.prefix()?, self.suffix(index)?);
        let len = prefix.len() + suffix.len();
        let mut key = KeyBuffer::new();
        let bytes = key.bytes.get_mut(..len)?;
        let (front, back) = bytes.split_at_mut(prefix.len());
        if !self.bytes.copy_to(prefix.start, front) || !self.bytes.copy_to(suffix.start, back) {
            return None;
        }
        key.len = len;
        Some(key)
    }

    /// Appends a range of the node's bytes; false when it is not all inside.
    #[inline]
    pub fn append_to(&self, range: Range<usize>, to: &mut Vec<u8>) -> bool {
        self.bytes.append_to(range.start, range.len(), to)
    }

    /// Compares the suffix at `index` with `suffix`, given that their heads are equal.
    #[inline]
    fn compare_tie(&self, index: usize, suffix: &[u8]) -> Option<Ordering> {
        let ours = self.suffix(index)?;
        if ours.len() <= 4 && suffix.len() <= 4 {
            // With equal heads, the shorter suffix is the other one without some zeros at its end.
            return Some(ours.len().cmp(&suffix.len()));
        }
        self.bytes.compare(ours.start, ours.len(), suffix)
    }

    /// The first entry whose key is not less than `key`.
    #[inline]
    pub fn search(&self, key: &[u8]) -> Option<Found> {
        let word = self.bytes.u64_at(COUNT)?;
        let count = (word & 0xffff) as usize;
        if count > MAX_COUNT {
            return None;
        }
        let mut suffix = key;
        let prefix_len = (word >> 48) as usize;
        if prefix_len > 0 {
            let at = if prefix_len <= PREFIX_INLINE { PREFIX } else { self.u16_at(PREFIX)? };
            let shared = prefix_len.min(key.len());
            match self.bytes.compare(at, prefix_len, &key[..shared])? {
                Ordering::Less => return Some(Found { index: count, exact: false }),
                Ordering::Greater => return Some(Found { index: 0, exact: false }),
                Ordering::Equal => suffix = &key[shared..],
            }
        }
        let head = head_of(suffix);
        let mut low = 0;
        let mut size = count;
        while size > 0 {
            let half = size / 2;
            let less = self.head(low + half)? < head;
            low = if less { low + half + 1 } else { low };
            size = if less { size - half - 1 } else { half };
        }
        if low == count || self.head(low)? != head {
            return Some(Found { index: low, exact: false });
        }
        match self.compare_tie(low, suffix)? {
            Ordering::Less => self.search_ties(low + 1, count, head, suffix),
            order => Some(Found { index: low, exact: order == Ordering::Equal }),
        }
    }

    /// Continues a search among entries with the same head. The entries before `low` are less.
    fn search_ties(&self, mut low: usize, mut high: usize, head: u32, suffix: &[u8]) -> Option<Found> {
        let mut exact = false;
        while low < high {
            let middle = low.midpoint(high);
            let order = match self.head(middle)?.cmp(&head) {
                Ordering::Equal => self.compare_tie(middle, suffix)?,
                order => order,
            };
            match order {
                Ordering::Less => low = middle + 1,
                _ => high = middle,
            }
            exact |= order == Ordering::Equal;
        }
        Some(Found { index: low, exact })
    }

    /// Position of the child that covers `key`.
    #[inline]
    pub fn child_position(&self, key: &[u8]) -> Option<usize> {
        let found = self.search(key)?;
        Some(found.index + usize::from(found.exact))
    }

    /// Position of the child that covers the keys just below `key`.
    pub fn child_position_below(&self, key: &[u8]) -> Option<usize> {
        self.search(key).map(|found| found.index)
    }
}
