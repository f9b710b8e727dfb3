//! The memory of statements: reserved before a large value is built, and taken back from the
//! statement that holds the most.
//!
//! The allocator counts ([`runtime::account`]), and a statement past its limit is interrupted at
//! its next safe point. A single call that builds a large value has no safe point, so it asks
//! first.

use runtime::account;
use runtime::interrupt::Reason;

use crate::error::SqlError;
use crate::types::Datum;

/// An operator of a statement may keep one of `SHARE` parts of its session's limit. It writes
/// temporary pages for more.
const SHARE: u64 = 4;
/// The same for a cursor or portal, as a part of the memory left: many may be open at a time.
const KEPT_SHARE: u64 = 32;
/// All cores together may keep one of `CORES_SHARE` parts of the server's memory for one kind of
/// cache.
const CORES_SHARE: i64 = 8;
/// Bytes an operator may always keep.
const LEAST: usize = 64 << 10;

/// Asks for `bytes` before they are used; 53200 when the session may not have them.
#[inline]
pub fn ask(bytes: usize) -> Result<(), SqlError> {
    account::ask(bytes).map_err(SqlError::interrupted)
}

/// Refuses memory that a session would keep beyond its statement while memory is short.
///
/// A session that was asked to give memory back may have received some thousand messages already,
/// each of which asks for a little.
pub fn ask_to_keep() -> Result<(), SqlError> {
    let by = runtime::interrupt::Interrupted(Reason::Memory);
    if account::may_keep() { Ok(()) } else { Err(SqlError::interrupted(by)) }
}

/// Bytes an operator may keep when it wants `wanted` and its session may hold `limit`.
pub fn within(wanted: usize, limit: u64) -> usize {
    wanted.min(usize::try_from(limit / SHARE).unwrap_or(usize::MAX)).max(LEAST)
}

/// Bytes that rows kept for a client may take before they move to temporary pages.
pub fn for_kept(wanted: usize) -> usize {
    let left = account::left().map_or(usize::MAX, |left| (left / KEPT_SHARE) as usize);
    wanted.min(left).max(LEAST)
}

/// Bytes that a core may keep of one kind for later statements: `most`, or the core's part of an
/// eighth of the server's memory.
pub fn for_core(most: usize) -> usize {
    let part = account::limit() / CORES_SHARE / runtime::core_count() as i64;
    usize::try_from(part).unwrap_or(0).min(most)
}

/// Bytes a value refers to outside its datum.
#[inline]
pub fn bytes_of(value: &Datum<'_>) -> usize {
    match value {
        Datum::Text(text) | Datum::Padded(text) => text.len(),
        Datum::Bytea(bytes) => bytes.len(),
        Datum::Array(array) => array.0.len(),
        _ => 0,
    }
}
