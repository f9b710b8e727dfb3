//! Memory of statements: calls ask for it before they build a large value.
//!
//! The allocator counts memory ([`runtime::account`]). A statement past its limit is interrupted at
//! its next safe point. A single call that builds a large value has no safe point in between, so it
//! asks first.

use runtime::account;
use runtime::interrupt::Reason;

use crate::error::SqlError;
use crate::types::Datum;

/// The part of a session's memory that one operator may keep before it uses temporary pages: one in
/// this many.
const SHARE: u64 = 4;
/// The same for a cursor or portal, of the memory left: many may be open at a time.
const KEPT_SHARE: u64 = 32;
/// The share of the server's memory that all cores may keep of one kind.
const CORES_SHARE: i64 = 8;
/// Bytes that an operator may always keep.
const LEAST: usize = 64 << 10;

/// Asks for this many bytes before they are used.
#[inline]
pub fn ask(bytes: usize) -> Result<(), SqlError> {
    account::ask(bytes).map_err(SqlError::interrupted)
}

/// Refuses memory that a session would keep beyond its statement while memory is short. A session
/// that must give memory back may have received some thousand messages already, each of which asks
/// for a little.
pub fn ask_to_keep() -> Result<(), SqlError> {
    let by = runtime::interrupt::Interrupted(Reason::Memory);
    if account::may_keep() { Ok(()) } else { Err(SqlError::interrupted(by)) }
}

/// Bytes that an operator may keep, if its setting is `wanted` and its session may hold `limit`.
pub fn within(wanted: usize, limit: u64) -> usize {
    wanted.min(usize::try_from(limit / SHARE).unwrap_or(usize::MAX)).max(LEAST)
}

/// Bytes that rows kept for a client may take before they go to temporary pages.
pub fn for_kept(wanted: usize) -> usize {
    let left = account::left().map_or(usize::MAX, |left| (left / KEPT_SHARE) as usize);
    wanted.min(left).max(LEAST)
}

/// Bytes that a core may keep of one kind for statements to come: `most`, or its part of an eighth
/// of the server's memory.
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
