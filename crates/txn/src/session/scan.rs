//! Scans of the versions that a snapshot sees.
//!
//! What must hold:
//!
//! 1. A scan judges all entries by the snapshot with which it was made. Its owner keeps that
//!    snapshot announced until the scan has ended.
//! 2. An entry that it returns lies in the scan's own memory until the next call. No latch is held
//!    between two calls.
//! 3. A scan that has ended stays ended until it goes on with another range.
//! 4. It depends on every commit that decided whether an entry is visible, also for entries that it
//!    passes over.

use std::ops::Bound;

use storage::Lsn;
use storage::btree::{Cursor, Tree};

use super::read::{Look, look, older};
use crate::Snapshot;
use crate::version::HEADER;
use crate::{Error, Stamp, TxnSession};

/// Bounds of a scan, as keys.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// Lower bound.
    pub lower: Bound<&'a [u8]>,
    /// Upper bound.
    pub upper: Bound<&'a [u8]>,
}

impl Range<'_> {
    /// The range of all keys.
    pub const ALL: Range<'static> = Range { lower: Bound::Unbounded, upper: Bound::Unbounded };
}

/// Direction of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the lower bound up.
    Forward,
    /// From the upper bound down.
    Backward,
}

/// A scan in progress. It keeps a copy of the snapshot with which it was made. The copy alone does
/// not hold the horizon back: what the scan sees stays only while that snapshot's statement runs or
/// [`TxnSession::pin`] holds it.
pub struct Scan {
    cursor: Cursor,
    direction: Direction,
    /// The bound at which it begins; `None` once it has begun.
    start: Option<Bound<Vec<u8>>>,
    end: Bound<Vec<u8>>,
    snapshot: Snapshot,
    /// Where the entry's visible version is.
    age: Age,
    /// An older version's payload, and the undo record from which it came.
    row: Vec<u8>,
    record: Vec<u8>,
    ended: bool,
}

/// The visible version of an entry.
#[derive(Clone, Copy)]
enum Age {
    /// The one in the leaf.
    Newest,
    /// This version from undo, whose payload was copied into the scan's `row`.
    Older(Stamp),
}

/// A visible entry: key, payload, version.
pub type Entry<'a> = (&'a [u8], &'a [u8], Stamp);

impl Scan {
    pub(super) fn new(tree: &Tree, range: Range<'_>, direction: Direction, snapshot: Snapshot) -> Scan {
        let (start, end) = ends(range, direction);
        Scan {
            cursor: Cursor::new(*tree),
            direction,
            start: Some(start),
            end,
            snapshot,
            age: Age::Newest,
            row: Vec::new(),
            record: Vec::new(),
            ended: false,
        }
    }

    /// The next visible entry, borrowed from the scan's private copy of its leaf until the next
    /// call.
    ///
    /// Inline: its caller reads the parts where they lie. A copy of them reads bytes that were
    /// written in other pieces, for which a processor waits some 15 cycles each time.
    #[inline]
    pub fn next(&mut self, session: &TxnSession) -> Result<Option<Entry<'_>>, Error> {
        if !self.advance(session)? {
            return Ok(None);
        }
        let (key, value) = self.cursor.current();
        match self.age {
            Age::Newest => {
                let stamp = Stamp::decode(value).ok_or(Error::CorruptRow)?;
                Ok(Some((key, &value[HEADER..], stamp)))
            }
            Age::Older(stamp) => Ok(Some((key, &self.row, stamp))),
        }
    }

    /// Counts the visible entries that lie in one leaf, and moves past them. None if no entry is
    /// left. Only for a scan forward.
    pub fn count_leaf(&mut self, session: &TxnSession) -> Result<Option<u64>, Error> {
        debug_assert_eq!(self.direction, Direction::Forward);
        if self.ended {
            return Ok(None);
        }
        let state = session.state();
        let engine = state.engine();
        let store = engine.store();
        if let Some(start) = self.start.take() {
            begin(&mut self.cursor, self.direction, store, &start)?;
        }
        let Some(places) = self.cursor.next_places(store, self.end.as_ref().map(Vec::as_slice))? else {
            self.ended = true;
            return Ok(None);
        };
        let (mut count, mut depends) = (0, Lsn::ZERO);
        for place in places {
            let seen = match look(engine, &self.snapshot, self.cursor.value_at(place)?, &mut depends) {
                Look::This(_) => true,
                Look::Absent => false,
                Look::Older(pointer) => {
                    let room = (&mut self.record, &mut self.row);
                    older(engine, &self.snapshot, pointer, room, &mut depends)?.is_some()
                }
                Look::Corrupt => return Err(Error::CorruptRow),
            };
            count += u64::from(seen);
        }
        state.depend_on_commit(depends);
        Ok(Some(count))
    }

    /// Goes on with another range, in the same direction. If the range begins in the leaf that the
    /// scan has read last, that needs no descent.
    pub fn go_on(&mut self, range: Range<'_>) {
        let (start, end) = ends(range, self.direction);
        self.start = Some(start);
        self.end = end;
        self.ended = false;
    }

    /// Moves to the next visible entry. False if there is none.
    fn advance(&mut self, session: &TxnSession) -> Result<bool, Error> {
        if self.ended {
            return Ok(false);
        }
        let state = session.state();
        let engine = state.engine();
        let store = engine.store();
        if let Some(start) = self.start.take() {
            begin(&mut self.cursor, self.direction, store, &start)?;
        }
        loop {
            let entry = match self.direction {
                Direction::Forward => self.cursor.next(store)?,
                Direction::Backward => self.cursor.prev(store)?,
            };
            let Some((_, value)) = entry.filter(|(key, _)| within(key, self.direction, &self.end)) else {
                self.ended = true;
                return Ok(false);
            };
            let mut depends = Lsn::ZERO;
            let stamp = match look(engine, &self.snapshot, value, &mut depends) {
                Look::This(_) => {
                    state.depend_on_commit(depends);
                    self.age = Age::Newest;
                    return Ok(true);
                }
                Look::Absent => None,
                Look::Older(pointer) => {
                    older(engine, &self.snapshot, pointer, (&mut self.record, &mut self.row), &mut depends)?
                }
                Look::Corrupt => return Err(Error::CorruptRow),
            };
            state.depend_on_commit(depends);
            if let Some(stamp) = stamp {
                self.age = Age::Older(stamp);
                return Ok(true);
            }
        }
    }
}

fn begin(
    cursor: &mut Cursor,
    direction: Direction,
    store: &storage::Store,
    start: &Bound<Vec<u8>>,
) -> Result<(), storage::Error> {
    match (direction, start) {
        (Direction::Forward, Bound::Unbounded) => cursor.seek(store, &[]),
        (Direction::Forward, Bound::Included(key)) | (Direction::Backward, Bound::Excluded(key)) => {
            cursor.seek_near(store, key)
        }
        (Direction::Forward, Bound::Excluded(key)) | (Direction::Backward, Bound::Included(key)) => {
            cursor.seek_after(store, key)
        }
        (Direction::Backward, Bound::Unbounded) => cursor.seek_end(store),
    }
}

/// The bounds at which a scan of a range begins and ends.
fn ends(range: Range<'_>, direction: Direction) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let (start, end) = match direction {
        Direction::Forward => (range.lower, range.upper),
        Direction::Backward => (range.upper, range.lower),
    };
    (start.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec))
}

/// Whether a key lies before the end of the scan.
#[inline]
fn within(key: &[u8], direction: Direction, end: &Bound<Vec<u8>>) -> bool {
    match (direction, end) {
        (_, Bound::Unbounded) => true,
        (Direction::Forward, Bound::Included(end)) => key <= &end[..],
        (Direction::Forward, Bound::Excluded(end)) => key < &end[..],
        (Direction::Backward, Bound::Included(end)) => key >= &end[..],
        (Direction::Backward, Bound::Excluded(end)) => key > &end[..],
    }
}
