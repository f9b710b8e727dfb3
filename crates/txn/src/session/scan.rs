//! Scans of visible versions.

use std::ops::Bound;

use storage::Lsn;
use storage::btree::{Cursor, Tree};

use super::Snapshot;
use super::read::{Look, look, older};
use crate::version::HEADER;
use crate::{Error, Stamp, TxnSession};

/// Bounds of a scan, in keys.
#[derive(Clone, Copy, Debug)]
pub struct Range<'a> {
    /// Where it begins.
    pub lower: Bound<&'a [u8]>,
    /// Where it ends.
    pub upper: Bound<&'a [u8]>,
}

impl Range<'_> {
    /// Everything.
    pub const ALL: Range<'static> = Range { lower: Bound::Unbounded, upper: Bound::Unbounded };
}

/// Which way a scan goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the lower bound up.
    Forward,
    /// From the upper bound down.
    Backward,
}

/// A scan in progress. It keeps the snapshot it was made with, but only that snapshot's statement (or
/// [`TxnSession::pin`]) keeps what it sees alive.
pub struct Scan {
    cursor: Cursor,
    direction: Direction,
    /// Where it begins, until it has begun.
    start: Option<Bound<Vec<u8>>>,
    end: Bound<Vec<u8>>,
    snapshot: Snapshot,
    /// An older version's payload, and the undo record it came from.
    row: Vec<u8>,
    record: Vec<u8>,
    /// For [`Scan::next`]: the entry lent out.
    key: Vec<u8>,
    ended: bool,
}

/// A visible entry: key, payload, version.
pub type Entry<'a> = (&'a [u8], &'a [u8], Stamp);

impl Scan {
    pub(super) fn new(tree: &Tree, range: Range<'_>, direction: Direction, snapshot: Snapshot) -> Scan {
        let (start, end) = match direction {
            Direction::Forward => (range.lower, range.upper),
            Direction::Backward => (range.upper, range.lower),
        };
        Scan {
            cursor: Cursor::new(*tree),
            direction,
            start: Some(start.map(<[u8]>::to_vec)),
            end: end.map(<[u8]>::to_vec),
            snapshot,
            row: Vec::new(),
            record: Vec::new(),
            key: Vec::new(),
            ended: false,
        }
    }

    /// Begins again with other bounds, keeping what is allocated.
    pub fn restart(&mut self, range: Range<'_>) {
        let (start, end) = match self.direction {
            Direction::Forward => (range.lower, range.upper),
            Direction::Backward => (range.upper, range.lower),
        };
        self.start = Some(start.map(<[u8]>::to_vec));
        self.end = end.map(<[u8]>::to_vec);
        self.ended = false;
    }

    /// The next visible entry. [`Scan::next_with`] saves the copy.
    pub fn next(&mut self, session: &TxnSession) -> Result<Option<Entry<'_>>, Error> {
        let (mut key, mut row) = (std::mem::take(&mut self.key), Vec::new());
        std::mem::swap(&mut row, &mut self.row);
        let found = self.advance(session, &mut row, |found, payload, stamp, row| {
            key.clear();
            key.extend_from_slice(found);
            if let Some(payload) = payload {
                row.clear();
                row.extend_from_slice(payload);
            }
            stamp
        });
        (self.key, self.row) = (key, row);
        Ok(found?.map(|stamp| (&self.key[..], &self.row[..], stamp)))
    }

    /// Calls `read` with the next visible entry and gives its result. The slices lie in the scan's private copy of the
    /// leaf; `read` may not park.
    pub fn next_with<R>(
        &mut self,
        session: &TxnSession,
        read: impl FnOnce(&[u8], &[u8], Stamp) -> R,
    ) -> Result<Option<R>, Error> {
        let mut row = std::mem::take(&mut self.row);
        let found = self
            .advance(session, &mut row, |key, payload, stamp, row| read(key, payload.unwrap_or(row), stamp));
        self.row = row;
        found
    }

    /// Finds the next visible entry. `read` gets its payload, or none when that is an older version, put into `row`.
    fn advance<R>(
        &mut self,
        session: &TxnSession,
        row: &mut Vec<u8>,
        read: impl FnOnce(&[u8], Option<&[u8]>, Stamp, &mut Vec<u8>) -> R,
    ) -> Result<Option<R>, Error> {
        if self.ended {
            return Ok(None);
        }
        let state = session.state();
        let engine = state.engine();
        let store = &*engine.store;
        if let Some(start) = self.start.take() {
            begin(&mut self.cursor, self.direction, store, &start)?;
        }
        loop {
            let entry = match self.direction {
                Direction::Forward => self.cursor.next(store)?,
                Direction::Backward => self.cursor.prev(store)?,
            };
            let Some((key, value)) = entry.filter(|(key, _)| within(key, self.direction, &self.end)) else {
                self.ended = true;
                return Ok(None);
            };
            let mut depends = Lsn::ZERO;
            let stamp = match look(engine, &self.snapshot, value, &mut depends) {
                Look::This(stamp) => {
                    state.depend_on_commit(depends);
                    return Ok(Some(read(key, Some(&value[HEADER..]), stamp, row)));
                }
                Look::Absent => None,
                Look::Older(pointer) => {
                    older(engine, &self.snapshot, pointer, (&mut self.record, row), &mut depends)?
                }
                Look::Corrupt => return Err(Error::CorruptRow),
            };
            state.depend_on_commit(depends);
            if let Some(stamp) = stamp {
                return Ok(Some(read(key, None, stamp, row)));
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
            cursor.seek(store, key)
        }
        (Direction::Forward, Bound::Excluded(key)) | (Direction::Backward, Bound::Included(key)) => {
            cursor.seek_after(store, key)
        }
        (Direction::Backward, Bound::Unbounded) => cursor.seek_end(store),
    }
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
