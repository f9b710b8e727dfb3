//! Undo information in log records, for recovery. It says how to put one entry back, given what the
//! undone change left in place.
//!
//! ```text
//! kind u8 | tree u32 | root u32 | key length u16 | key | ...
//! kind 0: nothing (the entry is removed)
//! kind 1: the whole version before
//! kind 2: header before (16) | prefix u16 | suffix u16 | middle
//!         The payload before shares prefix and suffix with the payload after.
//! ```

use storage::PageNo;
use storage::btree::Tree;

use crate::version::HEADER;

const REMOVE: u8 = 0;
const WHOLE: u8 = 1;
const DELTA: u8 = 2;

/// The state of an entry before a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before<'a> {
    /// There was no entry.
    Nothing,
    /// This version, header included.
    Whole(&'a [u8]),
    /// This header, and a payload that shares both ends with the present one.
    Delta {
        /// The version header.
        header: &'a [u8],
        /// Bytes shared at the beginning.
        prefix: usize,
        /// Bytes shared at the end.
        suffix: usize,
        /// The bytes between.
        middle: &'a [u8],
    },
}

impl Before<'_> {
    /// Builds the version before from the present one. False if the two do not fit.
    pub fn build(&self, present: &[u8], value: &mut Vec<u8>) -> bool {
        value.clear();
        match *self {
            Before::Nothing => true,
            Before::Whole(version) => {
                value.extend_from_slice(version);
                true
            }
            Before::Delta { header, prefix, suffix, middle } => {
                let payload = present.get(HEADER..).unwrap_or_default();
                if prefix + suffix > payload.len() {
                    return false;
                }
                value.extend_from_slice(header);
                value.extend_from_slice(&payload[..prefix]);
                value.extend_from_slice(middle);
                value.extend_from_slice(&payload[payload.len() - suffix..]);
                true
            }
        }
    }
}

/// Appends the undo information of a change from `before` (the version with its header) to a
/// version with `payload`.
pub fn encode(to: &mut Vec<u8>, tree: &Tree, key: &[u8], before: Option<&[u8]>, payload: &[u8]) {
    let kind_at = to.len();
    to.push(REMOVE);
    to.extend_from_slice(&tree.id.to_le_bytes());
    to.extend_from_slice(&tree.root.0.to_le_bytes());
    to.extend_from_slice(&(key.len() as u16).to_le_bytes());
    to.extend_from_slice(key);
    let Some(before) = before else { return };
    to[kind_at] = WHOLE;
    if let Some((header, old)) = before.split_at_checked(HEADER) {
        let (prefix, suffix) = storage::btree::unchanged_ends(old, payload);
        // The two lengths are the cost of a delta.
        if prefix + suffix > 4 {
            to[kind_at] = DELTA;
            to.extend_from_slice(header);
            to.extend_from_slice(&(prefix as u16).to_le_bytes());
            to.extend_from_slice(&(suffix as u16).to_le_bytes());
            to.extend_from_slice(&old[prefix..old.len() - suffix]);
            return;
        }
    }
    to.extend_from_slice(before);
}

/// Reads undo information: the tree, the key, and the state before. `None` if the bytes are no undo
/// information.
pub fn decode(bytes: &[u8]) -> Option<(Tree, &[u8], Before<'_>)> {
    let (&kind, rest) = bytes.split_first()?;
    let (id, rest) = rest.split_first_chunk()?;
    let (root, rest) = rest.split_first_chunk()?;
    let (key_len, rest) = rest.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*key_len)))?;
    let before = match kind {
        REMOVE => Before::Nothing,
        WHOLE => Before::Whole(rest),
        DELTA => {
            let (header, rest) = rest.split_at_checked(HEADER)?;
            let (prefix, rest) = rest.split_first_chunk()?;
            let (suffix, middle) = rest.split_first_chunk()?;
            let (prefix, suffix) = (u16::from_le_bytes(*prefix), u16::from_le_bytes(*suffix));
            Before::Delta { header, prefix: usize::from(prefix), suffix: usize::from(suffix), middle }
        }
        _ => return None,
    };
    Some((Tree::new(u32::from_le_bytes(*id), PageNo(u32::from_le_bytes(*root))), key, before))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(payload: &str) -> Vec<u8> {
        [&[9; HEADER][..], payload.as_bytes()].concat()
    }

    #[test]
    fn versions_come_back_from_what_replaced_them() {
        let payloads =
            ["", "a", "abcdef", "abcdefgh", "abXdefgh", "abcdefgg", "aaaaaaaa", "aaaa", "zzzzzzzzzzzzzzzzz"];
        for old in payloads {
            for new in payloads {
                let (before, after) = (version(old), version(new));
                let mut undo = Vec::new();
                encode(&mut undo, &Tree::new(3, PageNo(8)), b"key", Some(&before), new.as_bytes());
                let (tree, key, decoded) = decode(&undo).expect("decodes");
                assert_eq!((tree.id, tree.root, key), (3, PageNo(8), &b"key"[..]));
                let mut back = Vec::new();
                assert!(decoded.build(&after, &mut back));
                assert_eq!(back, before, "{old} -> {new}");
            }
        }
    }

    #[test]
    fn an_insert_is_undone_by_removal_and_garbage_is_refused() {
        let mut undo = Vec::new();
        encode(&mut undo, &Tree::new(3, PageNo(8)), b"key", None, b"payload");
        assert_eq!(decode(&undo).map(|(_, key, before)| (key, before)), Some((&b"key"[..], Before::Nothing)));
        assert!((0..undo.len()).all(|len| decode(&undo[..len]).is_none()));
        assert!(decode(&[7; 40]).is_none());
        let delta = Before::Delta { header: &[0; HEADER], prefix: 3, suffix: 3, middle: b"" };
        assert!(!delta.build(&version("short"), &mut Vec::new()));
    }
}
