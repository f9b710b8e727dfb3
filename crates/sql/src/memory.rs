//! Memory of statements: asked for before a large value is built, and taken back from the largest.
//!
//! The allocator counts ([`runtime::account`]); a statement past its limit is interrupted at its next safe point. A single
//! call that builds a large value has no safe point in between, so it asks first.

use std::cmp::Reverse;
use std::collections::HashMap;
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
/// The share of the server's memory that all cores may keep of one kind.
const CORES_SHARE: i64 = 8;
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

/// Refuses what a session asks to keep beyond its statement while memory is short: a session that was told to give memory
/// back may have received some thousand messages already, each of which asks for a little.
pub(crate) fn ask_to_keep() -> Result<(), SqlError> {
    let by = runtime::interrupt::Interrupted(Reason::Memory);
    if account::may_keep() { Ok(()) } else { Err(SqlError::interrupted(by)) }
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

/// Bytes that a core may keep of one kind for statements to come: `most`, or its part of an eighth of the server's memory.
pub(crate) fn for_core(most: usize) -> usize {
    let part = account::limit() / CORES_SHARE / runtime::core_count() as i64;
    usize::try_from(part).unwrap_or(0).min(most)
}

/// Bytes of a value that lie apart from it.
#[inline]
pub(crate) fn bytes_of(value: &Datum<'_>) -> usize {
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

/// Rounds of the watch in a minute.
const A_MINUTE: u32 = 3000;

/// Stops the statements of the sessions that hold most, while the process is short of memory.
pub(crate) struct Relief {
    board: Arc<Board>,
    /// The sessions that were told to stop, and how many rounds ago.
    told: HashMap<u32, u32>,
    /// Rounds until it says again that too much is resident.
    quiet: u32,
}

impl Relief {
    pub fn new(board: &Arc<Board>) -> Relief {
        Relief { board: Arc::clone(board), told: HashMap::new(), quiet: 0 }
    }

    /// Says, once a minute at most, that more is resident than the server may have.
    fn tell_of_excess(&mut self) {
        let excess = account::excess();
        self.quiet = self.quiet.saturating_sub(1);
        if excess == 0 || self.quiet > 0 {
            return;
        }
        self.quiet = A_MINUTE;
        let taken = i64::try_from(account::taken()).unwrap_or(i64::MAX);
        log::warn!(
            "more memory is resident than the server may have, of which sessions hold {} MiB: they are stopped as if \
             they held {} MiB more; lower --buffers or --memory if this lasts",
            (taken - excess) >> 20,
            excess >> 20
        );
    }

    /// One round of the watch: as many of the largest are told to stop as hold what is too much.
    pub fn round(&mut self) {
        self.tell_of_excess();
        let mut sessions = self.board.held();
        account::share_among(sessions.len());
        sessions.retain(|(_, held)| account::is_large(*held));
        sessions.sort_unstable_by_key(|(_, held)| Reverse(*held));
        let taken = i64::try_from(account::taken()).unwrap_or(i64::MAX);
        let stopped = choose(&sessions, &mut self.told, taken - account::limit());
        if stopped.is_empty() {
            return;
        }
        for (session, _) in &stopped {
            self.board.interrupt(*session, Reason::Memory);
        }
        let held = stopped.iter().map(|(_, held)| held).sum::<i64>() >> 20;
        let (taken, limit) = (taken >> 20, account::limit() >> 20);
        match *stopped {
            [(session, _)] => log::warn!(
                "memory is short ({taken} MiB of {limit} MiB): stopping the statement of session {session}, \
                 which holds {held} MiB"
            ),
            _ => log::warn!(
                "memory is short ({taken} MiB of {limit} MiB): stopping the statements of {} sessions, \
                 which hold {held} MiB",
                stopped.len()
            ),
        }
    }
}

/// Chooses which sessions are told to stop, the largest first, until what they hold covers the excess. One that was told is
/// waited for; after [`PATIENCE`] rounds it is told once more, and others in its place.
fn choose(sessions: &[(u32, i64)], told: &mut HashMap<u32, u32>, excess: i64) -> Vec<(u32, i64)> {
    let before = std::mem::take(told);
    let waited_for = |session: &u32| before.get(session).is_some_and(|rounds| *rounds < PATIENCE);
    let expected: i64 =
        sessions.iter().filter(|(session, _)| waited_for(session)).map(|(_, held)| *held).sum();
    let mut excess = excess - expected;
    let mut stopped = Vec::new();
    for &(session, held) in sessions {
        let rounds = before.get(&session).map(|rounds| rounds + 1);
        let again = rounds.is_some_and(|rounds| rounds > 0 && rounds.is_multiple_of(PATIENCE));
        let chosen = again || rounds.is_none() && excess > 0;
        if chosen {
            stopped.push((session, held));
        }
        if rounds.is_none() && chosen {
            excess -= held;
        }
        if let Some(rounds) = rounds.or(chosen.then_some(0)) {
            told.insert(session, rounds);
        }
    }
    stopped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_of_the_largest_are_stopped_as_cover_the_excess() {
        let sessions = [(1, 50), (2, 40), (3, 30), (4, 20)];
        let mut told = HashMap::new();
        assert_eq!(choose(&sessions, &mut told, 80), [(1, 50), (2, 40)]);
        // They are waited for.
        assert_eq!(choose(&sessions, &mut told, 80), []);
        // One has given its memory back, the other is on its way; there is more than both held.
        assert_eq!(choose(&sessions[1..], &mut told, 50), [(3, 30)]);
        assert_eq!(choose(&sessions, &mut HashMap::new(), 0), []);
        assert_eq!(choose(&[], &mut told, 100), []);
        assert!(told.is_empty());
    }

    #[test]
    fn a_session_that_does_not_stop_does_not_keep_others_from_being_stopped() {
        let sessions = [(1, 50), (2, 40), (3, 30)];
        let mut told = HashMap::new();
        let mut stopped = Vec::new();
        for _ in 0..=3 * PATIENCE {
            stopped.extend(choose(&sessions, &mut told, 50).into_iter().map(|(session, _)| session));
        }
        assert_eq!(stopped[..3], [1, 1, 2]);
        let times = |wanted| stopped.iter().filter(|session| **session == wanted).count();
        assert_eq!((times(1), times(2)), (4, 2), "{stopped:?}");
    }
}
