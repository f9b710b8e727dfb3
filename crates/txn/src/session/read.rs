//! Reading one row: the version that a snapshot sees.
//!
//! What must hold:
//!
//! 1. The payload and the version that a read returns belong together.
//! 2. Undo is followed only under an announced snapshot, which keeps the versions that it may need.
//! 3. A read depends on every commit that decided it, also on one that deleted the row.
//! 4. A stored value without a version header is damage and never an absent row.

use storage::Lsn;
use storage::btree::Tree;

use super::Inner;
use crate::Snapshot;
use crate::status::Status;
use crate::undo::{self, Record};
use crate::version::{HEADER, Stamp, UndoPointer};
use crate::visibility::{Sight, sight, writer};
use crate::{Engine, Error};

/// Outcome of a look at a stored value.
#[derive(Clone, Copy)]
pub(super) enum Look {
    /// The snapshot sees this version.
    This(Stamp),
    /// The snapshot does not see the row.
    Absent,
    /// The snapshot may see an older version.
    Older(UndoPointer),
    /// The value has no version header.
    Corrupt,
}

/// Judges a stored value by a snapshot.
#[inline]
pub(super) fn look(engine: &Engine, snapshot: &Snapshot, value: &[u8], depends: &mut Lsn) -> Look {
    let Some(stamp) = Stamp::decode(value) else { return Look::Corrupt };
    match sight(writer(&stamp, snapshot, &engine.status, depends), stamp.deleted) {
        Sight::This => Look::This(stamp),
        Sight::Absent => Look::Absent,
        Sight::Older => Look::Older(stamp.undo),
    }
}

/// Follows undo from `pointer` to the version that `snapshot` sees, and puts its payload into
/// `row`.
#[cold]
pub(super) fn older(
    engine: &Engine,
    snapshot: &Snapshot,
    mut pointer: UndoPointer,
    (bytes, row): (&mut Vec<u8>, &mut Vec<u8>),
    depends: &mut Lsn,
) -> Result<Option<Stamp>, Error> {
    while !pointer.is_none() {
        undo::read(engine.store(), pointer, bytes)?;
        let Some(version) = Record::parse(bytes).and_then(|record| record.version) else { return Ok(None) };
        match look(engine, snapshot, version, depends) {
            Look::This(stamp) => {
                row.clear();
                row.extend_from_slice(&version[HEADER..]);
                return Ok(Some(stamp));
            }
            Look::Absent => return Ok(None),
            Look::Older(next) => pointer = next,
            Look::Corrupt => return Err(Error::CorruptRow),
        }
    }
    Ok(None)
}

impl Inner {
    pub(super) fn get(&self, tree: &Tree, key: &[u8], row: &mut Vec<u8>) -> Result<Option<Stamp>, Error> {
        let snapshot = self.snapshot.get();
        let engine = &*self.engine;
        let mut depends = Lsn::ZERO;
        let found = tree.get(engine.store(), key, |value| {
            let found = look(engine, &snapshot, value, &mut depends);
            if let Look::This(_) = found {
                row.clear();
                row.extend_from_slice(&value[HEADER..]);
            }
            found
        })?;
        let stamp = match found {
            None | Some(Look::Absent) => None,
            Some(Look::This(stamp)) => Some(stamp),
            Some(Look::Older(pointer)) => {
                let mut bytes = self.scratch.take();
                let stamp = older(engine, &snapshot, pointer, (&mut bytes, row), &mut depends);
                self.scratch.replace(bytes);
                stamp?
            }
            Some(Look::Corrupt) => return Err(Error::CorruptRow),
        };
        self.depend_on_commit(depends);
        Ok(stamp)
    }

    pub(super) fn get_written(
        &self,
        tree: &Tree,
        key: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<Option<Stamp>, Error> {
        let found = tree.get(self.engine.store(), key, |value| {
            let stamp = Stamp::decode(value)?;
            payload.clear();
            payload.extend_from_slice(&value[HEADER..]);
            Some(stamp)
        })?;
        match found {
            Some(None) => Err(Error::CorruptRow),
            found => Ok(found.flatten()),
        }
    }

    pub(super) fn is_written_by_other(&self, tree: &Tree, key: &[u8]) -> Result<bool, Error> {
        let stamp = match tree.get(self.engine.store(), key, Stamp::decode)? {
            None => return Ok(false),
            Some(stamp) => stamp.ok_or(Error::CorruptRow)?,
        };
        let runs = matches!(self.engine.status.get(stamp.txid), Status::Running(_));
        Ok(runs && stamp.txid != self.txid.get())
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }
}
