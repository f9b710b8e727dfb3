//! Explicit row locks (SELECT FOR ...), and the newest version of the row with them.

use runtime::fiber;
use storage::Lsn;
use storage::btree::{Action, EntryChange, Tree};
use storage::log::TxnLink;

use super::wait::Acquired;
use super::{Inner, Isolation, LockOutcome, RowLock, Wait};
use crate::Error;
use crate::locks::{OWN_DELETE, TagRef};
use crate::status::Status;
use crate::undo::{self, Record};
use crate::version::{HEADER, Stamp, UndoPointer};

/// What the present version means for the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Finding {
    /// This version is the newest; its payload has been copied.
    Newest(Stamp),
    /// The row is gone; by which transaction, if that is known.
    Gone(Option<u64>),
    /// A running transaction wrote it in a way that conflicts: its number and slot.
    Conflict(u64, u32),
    /// A running transaction wrote it in a way that doesn't conflict: the newest committed version is behind this.
    Behind(u64, UndoPointer),
    /// The stored value is no version.
    Corrupt,
}

/// Looks at a row under its leaf's latch, without changing it: a writer that came before is seen, and one that comes
/// after sees the lock that was taken before.
struct Look<'a> {
    session: &'a Inner,
    lock: RowLock,
    row: &'a mut Vec<u8>,
    finding: Finding,
}

impl EntryChange for Look<'_> {
    fn decide(&mut self, present: Option<&[u8]>) -> Action {
        self.finding = self.judge(present);
        Action::None
    }

    fn value_len(&self) -> usize {
        0
    }

    fn apply(&mut self, _present: Option<&[u8]>, _value: &mut [u8], _undo: &mut Vec<u8>) -> TxnLink {
        TxnLink::NONE
    }

    fn logged(&mut self, _lsn: Lsn) {}
}

impl Look<'_> {
    fn judge(&mut self, present: Option<&[u8]>) -> Finding {
        let Some(present) = present else { return Finding::Gone(None) };
        let Some(stamp) = Stamp::decode(present) else { return Finding::Corrupt };
        let own = stamp.txid == self.session.txid.get();
        if !own
            && stamp.txid >= self.session.snapshot.get().horizon
            && let Status::Running(owner) = self.session.engine.status.get(stamp.txid)
        {
            let held = if stamp.deleted { RowLock::Update } else { RowLock::NoKeyUpdate };
            let conflicts = TagRef::Row(0, &[]).conflicts(self.lock as u8);
            return match conflicts >> held as u8 & 1 {
                0 => Finding::Behind(stamp.txid, stamp.undo),
                _ => Finding::Conflict(stamp.txid, owner),
            };
        }
        if stamp.deleted {
            return Finding::Gone(Some(stamp.txid));
        }
        self.row.clear();
        self.row.extend_from_slice(&present[HEADER..]);
        Finding::Newest(stamp)
    }
}

impl Inner {
    pub(super) fn lock_row(
        &self,
        tree: &Tree,
        key: &[u8],
        lock: RowLock,
        wait: Wait,
        row: &mut Vec<u8>,
    ) -> Result<LockOutcome, Error> {
        let tag = TagRef::Row(tree.id, key);
        if let Some(outcome) = self.own_row(tree, key, row)? {
            // The write holds off all that an update holds off. To hold off FOR KEY SHARE too, the row is locked as for a
            // deletion of the own version, which waits for those who hold it KEY SHARE already and for nobody else.
            let locked = matches!(outcome, LockOutcome::Locked(_));
            return match locked
                && lock == RowLock::Update
                && self.lock_tag(tag, OWN_DELETE, wait)? == Acquired::Refused
            {
                true if wait == Wait::Skip => Ok(LockOutcome::Skipped),
                true => Err(Error::LockNotAvailable),
                false => Ok(outcome),
            };
        }
        let acquired = match self.lock_tag(tag, lock as u8, wait)? {
            Acquired::Refused if wait == Wait::Skip => return Ok(LockOutcome::Skipped),
            Acquired::Refused => return Err(Error::LockNotAvailable),
            acquired => acquired,
        };
        let looked = self.look_until_free(tree, key, lock, wait, row);
        let outcome = looked.and_then(|(writer, outcome)| self.newest(writer, outcome));
        if acquired == Acquired::New && !matches!(outcome, Ok(LockOutcome::Locked(_))) {
            self.unlock_tag(tag);
        }
        outcome
    }

    /// See [`crate::TxnSession::hold_key`].
    pub(super) fn hold_key(&self, tree: &Tree, key: &[u8], row: &mut Vec<u8>) -> Result<LockOutcome, Error> {
        if let Some(outcome) = self.own_row(tree, key, row)? {
            return Ok(outcome);
        }
        let tag = TagRef::Row(tree.id, key);
        let acquired = self.lock_tag(tag, RowLock::KeyShare as u8, Wait::Block)?;
        let looked = self.look_until_free(tree, key, RowLock::KeyShare, Wait::Block, row);
        if acquired == Acquired::New && !matches!(looked, Ok((_, LockOutcome::Locked(_)))) {
            self.unlock_tag(tag);
        }
        let (writer, outcome) = looked?;
        writer.into_iter().for_each(|writer| self.depend_on(writer));
        Ok(outcome)
    }

    /// A row that this transaction wrote itself is locked already, as by an update; no version of it but its own can be
    /// in place, and stays the same while this session waits.
    fn own_row(&self, tree: &Tree, key: &[u8], row: &mut Vec<u8>) -> Result<Option<LockOutcome>, Error> {
        let txid = self.txid.get();
        if txid == 0 {
            return Ok(None);
        }
        let found = tree.get(&self.engine.store, key, |value| {
            let stamp = Stamp::decode(value).filter(|stamp| stamp.txid == txid)?;
            row.clear();
            row.extend_from_slice(&value[HEADER..]);
            Some(stamp)
        })?;
        Ok(found
            .flatten()
            .map(|stamp| if stamp.deleted { LockOutcome::Gone } else { LockOutcome::Locked(stamp) }))
    }

    /// With the row's lock held: waits for a writer that came before, and finds the newest version and its writer.
    fn look_until_free(
        &self,
        tree: &Tree,
        key: &[u8],
        lock: RowLock,
        wait: Wait,
        row: &mut Vec<u8>,
    ) -> Result<(Option<u64>, LockOutcome), Error> {
        loop {
            let mut look = Look { session: self, lock, row, finding: Finding::Corrupt };
            tree.change(&self.engine.store, key, &mut look)?;
            match look.finding {
                Finding::Corrupt => return Err(Error::CorruptRow),
                Finding::Gone(writer) => return Ok((writer, LockOutcome::Gone)),
                Finding::Newest(stamp) => return Ok((Some(stamp.txid), LockOutcome::Locked(stamp))),
                Finding::Behind(writer, pointer) => return self.newest_behind(writer, pointer, row),
                Finding::Conflict(..) if wait == Wait::Skip => return Ok((None, LockOutcome::Skipped)),
                Finding::Conflict(..) if wait == Wait::NoWait => return Err(Error::LockNotAvailable),
                Finding::Conflict(writer, owner) => {
                    self.wait_for_writer((tree, key), lock, writer, owner)?;
                }
            }
            fiber::safe_point();
        }
    }

    /// The outcome, unless repeatable read forbids what `writer` did after the snapshot.
    fn newest(&self, writer: Option<u64>, outcome: LockOutcome) -> Result<LockOutcome, Error> {
        if let Some(writer) = writer {
            if self.isolation.get() == Isolation::RepeatableRead && self.committed_later(writer) {
                return Err(Error::Serialization);
            }
            self.depend_on(writer);
        }
        Ok(outcome)
    }

    /// The newest version not by `writer`, which runs and holds no more than this lock allows. Its undo stays: it ran
    /// after this session's snapshot was taken, so the horizon is below it.
    fn newest_behind(
        &self,
        writer: u64,
        mut pointer: UndoPointer,
        row: &mut Vec<u8>,
    ) -> Result<(Option<u64>, LockOutcome), Error> {
        let mut bytes = self.scratch.take();
        let found = loop {
            if pointer.is_none() {
                break Ok(None);
            }
            if let Err(error) = undo::read(&self.engine.store, pointer, &mut bytes) {
                break Err(error);
            }
            let version = Record::parse(&bytes).and_then(|record| record.version);
            let Some(stamp) = version.and_then(Stamp::decode) else { break Ok(None) };
            if stamp.txid != writer {
                row.clear();
                row.extend_from_slice(&version.unwrap_or_default()[HEADER..]);
                break Ok(Some(stamp));
            }
            pointer = stamp.undo;
        };
        self.scratch.replace(bytes);
        Ok(match found? {
            Some(stamp) if stamp.deleted => (Some(stamp.txid), LockOutcome::Gone),
            Some(stamp) => (Some(stamp.txid), LockOutcome::Locked(stamp)),
            None => (None, LockOutcome::Gone),
        })
    }
}
