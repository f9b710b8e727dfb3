//! Readers of a page's content and of undo information.

use storage::page::{self, PAGE_SIZE, PageKind};
use storage::untrusted as nodes;
use txn::untrusted as undoing;
use txn::version::Stamp;

/// The operations on a leaf that keep it sound: insert, replace, remove, purge (docs/formats.md).
const LEAF_OPS: std::ops::RangeInclusive<u8> = 16..=19;

/// A page and an operation of the log on it. The payload also serves as a key to look up.
///
/// The input is the operation's code, the payload's length (u16), the payload and the page. The
/// page lies there as the log keeps images: the hole's offset (u16), then the bytes around it.
pub fn node(input: &[u8]) {
    let Some((op, payload, page)) = split(input) else { return };
    read(&page, payload);
    let was_sound = page::kind(&page) == Some(PageKind::Leaf) && nodes::is_sound(&page);
    let mut changed = page;
    let is_done = nodes::redo(op, payload, &mut changed);
    read(&changed, payload);
    if is_done && was_sound && LEAF_OPS.contains(&op) {
        assert!(nodes::is_sound(&changed), "operation {op} keeps a leaf sound");
    }
}

fn split(input: &[u8]) -> Option<(u8, &[u8], Vec<u8>)> {
    let (&op, rest) = input.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (payload, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let (start, bytes) = rest.split_first_chunk()?;
    let bytes = &bytes[..bytes.len().min(PAGE_SIZE)];
    let (front, back) = bytes.split_at_checked(usize::from(u16::from_le_bytes(*start)))?;
    let mut page = vec![0; PAGE_SIZE];
    page[..front.len()].copy_from_slice(front);
    page[PAGE_SIZE - back.len()..].copy_from_slice(back);
    Some((op, payload, page))
}

/// Reads a page as a lookup, a descent, a scan and a check of it do.
fn read(page: &[u8], key: &[u8]) {
    let _ = (nodes::look_up(page, key), nodes::child(page, key), nodes::is_sound(page));
    for (key, _) in nodes::entries(page).unwrap_or_default() {
        let _ = nodes::look_up(page, &key);
    }
}

/// Undo information. The input is the length of the version present (u8), that version, and bytes.
/// The bytes are read as an undo record of memory, and as the undo information of a log record.
pub fn undo(input: &[u8]) {
    let Some((&length, rest)) = input.split_first() else { return };
    let Some((present, bytes)) = rest.split_at_checked(usize::from(length)) else { return };
    if let Some(length) = undoing::undo_record(bytes) {
        assert!(length <= bytes.len(), "a record's parts lie within it");
    }
    if let Some(version) = undoing::version_before(bytes, present) {
        assert!(version.len() <= bytes.len() + present.len(), "a version comes from its two sources");
        let _ = Stamp::decode(&version);
    }
}
