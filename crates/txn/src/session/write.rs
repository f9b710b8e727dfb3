//! Insert, update, delete: one change of one entry, decided under its leaf's latch.
//!
//! 1. Under the latch the present version is judged ([`RowWrite::judge`]). Only the judgement to
//!    write has an effect: the replaced version goes to undo, the new one in place, both into the
//!    log.
//! 2. Any other judgement leaves the entry alone. Its needs (room for undo, a lock, the end of
//!    another transaction) is done with no latch held. Then the change begins again.
//! 3. An update or deletion that has to wait takes the row's lock first and keeps it. Later
//!    sessions queue behind it, and the row is handed over in order. An insert has no claim to the
//!    row that is there. It waits for the writer's end alone, and for a lock only where no row is.
//!    So inserts at one key have no order among them, as in PostgreSQL.
//! 4. A deletion marks the version's header and keeps its payload until no snapshot can see the
//!    row. So taking it back needs no room in the page, and the log carries the header alone.
//! 5. A snapshot finds one row under a key. So in repeatable read an insert fails if another
//!    transaction has deleted the row that the snapshot sees. The new row would hide that one.

use runtime::{fiber, interrupt};
use storage::Lsn;
use storage::btree::{Action, EntryChange, Tree};
use storage::log::TxnLink;

use super::wait::{Acquired, Running};
use super::{Inner, InsertOutcome, Isolation, Outcome, RowLock, Wait};
use crate::locks::{OWN_DELETE, TagRef};
use crate::status::Status;
use crate::undo::{NoRoom, Record};
use crate::version::{HEADER, Stamp, UndoPointer};
use crate::{Error, log_undo, purge};

/// The write to make.
#[derive(Clone, Copy)]
enum Kind<'a> {
    Insert(&'a [u8]),
    Update(Stamp, &'a [u8]),
    /// An update that changes a unique key other than the tree's.
    UpdateKeys(Stamp, &'a [u8]),
    /// A deletion, with the key under which the row continues; empty if it does not.
    Delete(Stamp, &'a [u8]),
    /// A deletion of the newest version, whichever it is.
    Remove,
}

impl<'a> Kind<'a> {
    /// The row lock of the same strength as the write.
    fn lock(&self) -> RowLock {
        match self {
            Kind::Update(..) => RowLock::NoKeyUpdate,
            Kind::Insert(_) | Kind::UpdateKeys(..) | Kind::Delete(..) | Kind::Remove => RowLock::Update,
        }
    }

    /// The version that was read; `None` for a write that depends on none.
    fn seen(&self) -> Option<Stamp> {
        match *self {
            Kind::Insert(_) | Kind::Remove => None,
            Kind::Update(seen, _) | Kind::UpdateKeys(seen, _) | Kind::Delete(seen, _) => Some(seen),
        }
    }

    /// The new version's payload; `None` for a deletion, which keeps the present one.
    fn payload(&self) -> Option<&'a [u8]> {
        match *self {
            Kind::Insert(row) | Kind::Update(_, row) | Kind::UpdateKeys(_, row) => Some(row),
            Kind::Delete(..) | Kind::Remove => None,
        }
    }

    /// The row's new key.
    fn moved_to(&self) -> &'a [u8] {
        match *self {
            Kind::Delete(_, key) => key,
            _ => &[],
        }
    }
}

/// The present version's meaning for the write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Judgement {
    /// Write.
    Write,
    /// A live entry, written by the transaction with this number, is in an insert's way.
    Duplicate(u64),
    /// The transaction with this number committed a newer version.
    Changed(u64),
    /// The row is gone; the transaction with this number deleted it, if that is known.
    Gone(Option<u64>),
    /// The transaction with this number deleted the row at an insert's key after the snapshot of
    /// repeatable read, which may see the row.
    MayHide(u64),
    /// The snapshot sees that row.
    Hides(u64),
    /// The session's own transaction changed the row after it was read.
    SelfChanged,
    /// A running transaction wrote the present version.
    Written(Running),
    /// Another session holds the row's lock or waits for it.
    Locked,
    /// The row is this transaction's own, and others hold it FOR KEY SHARE.
    KeyShared,
    /// The undo page has no room for the record here and now.
    NoRoom,
    /// The stored value has no version header.
    Corrupt,
}

struct RowWrite<'a> {
    session: &'a Inner,
    tree: Tree,
    key: &'a [u8],
    hash: u64,
    kind: Kind<'a>,
    txid: u64,
    core: usize,
    /// Whether the session holds the row's lock, or does not have to ask.
    holding: bool,
    /// Whether the snapshot sees no row in the place of the inserted one.
    hides_nothing: bool,
    judgement: Judgement,
    undo: UndoPointer,
    /// Bytes of the new version.
    len: usize,
    /// Bytes of key and version for which undo had no room.
    room: usize,
}

impl RowWrite<'_> {
    fn judge(&self, present: Option<&[u8]>) -> Judgement {
        let Some(present) = present else {
            return match self.kind {
                Kind::Insert(_) => self.unless_locked(),
                Kind::Update(..) | Kind::UpdateKeys(..) | Kind::Delete(..) | Kind::Remove => {
                    Judgement::Gone(None)
                }
            };
        };
        let Some(stamp) = Stamp::decode(present) else { return Judgement::Corrupt };
        if stamp.txid == self.txid {
            // The row is this transaction's own already. Others can hold only locks that an update
            // allows, and these matter only to a deletion or a change of keys.
            return match self.kind {
                Kind::Insert(_) if stamp.deleted => Judgement::Write,
                Kind::Insert(_) => Judgement::Duplicate(stamp.txid),
                Kind::Update(seen, _) if seen == stamp && !stamp.deleted => Judgement::Write,
                Kind::UpdateKeys(seen, _) | Kind::Delete(seen, _) if seen == stamp && !stamp.deleted => {
                    self.unless_key_shared()
                }
                Kind::Remove if stamp.deleted => Judgement::Gone(None),
                Kind::Remove => self.unless_key_shared(),
                Kind::Update(..) | Kind::UpdateKeys(..) | Kind::Delete(..) => Judgement::SelfChanged,
            };
        }
        let engine = &self.session.engine;
        if stamp.txid >= self.session.snapshot.get().horizon
            && let Status::Running(owner) = engine.status.get(stamp.txid)
        {
            return Judgement::Written(Running { stamp, owner });
        }
        match self.kind {
            Kind::Insert(_) if stamp.deleted && self.may_hide(stamp.txid) => Judgement::MayHide(stamp.txid),
            Kind::Insert(_) if stamp.deleted => {
                self.hear_of(stamp.txid);
                self.unless_locked()
            }
            Kind::Insert(_) => Judgement::Duplicate(stamp.txid),
            Kind::Update(seen, _) | Kind::UpdateKeys(seen, _) | Kind::Delete(seen, _)
                if seen == stamp && !stamp.deleted =>
            {
                self.unless_locked()
            }
            _ if stamp.deleted => Judgement::Gone(Some(stamp.txid)),
            Kind::Remove => self.unless_locked(),
            Kind::Update(..) | Kind::UpdateKeys(..) | Kind::Delete(..) => Judgement::Changed(stamp.txid),
        }
    }

    /// Notes the commit of the transaction that made room for this row. It may be in no snapshot
    /// yet, and the next one must not see what it has deleted beside this row.
    #[cold]
    fn hear_of(&self, deleter: u64) {
        if deleter >= self.session.snapshot.get().horizon
            && let Status::Committed(lsn) = self.session.engine.status.get(deleter)
        {
            self.session.hear(lsn);
        }
    }

    /// Whether the snapshot may see the row that `deleter` deleted.
    fn may_hide(&self, deleter: u64) -> bool {
        self.session.isolation.get() == Isolation::RepeatableRead
            && !self.hides_nothing
            && self.session.committed_later(deleter)
    }

    /// The judgement if no other session has the row's lock. Decided under the leaf's latch, after
    /// which no session locks the row without seeing the write.
    fn unless_locked(&self) -> Judgement {
        match self.holding {
            true => Judgement::Write,
            false => self.unless_held(self.kind.lock() as u8, Judgement::Locked),
        }
    }

    fn holds_for_update(&self) -> bool {
        let locks = &self.session.engine.locks;
        let tag = TagRef::Row(self.tree.id, self.key);
        locks.may_be_locked(self.hash)
            && locks.holds(tag, self.hash, self.session.number.get(), RowLock::Update as u8)
    }

    fn unless_key_shared(&self) -> Judgement {
        self.unless_held(OWN_DELETE, Judgement::KeyShared)
    }

    /// The judgement to write, or `held` if the row's lock is not free for this mode. If it is
    /// free, the session notes the last holder's commit, because the write takes the lock over.
    #[inline]
    fn unless_held(&self, mode: u8, held: Judgement) -> Judgement {
        let locks = &self.session.engine.locks;
        let tag = TagRef::Row(self.tree.id, self.key);
        if locks.may_be_locked(self.hash) && locks.must_wait(tag, self.hash, self.session.number.get(), mode)
        {
            return held;
        }
        self.session.hear(locks.released(self.hash));
        Judgement::Write
    }

    fn keep_before(&mut self, present: Option<&[u8]>) -> Result<(), NoRoom> {
        let session = self.session;
        let record = Record {
            tree: self.tree,
            key: self.key,
            txid: self.txid,
            previous: session.last_undo.get(),
            previous_lsn: session.last_lsn.get(),
            version: present,
            moved_to: self.kind.moved_to(),
        };
        self.room = self.key.len() + present.map_or(0, <[u8]>::len) + record.moved_to.len();
        // If the tree asks again before it applies the change, this record stays unused: no header
        // names it.
        self.undo = session.engine.undo.append(session.engine.store(), self.core, &record)?;
        Ok(())
    }
}

impl EntryChange for RowWrite<'_> {
    fn decide(&mut self, present: Option<&[u8]>) -> Action {
        self.judgement = self.judge(present);
        if self.judgement != Judgement::Write {
            return Action::None;
        }
        self.len = match self.kind.payload() {
            Some(payload) => HEADER + payload.len(),
            None => present.map_or(HEADER, <[u8]>::len),
        };
        if self.keep_before(present) == Err(NoRoom) {
            self.judgement = Judgement::NoRoom;
            return Action::None;
        }
        Action::Put
    }

    fn value_len(&self) -> usize {
        self.len
    }

    fn apply(&mut self, present: Option<&[u8]>, value: &mut [u8], undo: &mut Vec<u8>) -> TxnLink {
        let kept = present.and_then(|version| version.get(HEADER..)).unwrap_or_default();
        let payload = self.kind.payload().unwrap_or(kept);
        let stamp = Stamp {
            txid: self.txid,
            // There was no entry: readers that do not see this version need not look further.
            undo: if present.is_some() { self.undo } else { UndoPointer::NONE },
            command: self.session.command.get(),
            // A later update of this transaction keeps the mark of its change of keys. An update
            // under the lock of an explicit FOR UPDATE excludes what that lock excludes.
            keys: match self.kind {
                Kind::UpdateKeys(..) => true,
                Kind::Update(seen, _) => seen.keys && seen.txid == self.txid || self.holds_for_update(),
                Kind::Insert(_) | Kind::Delete(..) | Kind::Remove => false,
            },
            deleted: matches!(self.kind, Kind::Delete(..) | Kind::Remove),
        };
        value[..HEADER].copy_from_slice(&stamp.encode());
        value[HEADER..].copy_from_slice(payload);
        log_undo::encode(undo, &self.tree, self.key, present, payload);
        TxnLink { txn: self.txid, prev: self.session.last_lsn.get(), compensation: None }
    }

    fn logged(&mut self, lsn: Lsn) {
        self.session.last_lsn.set(lsn);
        self.session.last_undo.set(self.undo);
    }
}

impl Inner {
    pub(super) fn insert(&self, tree: &Tree, key: &[u8], row: &[u8]) -> Result<InsertOutcome, Error> {
        match self.write(tree, key, Kind::Insert(row))? {
            Judgement::Write => Ok(InsertOutcome::Done),
            Judgement::Hides(_) => Err(Error::Serialization),
            _ => Ok(InsertOutcome::Duplicate),
        }
    }

    pub(super) fn update(&self, tree: &Tree, key: &[u8], seen: Stamp, row: &[u8]) -> Result<Outcome, Error> {
        let judgement = self.write(tree, key, Kind::Update(seen, row))?;
        self.outcome((tree, key, seen), judgement)
    }

    pub(super) fn update_keys(
        &self,
        tree: &Tree,
        key: &[u8],
        seen: Stamp,
        row: &[u8],
    ) -> Result<Outcome, Error> {
        let judgement = self.write(tree, key, Kind::UpdateKeys(seen, row))?;
        self.outcome((tree, key, seen), judgement)
    }

    pub(super) fn delete(
        &self,
        tree: &Tree,
        key: &[u8],
        seen: Stamp,
        moved_to: &[u8],
    ) -> Result<Outcome, Error> {
        let judgement = self.write(tree, key, Kind::Delete(seen, moved_to))?;
        if judgement == Judgement::Write {
            purge::count_deletion(tree.id);
        }
        self.outcome((tree, key, seen), judgement)
    }

    pub(super) fn remove_entry(&self, tree: &Tree, key: &[u8]) -> Result<(), Error> {
        if self.write(tree, key, Kind::Remove)? == Judgement::Write {
            purge::count_deletion(tree.id);
        }
        Ok(())
    }

    fn outcome(
        &self,
        (tree, key, seen): (&Tree, &[u8], Stamp),
        judgement: Judgement,
    ) -> Result<Outcome, Error> {
        let strict = self.isolation.get() == Isolation::RepeatableRead;
        match judgement {
            Judgement::Write => Ok(Outcome::Done),
            Judgement::SelfChanged => Ok(Outcome::SelfChanged),
            Judgement::Changed(_) | Judgement::Gone(_) if strict => Err(self.conflict(tree, key, seen)?),
            Judgement::Changed(_) => Ok(Outcome::Changed),
            _ => Ok(Outcome::Gone),
        }
    }

    /// Makes a write and gives up the row's lock if the write has no use for it.
    fn write(&self, tree: &Tree, key: &[u8], kind: Kind<'_>) -> Result<Judgement, Error> {
        let txid = self.ensure_txid()?;
        let tag = TagRef::Row(tree.id, key);
        let engine = &self.engine;
        let mut change = RowWrite {
            session: self,
            tree: Tree { purge: Some(purge::dead), ..*tree },
            key,
            hash: tag.hash(),
            kind,
            txid,
            core: runtime::core(),
            holding: false,
            hides_nothing: false,
            judgement: Judgement::NoRoom,
            undo: UndoPointer::NONE,
            len: 0,
            // An estimate of the replaced version: about as long as the new one.
            room: key.len() + HEADER + kind.payload().map_or(0, <[u8]>::len),
        };
        if !engine.undo.has_room(change.core, change.room) {
            engine.undo.provide(engine.store(), change.core, change.room, engine.horizon())?;
        }
        // Modes of the row's lock that were taken to wait, as a mask.
        let mut taken = 0u8;
        let mut judgement = self.write_until_judged(&mut change, &mut taken);
        if judgement == Ok(Judgement::SelfChanged)
            && let Some(seen) = kind.seen()
            && let Some(by) = self.replaced_by(tree, key, seen)?
        {
            judgement = Ok(Judgement::Gone(Some(by)));
        }
        if taken != 0 && !matches!(judgement, Ok(Judgement::Write | Judgement::Changed(_))) {
            self.unlock_tag(tag, taken);
        }
        if let Ok(
            Judgement::Changed(writer)
            | Judgement::Gone(Some(writer))
            | Judgement::Hides(writer)
            | Judgement::Duplicate(writer),
        ) = judgement
        {
            self.depend_on(writer);
        }
        judgement
    }

    /// Runs a write until a judgement needs nothing more.
    fn write_until_judged(&self, change: &mut RowWrite<'_>, taken: &mut u8) -> Result<Judgement, Error> {
        let engine = &self.engine;
        let (tree, key, kind) = (change.tree, change.key, change.kind);
        let tag = TagRef::Row(tree.id, key);
        let own = kind.lock() as u8;
        let place = &self.near[tree.id as usize % self.near.len()];
        loop {
            purge::set_horizon(engine.horizon());
            let mut near = place.get();
            let changed = tree.change_near(engine.store(), key, &mut near, change);
            place.set(near);
            changed?;
            let (mode, waited) = match change.judgement {
                Judgement::NoRoom => {
                    engine.undo.provide(engine.store(), change.core, change.room, engine.horizon())?;
                    interrupt::check()?;
                    continue;
                }
                Judgement::MayHide(deleter) => {
                    if self.get(&tree, key, &mut Vec::new())?.is_some() {
                        return Ok(Judgement::Hides(deleter));
                    }
                    // The snapshot sees the same at the next try, even if the entry changes.
                    change.hides_nothing = true;
                    continue;
                }
                Judgement::Locked => (own, self.lock_tag(tag, own, Wait::Block)?),
                Judgement::KeyShared => (OWN_DELETE, self.lock_tag(tag, OWN_DELETE, Wait::Block)?),
                Judgement::Written(running) => match kind.seen() {
                    None => {
                        self.wait_for_end(&tree, key, running)?;
                        fiber::safe_point();
                        continue;
                    }
                    Some(seen) if self.is_behind(running)? => return Err(self.conflict(&tree, key, seen)?),
                    Some(_) => (own, self.wait_for_writer((&tree, key), kind.lock(), running)?),
                },
                Judgement::Corrupt => return Err(Error::CorruptRow),
                judgement => return Ok(judgement),
            };
            change.holding = true;
            *taken |= u8::from(waited == Acquired::New) << mode;
            fiber::safe_point();
        }
    }
}
