//! The system tree: definitions of all databases, sequence counters, and trees to be freed, behind
//! the store's fixed root.
//!
//! A key begins with its area. A value longer than a tree's entry may be lies in several entries,
//! numbered at the end of the key. Everything is written by transactions, so definitions commit and
//! roll back with the data they describe.
//!
//! What must hold:
//!
//! 1. The numbers of areas are part of the format of a folder (docs/formats.md).
//! 2. Within an area whose values may take several entries, no key is the beginning of another one.
//!    Otherwise [`list`] would find foreign entries among the parts of a value.
//! 3. All parts of a value but the last have [`CHUNK`] bytes. A value of exactly that many bytes
//!    ends with a missing entry.
//! 4. Writes work on the newest value in repeatable read too, because definitions follow the newest
//!    catalog.
//! 5. A claim leaves no entry behind. Its key stays written by the transaction until that ends, so
//!    a second claim waits.

use std::ops::Bound;

use txn::{Direction, InsertOutcome, Outcome, Range, TxnSession};

use execution::from_txn;
use values::error::SqlError;

/// Databases: key = OID, value = name.
pub(crate) const DATABASES: u8 = 1;
/// Definitions: key = database's OID, then the object's own key.
pub(crate) const OBJECTS: u8 = 2;
/// Sequences: key = OID, value = counter and whether it was given out.
pub(crate) const SEQUENCES: u8 = 3;
/// Trees that were made: key = tree number, value = root page.
pub(crate) const MADE: u8 = 4;
/// Made trees whose object's creation has been committed: key = tree number.
pub(crate) const CLAIMED: u8 = 5;
/// Dropped trees: key = tree number, value = root page.
pub(crate) const DROPPED: u8 = 6;

/// Names that a running transaction gives to objects: key = database's OID, schema's OID, name. No
/// entry is there for long: see [`claim`].
pub(crate) const NAMES: u8 = 7;

/// Bytes of a value in one entry.
const CHUNK: usize = 1900;

/// The system tree's number.
pub(crate) const SYSTEM_TREE: u32 = 1;

/// The system tree.
pub(crate) fn tree() -> txn::trees::Tree {
    txn::trees::first(SYSTEM_TREE)
}

fn full_key(area: u8, key: &[u8], chunk: u16) -> Vec<u8> {
    let mut full = Vec::with_capacity(key.len() + 3);
    full.push(area);
    full.extend_from_slice(key);
    full.extend_from_slice(&chunk.to_be_bytes());
    full
}

/// Puts, replaces or (None) removes a value.
pub(crate) fn put(txn: &TxnSession, area: u8, key: &[u8], value: Option<&[u8]>) -> Result<(), SqlError> {
    replace(txn, area, key, value).map(|_| ())
}

/// As [`put`]. Returns whether there was a value.
///
/// Works on the newest value, in repeatable read too, because definitions follow the newest
/// catalog. An old snapshot would miss values that came after it.
pub(crate) fn replace(
    txn: &TxnSession,
    area: u8,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<bool, SqlError> {
    match txn.keeps_snapshot() {
        true => txn.with_newest(|| replace_seen(txn, area, key, value)),
        false => replace_seen(txn, area, key, value),
    }
}

/// As [`replace`], by the present snapshot.
fn replace_seen(txn: &TxnSession, area: u8, key: &[u8], value: Option<&[u8]>) -> Result<bool, SqlError> {
    // One statement may change an object several times.
    txn.next_command();
    let mut chunks =
        value.map(|value| if value.is_empty() { vec![value] } else { value.chunks(CHUNK).collect() });
    let wanted = chunks.take().unwrap_or_default();
    let mut there = false;
    for number in 0..=u16::MAX {
        let full = full_key(area, key, number);
        let chunk = wanted.get(usize::from(number)).copied();
        let replaced = put_entry(txn, &full, chunk)?;
        there |= replaced;
        if !replaced && chunk.is_none() {
            break;
        }
    }
    txn.next_command();
    Ok(there)
}

/// Puts, replaces or removes one entry; whether there was one.
fn put_entry(txn: &TxnSession, key: &[u8], value: Option<&[u8]>) -> Result<bool, SqlError> {
    // One command may change thousands of entries.
    runtime::fiber::safe_point();
    let mut present = Vec::new();
    let seen = txn.get(&tree(), key, &mut present).map_err(from_txn)?;
    let done = match (seen, value) {
        (None, None) => true,
        (None, Some(value)) => txn.insert(&tree(), key, value).map_err(from_txn)? == InsertOutcome::Done,
        (Some(seen), Some(value)) => {
            txn.update(&tree(), key, seen, value).map_err(from_txn)? == Outcome::Done
        }
        (Some(seen), None) => txn.delete(&tree(), key, seen).map_err(from_txn)? == Outcome::Done,
    };
    if done {
        Ok(seen.is_some())
    } else {
        Err(SqlError::new(crate::SqlState::SERIALIZATION_FAILURE, "tuple concurrently updated"))
    }
}

/// Claims a key until this transaction ends. Waits for any running transaction that has claimed it.
/// The claim makes and removes an entry, so it leaves nothing to roll back.
pub(crate) fn claim(txn: &TxnSession, area: u8, key: &[u8]) -> Result<(), SqlError> {
    let full = full_key(area, key, 0);
    for value in [Some(&b""[..]), None] {
        txn.next_command();
        put_entry(txn, &full, value)?;
    }
    txn.next_command();
    Ok(())
}

/// Whether another transaction that runs has claimed the key.
pub(crate) fn is_claimed(txn: &TxnSession, area: u8, key: &[u8]) -> Result<bool, SqlError> {
    txn.is_written_by_other(&tree(), &full_key(area, key, 0)).map_err(from_txn)
}

/// The value of a key.
pub(crate) fn get(txn: &TxnSession, area: u8, key: &[u8]) -> Result<Option<Vec<u8>>, SqlError> {
    let (mut value, mut part) = (Vec::new(), Vec::new());
    for number in 0..=u16::MAX {
        if txn.get(&tree(), &full_key(area, key, number), &mut part).map_err(from_txn)?.is_none() {
            return Ok((number > 0).then_some(value));
        }
        value.extend_from_slice(&part);
        if part.len() < CHUNK {
            break;
        }
    }
    Ok(Some(value))
}

/// A key of an area and its value.
pub(crate) type Entry = (Vec<u8>, Vec<u8>);

/// All values of an area whose keys begin with `prefix`.
pub(crate) fn list(txn: &TxnSession, area: u8, prefix: &[u8]) -> Result<Vec<Entry>, SqlError> {
    let mut low = vec![area];
    low.extend_from_slice(prefix);
    let range = Range { lower: Bound::Included(&low), upper: Bound::Unbounded };
    let mut scan = txn.scan(&tree(), range, Direction::Forward);
    let mut found: Vec<Entry> = Vec::new();
    while let Some((full, value, _)) = scan.next(txn).map_err(from_txn)? {
        runtime::fiber::safe_point();
        if !full.starts_with(&low) {
            break;
        }
        let Some((key, chunk)) = full[1..].split_last_chunk::<2>() else { continue };
        match found.last_mut() {
            Some((last, whole)) if u16::from_be_bytes(*chunk) > 0 && last == key => {
                whole.extend_from_slice(value)
            }
            _ => found.push((key.to_vec(), value.to_vec())),
        }
    }
    Ok(found)
}
