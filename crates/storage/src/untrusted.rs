//! The readers of a page's bytes, as functions of the bytes: the fuzzer's interface
//! (`crates/readers`). The store itself goes through `btree` and `recovery`.
//!
//! An optimistic read sees torn bytes until it has validated its page's version. Redo applies an
//! operation of the log to a page of the file. What must hold: no bytes make these functions panic
//! or read outside the page.

use crate::btree::{checked_space, read_value};
use crate::node::Node;
use crate::{PageNo, store};

/// A key and a leaf's value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// The value of `key` in a leaf, as a lookup reads it; `Err` when the bytes are no node.
pub fn look_up(page: &[u8], key: &[u8]) -> Result<Option<Vec<u8>>, NoNode> {
    let mut value = Vec::new();
    let found = read_value(Node::of(page), key, &mut value).ok_or(NoNode)?;
    Ok(found.then_some(value))
}

/// The child of an inner node that covers `key`, as a descent reads it.
pub fn child(page: &[u8], key: &[u8]) -> Result<PageNo, NoNode> {
    let node = Node::of(page);
    node.child_position(key).and_then(|position| node.child(position)).ok_or(NoNode)
}

/// A leaf's entries in order, as a scan reads them.
pub fn entries(page: &[u8]) -> Result<Vec<Entry>, NoNode> {
    let node = Node::of(page);
    let entry = |index| {
        let mut value = Vec::new();
        let key = node.key(index)?.as_slice().to_vec();
        node.append_to(node.value(index)?, &mut value).then_some((key, value))
    };
    let count = node.count().ok_or(NoNode)?;
    (0..count).map(|index| entry(index).ok_or(NoNode)).collect()
}

/// Whether slots and entries lie in bounds, apart from each other, and are counted right.
pub fn is_sound(page: &[u8]) -> bool {
    checked_space(page).is_some()
}

/// Applies an operation of the log to a page of 8192 bytes; false when it does not fit the page.
pub fn redo(op: u8, payload: &[u8], page: &mut [u8]) -> bool {
    store::redo_op(op, payload, page).is_ok()
}

/// The bytes are no node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoNode;
