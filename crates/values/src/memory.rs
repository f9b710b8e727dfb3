//! Memory of statements: asked for before a large value is built, and taken back from the largest.
//!
//! The allocator counts ([`runtime::account`]); a statement past its limit is interrupted at its next safe point. A single
//! call that builds a large value has no safe point in between, so it asks first.

use runtime::account;
use runtime::interrupt::Reason;

use crate::error::SqlError;
use crate::types::Datum;

/// A share of what a session may hold that one operator of a statement may keep before it uses temporary pages.
const SHARE: u64 = 4;
/// The same for a cursor or portal, of what is left: many may be open at a time.
const KEPT_SHARE: u64 = 32;
/// The share of the server's memory that all cores may keep of one kind.
const CORES_SHARE: i64 = 8;
/// An operator may always keep so much, in bytes.
const LEAST: usize = 64 << 10;

/// Asks for so many bytes before they are used.
#[inline]
pub fn ask(bytes: usize) -> Result<(), SqlError> {
    account::ask(bytes).map_err(SqlError::interrupted)
}

/// Refuses what a session asks to keep beyond its statement while memory is short: a session that was told to give memory
/// back may have received some thousand messages already, each of which asks for a little.
pub fn ask_to_keep() -> Result<(), SqlError> {
    let by = runtime::interrupt::Interrupted(Reason::Memory);
    if account::may_keep() { Ok(()) } else { Err(SqlError::interrupted(by)) }
}

/// Bytes an operator may keep, where it was told `wanted` and its session may hold `limit`.
pub fn within(wanted: usize, limit: u64) -> usize {
    wanted.min(usize::try_from(limit / SHARE).unwrap_or(usize::MAX)).max(LEAST)
}

/// Bytes that rows kept for a client may take before they go to temporary pages.
pub fn for_kept(wanted: usize) -> usize {
    let left = account::left().map_or(usize::MAX, |left| (left / KEPT_SHARE) as usize);
    wanted.min(left).max(LEAST)
}

/// Bytes that a core may keep of one kind for statements to come: `most`, or its part of an eighth of the server's memory.
pub fn for_core(most: usize) -> usize {
    let part = account::limit() / CORES_SHARE / runtime::core_count() as i64;
    usize::try_from(part).unwrap_or(0).min(most)
}

/// Bytes of a value that lie apart from it.
#[inline]
pub fn bytes_of(value: &Datum<'_>) -> usize {
    match value {
        Datum::Text(text) | Datum::Padded(text) => text.len(),
        Datum::Bytea(bytes) => bytes.len(),
        Datum::Array(array) => array.0.len(),
        _ => 0,
    }
}
