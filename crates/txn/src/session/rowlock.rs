//! Explicit row locks (SELECT FOR ...), and the newest version of the row with them.

use runtime::fiber;
use storage::Lsn;
use storage::btree::{Action, EntryChange, Tree};
use storage::log::TxnLink;

use super::wait::{Acquired, Running};
use super::{Inner, Isolation, LockOutcome, RowLock, Wait};
use crate::Error;
use crate::locks::{OWN_DELETE, TagRef};
use crate::status::Status;
use crate::undo::{self, Record};
use crate::version::{HEADER, Stamp};

/// The present version's meaning for the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Finding {
    /// This version is the newest; its payload has been copied.
    Newest(Stamp),
    /// The row is gone; by this version, if it is still there.
    Gone(Option<Stamp>),
    /// A running transaction wrote the row, and its write conflicts with the lock.
    Conflict(Running),
    /// A running transaction wrote the row without a conflict. The newest committed version lies
    /// behind this one.
    Behind(Running),
    /// The stored value has no version header.
    Corrupt,
}

/// The newest version behind those of a running transaction.
struct Former {
    /// The newest version of another transaction; its payload has been copied.
    version: Option<Stamp>,
    /// Whether the running transaction deleted the row on its way to the version it wrote last.
    deleted: bool,
}

/// The version from which a row is followed to its newest one.
#[derive(Clone, Copy)]
enum Origin {
    /// The version that was read.
    Seen(Stamp),
    /// The version that this command of this transaction put under the row's new key.
    Moved(u64, u32),
}

impl Origin {
    fn is(&self, stamp: &Stamp) -> bool {
        match self {
            Origin::Seen(seen) => seen == stamp,
            Origin::Moved(txid, command) => {
                !stamp.deleted && stamp.txid == *txid && stamp.command == *command
            }
        }
    }
}

/// How a row ended under a key.
struct End {
    /// The transaction that ended it there; 0 if that is no longer known.
    by: u64,
    /// The version with which it continues under another key, if it does.
    goes_on: Option<Origin>,
}

/// A look at a row under its leaf's latch, without a change. It sees any earlier writer. A later
/// writer sees the lock that was taken before.
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
            let held = if stamp.holds_keys() { RowLock::Update } else { RowLock::NoKeyUpdate };
            let conflicts = TagRef::Row(0, &[]).conflicts(self.lock as u8);
            let running = Running { stamp, owner };
            return match conflicts >> held as u8 & 1 {
                0 => Finding::Behind(running),
                _ => Finding::Conflict(running),
            };
        }
        if stamp.deleted {
            return Finding::Gone(Some(stamp));
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
        self.lock_newest((tree, key), &mut None, (lock, wait), row, &mut Vec::new())
    }

    /// See [`crate::TxnSession::lock_version`].
    pub(super) fn lock_version(
        &self,
        tree: &Tree,
        (key, seen): (&[u8], Stamp),
        (lock, wait): (RowLock, Wait),
        row: &mut Vec<u8>,
        moved_to: &mut Vec<u8>,
    ) -> Result<LockOutcome, Error> {
        moved_to.clear();
        let mut origin = Some(Origin::Seen(seen));
        let mut outcome = self.lock_newest((tree, key), &mut origin, (lock, wait), row, moved_to)?;
        if outcome == LockOutcome::Gone && origin.is_some() {
            let first = std::mem::take(moved_to);
            (outcome, *moved_to) = self.follow(tree, origin, (lock, wait), (row, first))?;
        }
        Ok(outcome)
    }

    /// Follows a row that continues from `origin` under the key `at`, and locks it where it is now.
    /// Returns that key, or an empty one if the row is not locked.
    fn follow(
        &self,
        tree: &Tree,
        mut origin: Option<Origin>,
        (lock, wait): (RowLock, Wait),
        (row, mut at): (&mut Vec<u8>, Vec<u8>),
    ) -> Result<(LockOutcome, Vec<u8>), Error> {
        let mut next = Vec::new();
        // Each move is newer than the one before it, so the loop ends.
        while origin.is_some() {
            next.clear();
            let outcome = self.lock_newest((tree, &at), &mut origin, (lock, wait), row, &mut next)?;
            match outcome {
                LockOutcome::Gone => std::mem::swap(&mut at, &mut next),
                LockOutcome::Locked(_) => return Ok((outcome, at)),
                LockOutcome::Skipped => return Ok((outcome, Vec::new())),
            }
        }
        Ok((LockOutcome::Gone, Vec::new()))
    }

    /// Locks the newest version under a key. With an origin it must be a version of that row,
    /// otherwise the row is gone from this key. `origin` becomes the version with which the row
    /// continues at the key put into `moved_to`, or `None`.
    fn lock_newest(
        &self,
        (tree, key): (&Tree, &[u8]),
        origin: &mut Option<Origin>,
        (lock, wait): (RowLock, Wait),
        row: &mut Vec<u8>,
        moved_to: &mut Vec<u8>,
    ) -> Result<LockOutcome, Error> {
        let origin_before = origin.take();
        let tag = TagRef::Row(tree.id, key);
        if let Some((present, outcome)) = self.own_row(tree, key, row)? {
            if let Some(from) = origin_before.filter(|from| !from.is(&present))
                && let Some(end) = self.ended(present, from, moved_to)?
                && end.by != present.txid
            {
                // The row ended here before this transaction put another one in its place.
                *origin = end.goes_on;
                return self.newest(Some(end.by), LockOutcome::Gone);
            }
            moved_to.clear();
            // The write excludes what an update excludes. To exclude FOR KEY SHARE too, lock the
            // row as for a deletion of the transaction's own version. That waits for present
            // holders of FOR KEY SHARE and for nobody else.
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
        let strict = self.isolation.get() == Isolation::RepeatableRead;
        let mut acquired = self.lock_tag(tag, lock as u8, if strict { Wait::Skip } else { wait })?;
        let mut outcome = Ok(LockOutcome::Skipped);
        if acquired == Acquired::Refused && strict {
            // A row that was changed after the snapshot is not worth a wait.
            let (version, found) = self.look_behind((tree, key), row)?;
            outcome = self.judge_found((version, found), (origin_before, origin), lock, moved_to);
            if outcome == Ok(LockOutcome::Skipped) && wait == Wait::Block {
                acquired = self.lock_tag(tag, lock as u8, wait)?;
            }
        }
        if acquired != Acquired::Refused {
            let found = self.look_until_free((tree, key), (lock, wait), row);
            outcome =
                found.and_then(|found| self.judge_found(found, (origin_before, origin), lock, moved_to));
        }
        if acquired == Acquired::New && !matches!(outcome, Ok(LockOutcome::Locked(_))) {
            self.unlock_tag(tag, 1 << lock as u8);
        }
        match outcome {
            Ok(LockOutcome::Skipped) if wait == Wait::NoWait => Err(Error::LockNotAvailable),
            outcome => outcome,
        }
    }

    /// The outcome for a row read as `from`, of which this version was found. `origin` and
    /// `moved_to` are as in [`Self::lock_newest`].
    fn judge_found(
        &self,
        (version, outcome): (Option<Stamp>, LockOutcome),
        (from, origin): (Option<Origin>, &mut Option<Origin>),
        lock: RowLock,
        moved_to: &mut Vec<u8>,
    ) -> Result<LockOutcome, Error> {
        let (Some(from), Some(version)) = (from, version) else {
            return self.newest(version.map(|version| version.txid), outcome);
        };
        let ended = if from.is(&version) { None } else { self.ended(version, from, moved_to)? };
        let same_row = ended.is_none() && outcome != LockOutcome::Gone;
        match lock == RowLock::KeyShare && same_row {
            true if self.isolation.get() == Isolation::RepeatableRead
                && self.keys_changed(version, from)? =>
            {
                return Err(Error::Serialization);
            }
            // An update of other columns allows this lock, even one that the snapshot does not see.
            true => self.depend_on(version.txid),
            false => drop(self.newest(Some(version.txid), outcome)?),
        }
        let Some(end) = ended else { return Ok(outcome) };
        *origin = end.goes_on;
        Ok(LockOutcome::Gone)
    }

    /// The newest committed version under a key, and whether the row is gone or has to be skipped.
    fn look_behind(
        &self,
        (tree, key): (&Tree, &[u8]),
        row: &mut Vec<u8>,
    ) -> Result<(Option<Stamp>, LockOutcome), Error> {
        // As if for the strongest lock, with which every running writer's version conflicts.
        let mut look = Look { session: self, lock: RowLock::Update, row, finding: Finding::Gone(None) };
        let found = tree.get(self.engine.store(), key, |present| look.judge(Some(present)))?;
        let version = match found.unwrap_or(Finding::Gone(None)) {
            Finding::Corrupt => return Err(Error::CorruptRow),
            Finding::Gone(version) => version,
            Finding::Newest(stamp) => Some(stamp),
            Finding::Conflict(running) | Finding::Behind(running) => self.former(running.stamp, row)?.version,
        };
        let gone = version.is_none_or(|version| version.deleted);
        Ok((version, if gone { LockOutcome::Gone } else { LockOutcome::Skipped }))
    }

    /// Whether repeatable read forbids to change a row behind this writer's version, however the
    /// writer ends: another change was committed after the snapshot.
    pub(super) fn is_behind(&self, running: Running) -> Result<bool, Error> {
        if self.isolation.get() != Isolation::RepeatableRead {
            return Ok(false);
        }
        let former = self.former(running.stamp, &mut Vec::new())?;
        Ok(former.version.is_some_and(|version| self.committed_later(version.txid)))
    }

    /// Locks a row that this transaction wrote itself. The row is locked already, as by an update.
    /// Only this transaction's version can be in place, and it stays the same while this session
    /// waits.
    fn own_row(
        &self,
        tree: &Tree,
        key: &[u8],
        row: &mut Vec<u8>,
    ) -> Result<Option<(Stamp, LockOutcome)>, Error> {
        let txid = self.txid.get();
        if txid == 0 {
            return Ok(None);
        }
        let found = tree.get(self.engine.store(), key, |value| {
            let stamp = Stamp::decode(value).filter(|stamp| stamp.txid == txid)?;
            row.clear();
            row.extend_from_slice(&value[HEADER..]);
            Some(stamp)
        })?;
        Ok(found
            .flatten()
            .map(|stamp| (stamp, if stamp.deleted { LockOutcome::Gone } else { LockOutcome::Locked(stamp) })))
    }

    /// See [`crate::TxnSession::await_newest`].
    pub(super) fn await_newest(
        &self,
        tree: &Tree,
        key: &[u8],
        row: &mut Vec<u8>,
    ) -> Result<Option<Stamp>, Error> {
        loop {
            // As if for the strongest lock, with which every running writer's version conflicts.
            let mut look = Look { session: self, lock: RowLock::Update, row, finding: Finding::Gone(None) };
            let found = tree.get(self.engine.store(), key, |present| look.judge(Some(present)))?;
            match found.unwrap_or(Finding::Gone(None)) {
                Finding::Corrupt => return Err(Error::CorruptRow),
                Finding::Gone(version) => {
                    version.iter().for_each(|version| self.depend_on(version.txid));
                    return Ok(None);
                }
                Finding::Newest(stamp) => {
                    self.newest(Some(stamp.txid), LockOutcome::Locked(stamp))?;
                    return Ok(Some(stamp));
                }
                Finding::Conflict(running) | Finding::Behind(running) => {
                    self.wait_for_end(tree, key, running)?;
                }
            }
            fiber::safe_point();
        }
    }

    /// Waits for an earlier writer and finds the newest version. The caller holds the row's lock.
    fn look_until_free(
        &self,
        (tree, key): (&Tree, &[u8]),
        (lock, wait): (RowLock, Wait),
        row: &mut Vec<u8>,
    ) -> Result<(Option<Stamp>, LockOutcome), Error> {
        loop {
            let mut look = Look { session: self, lock, row, finding: Finding::Corrupt };
            tree.change(self.engine.store(), key, &mut look)?;
            let running = match look.finding {
                Finding::Corrupt => return Err(Error::CorruptRow),
                Finding::Gone(version) => return Ok((version, LockOutcome::Gone)),
                Finding::Newest(stamp) => return Ok((Some(stamp), LockOutcome::Locked(stamp))),
                Finding::Behind(running) => match self.former(running.stamp, row)? {
                    // It has put another row in the place of the one it deleted.
                    Former { version: Some(stamp), deleted: true } if !stamp.deleted => running,
                    Former { version: Some(stamp), .. } if !stamp.deleted => {
                        return Ok((Some(stamp), LockOutcome::Locked(stamp)));
                    }
                    Former { version, .. } => return Ok((version, LockOutcome::Gone)),
                },
                Finding::Conflict(running) if lock == RowLock::KeyShare => {
                    match self.former(running.stamp, row)? {
                        Former { version: Some(stamp), .. } if !stamp.deleted => running,
                        Former { version, .. } => return Ok((version, LockOutcome::Gone)),
                    }
                }
                Finding::Conflict(running) => running,
            };
            let strict = self.isolation.get() == Isolation::RepeatableRead;
            match wait {
                Wait::Skip | Wait::NoWait if strict => return self.look_behind((tree, key), row),
                Wait::Skip | Wait::NoWait => return Ok((None, LockOutcome::Skipped)),
                Wait::Block if lock != RowLock::KeyShare && self.is_behind(running)? => {
                    return self.look_behind((tree, key), row);
                }
                Wait::Block => {}
            }
            self.wait_for_writer((tree, key), lock, running)?;
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

    /// How the row of `origin` ended under this key, whose newest version is `stamp`. `None`: it
    /// did not end. If it continues at another key, that key is put into `moved_to`. The versions
    /// down to the origin are newer than this session's snapshot, so their undo stays.
    fn ended(&self, mut stamp: Stamp, origin: Origin, moved_to: &mut Vec<u8>) -> Result<Option<End>, Error> {
        const UNKNOWN: End = End { by: 0, goes_on: None };
        let mut bytes = self.scratch.take();
        let mut end = None;
        let found = loop {
            if origin.is(&stamp) {
                break Ok(end);
            }
            if stamp.undo.is_none() {
                break Ok(Some(UNKNOWN));
            }
            if let Err(error) = undo::read(self.engine.store(), stamp.undo, &mut bytes) {
                break Err(error);
            }
            let record = Record::parse(&bytes);
            if stamp.deleted {
                // The oldest end after the origin is the row's own; later ones belong to other
                // rows.
                moved_to.clear();
                moved_to.extend_from_slice(record.map_or(&[], |record| record.moved_to));
                let goes_on = (!moved_to.is_empty()).then_some(Origin::Moved(stamp.txid, stamp.command));
                end = Some(End { by: stamp.txid, goes_on });
            }
            match record.and_then(|record| record.version).and_then(Stamp::decode) {
                Some(before) => stamp = before,
                None => break Ok(Some(UNKNOWN)),
            }
        };
        self.scratch.replace(bytes);
        Ok(found?)
    }

    /// See [`crate::TxnSession::keys_changed`].
    pub(super) fn keys_changed_since(&self, newest: Stamp, seen: Stamp) -> Result<bool, Error> {
        self.keys_changed(newest, Origin::Seen(seen))
    }

    /// Whether a unique key of the row was changed since the version `origin`, even if it was
    /// changed back. `stamp` is the row's newest version under the same key.
    fn keys_changed(&self, mut stamp: Stamp, origin: Origin) -> Result<bool, Error> {
        let mut bytes = self.scratch.take();
        let found = loop {
            if origin.is(&stamp) || stamp.keys || stamp.undo.is_none() {
                break Ok(stamp.keys && !origin.is(&stamp));
            }
            if let Err(error) = undo::read(self.engine.store(), stamp.undo, &mut bytes) {
                break Err(error);
            }
            match Record::parse(&bytes).and_then(|record| record.version).and_then(Stamp::decode) {
                Some(before) => stamp = before,
                None => break Ok(false),
            }
        };
        self.scratch.replace(bytes);
        Ok(found?)
    }

    /// The transaction that ended the row read as `seen` under this key, if another row's version
    /// by this transaction is in its place now. `None` if the row did not end, or if this
    /// transaction ended it. The version in place stays the same.
    pub(super) fn replaced_by(&self, tree: &Tree, key: &[u8], seen: Stamp) -> Result<Option<u64>, Error> {
        let found = tree.get(self.engine.store(), key, Stamp::decode)?;
        let Some(present) = found.flatten() else { return Ok(None) };
        let end = self.ended(present, Origin::Seen(seen), &mut Vec::new())?;
        Ok(end.map(|end| end.by).filter(|&by| by != 0 && by != self.txid.get()))
    }

    /// The error of repeatable read for a write to the row read as `seen`, which another
    /// transaction has changed or deleted since. As in PostgreSQL, a new key is a change.
    #[cold]
    pub(super) fn conflict(&self, tree: &Tree, key: &[u8], seen: Stamp) -> Result<Error, Error> {
        // The version of a running transaction counts for nothing: it may go back.
        let (version, _) = self.look_behind((tree, key), &mut Vec::new())?;
        let Some(present) = version else { return Ok(Error::ConcurrentDelete) };
        Ok(match self.ended(present, Origin::Seen(seen), &mut Vec::new())? {
            Some(End { goes_on: None, .. }) => Error::ConcurrentDelete,
            _ => Error::Serialization,
        })
    }

    /// The newest version that is not by the writer of `written`, which runs. Its undo stays: the
    /// writer ran after this session's snapshot was taken, so the horizon is below it.
    fn former(&self, written: Stamp, row: &mut Vec<u8>) -> Result<Former, Error> {
        let mut bytes = self.scratch.take();
        let (mut pointer, mut deleted) = (written.undo, false);
        let found = loop {
            if pointer.is_none() {
                break Ok(None);
            }
            if let Err(error) = undo::read(self.engine.store(), pointer, &mut bytes) {
                break Err(error);
            }
            let version = Record::parse(&bytes).and_then(|record| record.version);
            let Some(stamp) = version.and_then(Stamp::decode) else { break Ok(None) };
            if stamp.txid != written.txid {
                row.clear();
                row.extend_from_slice(&version.unwrap_or_default()[HEADER..]);
                break Ok(Some(stamp));
            }
            deleted |= stamp.deleted;
            pointer = stamp.undo;
        };
        self.scratch.replace(bytes);
        Ok(Former { version: found?, deleted })
    }
}
