//! The shapes of structure changes, as pure functions on page bytes: where to split, the two
//! halves, and whether two neighbours fit into one node. The change itself and its redo share them.
//!
//! A split of a leaf at `at` leaves entries [0, at) on the left. The separator is the shortest key
//! between the two sides, with the entry about to be inserted counted in. A split of an inner node
//! at `at` takes entry `at` out. The entry's key is the separator, and its child is the first child
//! of the right node.

use super::buffer::PageBuffer;
use super::edit::{Fences, copy_range, insert_child, set_first_child, set_kind};
use super::{CAPACITY, KeyBuffer, LAST_INSERT, Node, RUN, SLOT, common};

/// Entries inserted in a row, after which a split cuts where the next one will be.
const LONG_RUN: usize = 8;
/// The most of a node that two merged neighbours may fill together, so that the next few inserts do
/// not split them again.
const MERGED_FILL: usize = CAPACITY / 4 * 3;

/// The place of a split, and its separator.
pub(crate) struct Cut {
    pub at: usize,
    pub separator: KeyBuffer,
}

/// The shortest key above `below` and not above `above`.
pub(crate) fn shortest_between(below: &[u8], above: &[u8]) -> Option<KeyBuffer> {
    if below >= above {
        return None;
    }
    KeyBuffer::of(above.get(..=common(below, above))?)
}

/// The place at which the two sides have about the same number of bytes, with at least one entry
/// each.
fn balanced(node: Node<'_>, count: usize) -> Option<usize> {
    let total = node.used()?;
    let mut left = 0;
    for at in 1..count {
        let index = at - 1;
        left += SLOT + node.suffix(index)?.len() + node.payload(index)?.len();
        if 2 * left >= total {
            return Some(at);
        }
    }
    Some(count.saturating_sub(1).max(1))
}

/// The places to split a leaf without room for a new entry at `key`, best first. At the ends, and
/// in runs of ascending inserts, the cut leaves the left node full; else it is in the middle.
fn leaf_cuts(page: &[u8], key: &[u8]) -> Option<[Option<usize>; 3]> {
    let node = Node::of(page);
    let count = node.count()?;
    let found = node.search(key)?;
    let middle = (count > 1).then(|| balanced(node, count)).flatten();
    if found.exact {
        return Some([middle, None, None]);
    }
    if found.index == count {
        return Some([Some(count), (count > 1).then(|| count - 1), middle]);
    }
    if found.index == 0 && common(page.get(node.prefix()?)?, key) < node.prefix()?.len() {
        return Some([Some(0), (count > 1).then_some(1), middle]);
    }
    let u16_at = |at: usize| Some(usize::from(u16::from_le_bytes(page.get(at..at + 2)?.try_into().ok()?)));
    let run = u16_at(RUN)? >= LONG_RUN && found.index == u16_at(LAST_INSERT)? + 1;
    Some([run.then_some(found.index), middle, (count == 1).then_some(found.index)])
}

/// The separator of a leaf split at `at` for an insert at `key`.
fn leaf_separator(page: &[u8], at: usize, key: &[u8]) -> Option<KeyBuffer> {
    let node = Node::of(page);
    let count = node.count()?;
    let found = node.search(key)?;
    let new = (!found.exact && found.index == at).then_some(key);
    match (at, new) {
        (0, _) => shortest_between(key, node.key(0)?.as_slice()),
        (_, Some(key)) if at == count => shortest_between(node.key(at - 1)?.as_slice(), key),
        (_, Some(key)) => shortest_between(key, node.key(at)?.as_slice()),
        (_, None) => shortest_between(node.key(at - 1)?.as_slice(), node.key(at)?.as_slice()),
    }
}

/// Builds the left node of a split in `left`; false when it does not fit. The caller sets the
/// header of `left`.
pub(crate) fn left_half(page: &[u8], cut: &Cut, left: &mut [u8]) -> Option<bool> {
    let lower = Fences::of(page)?.lower;
    copy_range(page, 0..cut.at, Fences { lower, upper: Some(cut.separator.as_slice()) }, left)
}

/// Builds the right node of a split in `right`; false when it does not fit. The caller sets the
/// header of `right`.
pub(crate) fn right_half(page: &[u8], cut: &Cut, right: &mut [u8]) -> Option<bool> {
    let node = Node::of(page);
    let fences = Fences { lower: cut.separator.as_slice(), upper: Fences::of(page)?.upper };
    let count = node.count()?;
    if node.is_leaf()? {
        return copy_range(page, cut.at..count, fences, right);
    }
    let fits = copy_range(page, cut.at + 1..count, fences, right)?;
    set_first_child(right, node.child_of_entry(cut.at)?);
    Some(fits)
}

/// Splits `page` for an insert at `key`: takes the first cut that fits and builds both halves.
pub(crate) fn split(page: &[u8], key: &[u8], left: &mut [u8], right: &mut [u8]) -> Option<Cut> {
    let node = Node::of(page);
    let count = node.count()?;
    let leaf = node.is_leaf()?;
    let cuts = if leaf {
        leaf_cuts(page, key)?
    } else {
        // A node without room holds several separators, so both sides keep children.
        let last = count.checked_sub(1)?;
        let end = node.search(key)?.index == count;
        [end.then_some(last), Some(balanced(node, count)?.min(last)), None]
    };
    let level = node.level()?;
    for at in cuts.into_iter().flatten() {
        let separator = if leaf { leaf_separator(page, at, key) } else { node.key(at) };
        let cut = Cut { at, separator: separator? };
        if left_half(page, &cut, left)? && right_half(page, &cut, right)? {
            set_kind(left, level);
            set_kind(right, level);
            return Some(cut);
        }
    }
    None
}

/// Builds in `merged` the node that two neighbours make together; false when they should stay
/// apart. `separator` is the key between them in their parent.
pub(crate) fn merge(left: &[u8], right: &[u8], separator: &[u8], merged: &mut [u8]) -> Option<bool> {
    let (left_node, right_node) = (Node::of(left), Node::of(right));
    let (left_count, right_count) = (left_node.count()?, right_node.count()?);
    let leaf = left_node.is_leaf()?;
    let level = left_node.level()?;
    if right_node.is_leaf()? != leaf || right_node.level()? != level {
        return None;
    }
    let fences = Fences { lower: Fences::of(left)?.lower, upper: Fences::of(right)?.upper };
    // An empty neighbour is always merged, if only the other one still fits between wider fences.
    let limit = if leaf && (left_count == 0 || right_count == 0) { CAPACITY } else { MERGED_FILL };
    let (more, from) = if left_count == 0 && leaf { (left, right) } else { (right, left) };
    if !copy_range(from, 0..Node::of(from).count()?, fences, merged)? {
        return Some(false);
    }
    set_kind(merged, level);
    if !leaf && !insert_child(merged, separator, right_node.child(0)?)? {
        return Some(false);
    }
    let more_node = Node::of(more);
    for index in 0..more_node.count()? {
        let key = more_node.key(index)?;
        let fits = match leaf {
            true => super::edit::insert_value(merged, key.as_slice(), more.get(more_node.value(index)?)?)?,
            false => insert_child(merged, key.as_slice(), more_node.child_of_entry(index)?)?,
        };
        if !fits {
            return Some(false);
        }
    }
    Some(Node::of(merged).used()? <= limit)
}

/// Cuts `page` down to the left node of a split at `at`, as redo does.
pub(crate) fn cut(page: &mut [u8], at: usize, separator: &[u8]) -> Option<()> {
    let source = PageBuffer::copy_of(page)?;
    let cut = Cut { at, separator: KeyBuffer::of(separator)? };
    left_half(&*source, &cut, page)?.then_some(())
}
