//! Memory of statements: asked for before a large value is built, and taken back from the largest.
//!
//! The allocator counts ([`runtime::account`]); a statement past its limit is interrupted at its next safe point. A single
//! call that builds a large value has no safe point in between, so it asks first.

use std::sync::Arc;

use runtime::account;
use runtime::interrupt::Reason;

use crate::database::Board;
use crate::error::SqlError;
use crate::functions::Function;
use crate::types::{Datum, oid};

/// A share of what a session may hold that one operator of a statement may keep before it uses temporary pages.
const SHARE: u64 = 4;
/// The same for a cursor or portal, of what is left: many may be open at a time.
const KEPT_SHARE: u64 = 32;
/// An operator may always keep so much, in bytes.
const LEAST: usize = 64 << 10;
/// A call makes at most so many times its arguments' size: the result, and copies on the way.
const COPIES: usize = 3;
/// Rounds of the watch before the next statement is stopped: the one that was told needs time to give up.
const PATIENCE: u32 = 25;

/// Asks for so many bytes before they are used.
#[inline]
pub(crate) fn ask(bytes: usize) -> Result<(), SqlError> {
    account::ask(bytes).map_err(SqlError::interrupted)
}

/// Bytes an operator may keep, where it was told `wanted` and its session may hold `limit`.
pub(crate) fn within(wanted: usize, limit: u64) -> usize {
    wanted.min(usize::try_from(limit / SHARE).unwrap_or(usize::MAX)).max(LEAST)
}

/// Bytes that rows kept for a client may take before they go to temporary pages.
pub(crate) fn for_kept(wanted: usize) -> usize {
    let left = account::left().map_or(usize::MAX, |left| (left / KEPT_SHARE) as usize);
    wanted.min(left).max(LEAST)
}

/// Bytes of a value that lie apart from it.
#[inline]
fn bytes_of(value: &Datum<'_>) -> usize {
    match value {
        Datum::Text(text) | Datum::Padded(text) => text.len(),
        Datum::Bytea(bytes) => bytes.len(),
        Datum::Array(array) => array.0.len(),
        _ => 0,
    }
}

/// Asks for the memory of a call over large values, where its result may be large too.
#[inline]
pub(crate) fn ask_for_call(function: &'static Function, arguments: &[Datum<'_>]) -> Result<(), SqlError> {
    let size = arguments.iter().map(bytes_of).sum();
    if size < LEAST { Ok(()) } else { ask_for_large_call(function, size) }
}

#[cold]
fn ask_for_large_call(function: &'static Function, size: usize) -> Result<(), SqlError> {
    // A copy on the way here gave way and left its interrupt.
    crate::work::tick(0)?;
    let small = matches!(
        function.result,
        oid::BOOL | oid::CHAR | oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::OID
    );
    if small { Ok(()) } else { ask(size.saturating_mul(COPIES)) }
}

/// Stops the statement of the session that holds most, while the process is short of memory.
pub(crate) struct Relief {
    board: Arc<Board>,
    /// The session that was cancelled last, and the number of rounds since.
    told: Option<(u32, u32)>,
}

impl Relief {
    pub fn new(board: &Arc<Board>) -> Relief {
        Relief { board: Arc::clone(board), told: None }
    }

    /// One round of the watch.
    pub fn round(&mut self) {
        let Some((session, held)) = self.board.largest() else { return };
        if !account::is_large(held) {
            return;
        }
        if let Some((told, rounds)) = &mut self.told
            && *told == session
            && *rounds < PATIENCE
        {
            *rounds += 1;
            return;
        }
        self.told = Some((session, 0));
        let (held, taken, limit) = (held >> 20, account::taken() >> 20, account::limit() >> 20);
        log::warn!(
            "memory is short ({taken} MiB of {limit} MiB): stopping the statement of session {session}, \
             which holds {held} MiB"
        );
        self.board.interrupt(session, Reason::Memory);
    }
}
