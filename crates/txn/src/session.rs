//! One session's transactions: the interface that the executor works on.
//!
//! A session is used on its own core, by one fiber at a time. So its own state is plain cells. The
//! state that other sessions may read is in its slot ([`crate::slots`]). Between two transactions a
//! session may come to another core.

mod advisory;
mod apart;
mod end;
mod limits;
mod load;
mod read;
mod rowlock;
pub mod scan;
mod snapshot;
mod tables;
mod wait;
mod write;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use runtime::hash::SeededMap;
use storage::Lsn;
use storage::btree::{Near, Tree};
use sync::atomic::Ordering;

use crate::locks::{AdvisoryKey, Tag};
use crate::slots::Slot;
use crate::status::Status;
use crate::version::UndoPointer;
use crate::{Engine, Error, Snapshot, Stamp};

pub use advisory::AdvisoryLock;
pub use limits::WaitLimits;
pub use load::{Load, Loaded};
pub use scan::{Direction, Range, Scan};

/// Isolation level of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// Each statement sees what was committed when it began.
    #[default]
    ReadCommitted,
    /// The whole transaction sees what was committed when its first statement began.
    RepeatableRead,
}

/// Outcome of an update or a delete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The row was written.
    Done,
    /// Another transaction committed a newer version than the one that was read: look again (read
    /// committed). This transaction keeps the row locked, so that no other comes between.
    Changed,
    /// The row no longer exists.
    Gone,
    /// This transaction itself changed the row after it was read.
    SelfChanged,
}

/// Outcome of an insert.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertOutcome {
    /// The row was written.
    Done,
    /// A live entry with that key exists.
    Duplicate,
}

/// Outcome of a request for a row lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockOutcome {
    /// Locked. The caller's buffer holds the newest row, which has this version.
    Locked(Stamp),
    /// The row no longer exists.
    Gone,
    /// Another session holds it ([`Wait::Skip`]).
    Skipped,
}

/// Strength of a row lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum RowLock {
    /// FOR KEY SHARE: others may change the row but not delete it.
    KeyShare,
    /// FOR SHARE: the row stays as it is.
    Share,
    /// FOR NO KEY UPDATE: the strength of an update.
    NoKeyUpdate,
    /// FOR UPDATE: the strength of a delete.
    Update,
}

/// How to treat a lock that is not free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Queue for the lock.
    Block,
    /// Fail with [`Error::LockNotAvailable`].
    NoWait,
    /// Skip the row.
    Skip,
}

/// PostgreSQL's table lock modes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum TableLock {
    /// SELECT.
    AccessShare,
    /// SELECT FOR ...
    RowShare,
    /// INSERT, UPDATE, DELETE.
    RowExclusive,
    /// VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY.
    ShareUpdateExclusive,
    /// CREATE INDEX.
    Share,
    /// CREATE TRIGGER.
    ShareRowExclusive,
    /// REFRESH MATERIALIZED VIEW CONCURRENTLY.
    Exclusive,
    /// DROP, TRUNCATE, most ALTER TABLE.
    AccessExclusive,
}

/// Outcome of a request for a table's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TableGrant {
    /// The request would have had to wait, and `wait` said not to.
    Refused,
    /// The transaction held this mode before.
    Held,
    /// The transaction holds this mode from now on.
    New,
}

/// Identifies a savepoint of the running transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SavepointId(u64);

/// The state to which a savepoint goes back.
#[derive(Clone, Copy, Debug)]
struct Savepoint {
    id: SavepointId,
    undo: UndoPointer,
    /// Number of row locks taken before it.
    rows: usize,
    tables: usize,
    /// Number of entries of [`Inner::raised`].
    raised: usize,
}

/// Trees whose last changed leaf a session keeps in mind. Trees share the places by number. A
/// table's tree and those of its indexes mostly have numbers in a row.
const NEAR: usize = 8;

/// A session's state.
pub(crate) struct Inner {
    engine: Arc<Engine>,
    /// The session's core, of the store's runtime.
    home: Cell<usize>,
    /// Its slot. It changes when a long rollback keeps the former slot.
    number: Cell<u32>,
    open: Cell<bool>,
    isolation: Cell<Isolation>,
    read_only: Cell<bool>,
    /// The transaction's number; 0 before its first change.
    txid: Cell<u64>,
    command: Cell<u32>,
    last_undo: Cell<UndoPointer>,
    last_lsn: Cell<Lsn>,
    snapshot: Cell<Snapshot>,
    /// Whether `snapshot` is in use.
    has_snapshot: Cell<bool>,
    /// Snapshots of open portals.
    pins: RefCell<Vec<Lsn>>,
    /// The highest commit this session depends on.
    seen: Cell<Lsn>,
    /// The highest commit known to former holders of locks that this session got. New snapshots
    /// include it.
    heard: Cell<Lsn>,
    /// The transaction's locks, with one entry for each mode of a lock. So ROLLBACK TO can give up
    /// a stronger mode and keep the weaker one.
    held: RefCell<Vec<(Tag, u8)>>,
    tables: RefCell<Vec<tables::HeldTable>>,
    /// Table-lock modes taken since the first savepoint on tables that were already locked before
    /// the last savepoint. ROLLBACK TO gives them up.
    raised: RefCell<Vec<(u32, TableLock)>>,
    /// The advisory locks that it holds, with the number of times each was taken.
    advisory: RefCell<SeededMap<(AdvisoryKey, AdvisoryLock), advisory::Counts>>,
    savepoints: RefCell<Vec<Savepoint>>,
    savepoints_made: Cell<u64>,
    limits: Arc<WaitLimits>,
    /// The leaves of its last changes, by tree.
    near: [Cell<Near>; NEAR],
    /// Scratch space, kept between uses.
    scratch: RefCell<Vec<u8>>,
    /// Called once the dropped session has taken its transaction back.
    farewell: RefCell<Option<Box<dyn FnOnce() + Send>>>,
    #[cfg(variants)]
    listed: crate::listed::Own,
}

impl Engine {
    /// Makes a session for the core on which it is called.
    pub fn session(self: &Arc<Self>) -> Result<TxnSession, Error> {
        let slot = self.slots.claim()?;
        #[cfg(variants)]
        self.slots.listed.enter(slot);
        Ok(TxnSession::new(Inner::new(Arc::clone(self), slot)))
    }
}

impl Inner {
    pub(crate) fn new(engine: Arc<Engine>, number: u32) -> Inner {
        Inner {
            engine,
            home: Cell::new(runtime::core()),
            number: Cell::new(number),
            open: Cell::new(false),
            isolation: Cell::new(Isolation::ReadCommitted),
            read_only: Cell::new(false),
            txid: Cell::new(0),
            command: Cell::new(0),
            last_undo: Cell::new(UndoPointer::NONE),
            last_lsn: Cell::new(Lsn::ZERO),
            snapshot: Cell::new(Snapshot::NONE),
            has_snapshot: Cell::new(false),
            pins: RefCell::new(Vec::new()),
            seen: Cell::new(Lsn::ZERO),
            heard: Cell::new(Lsn::ZERO),
            held: RefCell::new(Vec::new()),
            tables: RefCell::new(Vec::new()),
            raised: RefCell::new(Vec::new()),
            advisory: RefCell::default(),
            savepoints: RefCell::new(Vec::new()),
            savepoints_made: Cell::new(0),
            limits: Arc::default(),
            near: Default::default(),
            scratch: RefCell::new(Vec::new()),
            farewell: RefCell::new(None),
            #[cfg(variants)]
            listed: Default::default(),
        }
    }

    #[inline]
    fn slot(&self) -> &Slot {
        self.engine.slots.get(self.number.get())
    }

    fn begin(&self, isolation: Isolation, read_only: bool) {
        debug_assert!(!self.open.get(), "transactions don't nest");
        self.open.set(true);
        self.isolation.set(isolation);
        self.read_only.set(read_only);
        self.command.set(0);
    }

    /// The transaction's number. Assigns one at the first change.
    #[inline]
    fn ensure_txid(&self) -> Result<u64, Error> {
        match self.txid.get() {
            0 => self.assign_txid(),
            txid => Ok(txid),
        }
    }

    #[cold]
    fn assign_txid(&self) -> Result<u64, Error> {
        if self.read_only.get() {
            return Err(Error::ReadOnly);
        }
        let engine = &self.engine;
        let txid = engine.txids.assign(runtime::core(), engine.horizon())?;
        engine.status.set(txid, Status::Running(self.number.get()));
        self.slot().set_txid(txid);
        #[cfg(variants)]
        engine.slots.listed.begin(self.number.get(), &self.listed);
        self.slot().begin_logging(engine.store().wal().position());
        self.txid.set(txid);
        let mut snapshot = self.snapshot.get();
        snapshot.txid = txid;
        self.snapshot.set(snapshot);
        Ok(txid)
    }
}

/// One session's access to the engine. All calls are made on the session's own core, inside a
/// fiber. It may be dropped anywhere. Its open transaction is then rolled back on that core, on a
/// fiber of its own; recovery does it if the engine was closed before.
pub struct TxnSession {
    /// `None` only while the session is being dropped.
    inner: Option<Inner>,
}

impl TxnSession {
    pub(crate) fn new(inner: Inner) -> TxnSession {
        TxnSession { inner: Some(inner) }
    }

    #[inline]
    fn state(&self) -> &Inner {
        self.inner.as_ref().expect("a session has its state until it is dropped")
    }

    /// The session's engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.state().engine
    }

    /// Prefetches the cache lines that the next statement needs beside the session itself.
    #[inline]
    pub fn prefetch(&self) {
        sync::prefetch(self.state().slot());
    }

    /// The session has come to this core. It has no transaction: undo and a rollback's fiber belong
    /// to the core that wrote.
    pub fn enter_core(&self) {
        debug_assert!(!self.in_transaction(), "a transaction stays on its core");
        self.state().home.set(runtime::core());
    }

    /// Sets the session's name in [`Engine::locks`]: the process number that clients know.
    pub fn set_label(&self, label: u32) {
        // Relaxed: information only.
        self.state().slot().label.store(label, Ordering::Relaxed);
    }

    /// Begins a transaction.
    pub fn begin(&self, isolation: Isolation, read_only: bool) {
        self.state().begin(isolation, read_only)
    }

    /// Changes the open transaction's isolation. Call it only before the first snapshot.
    pub fn set_isolation(&self, isolation: Isolation) {
        debug_assert!(!self.state().has_snapshot.get(), "the snapshot was taken for the other level");
        self.state().isolation.set(isolation);
    }

    /// Begins a statement: the next command and, in read committed, a new snapshot.
    pub fn statement_start(&self) -> Result<(), Error> {
        self.state().statement_start();
        Ok(())
    }

    /// Ends a statement: gives its snapshot up (read committed).
    pub fn statement_end(&self) {
        self.state().statement_end()
    }

    /// Makes this command's own changes visible to the rest of the same statement.
    pub fn next_command(&self) {
        self.state().next_command()
    }

    /// Draws room in the log for the commit. A commit that follows before the session parks or logs
    /// anything does not fail.
    pub fn make_room_to_commit(&self) -> Result<(), Error> {
        self.state().make_room_to_commit()
    }

    /// Commits. With `sync`, returns once the transaction and all it depends on are on disk.
    pub fn commit(&self, sync: bool) -> Result<(), Error> {
        self.state().commit(sync)
    }

    /// Rolls the transaction back.
    pub fn rollback(&self) -> Result<(), Error> {
        self.state().rollback()
    }

    /// As [`TxnSession::rollback`], except for changes to the trees with these sorted numbers. The
    /// transaction made these trees, and they are dropped once it is over.
    pub fn rollback_but(&self, dropped: &[u32]) -> Result<(), Error> {
        self.state().rollback_but(dropped)
    }

    /// As [`TxnSession::rollback`], but a long rollback continues on another fiber, which keeps the
    /// transaction's locks until then. Not for a transaction whose trees are dropped once it is
    /// taken back.
    pub fn rollback_apart(&self) -> Result<(), Error> {
        self.state().rollback_apart()
    }

    /// Sets a savepoint. Costs nothing.
    pub fn savepoint(&self) -> SavepointId {
        self.state().savepoint()
    }

    /// Undoes the changes since the savepoint, which stays.
    pub fn rollback_to(&self, savepoint: SavepointId) -> Result<(), Error> {
        self.state().rollback_to(savepoint)
    }

    /// Forgets the savepoint and all later ones.
    pub fn release(&self, savepoint: SavepointId) -> Result<(), Error> {
        self.state().release(savepoint)
    }

    /// Sets what is called on the session's core once its transaction has been taken back. For a
    /// session that is about to be dropped.
    pub fn when_gone(&self, farewell: Box<dyn FnOnce() + Send>) {
        self.state().farewell.replace(Some(farewell));
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.state().open.get()
    }

    /// The transaction's number. Assigns one if it has none yet.
    pub fn txid(&self) -> Result<u64, Error> {
        self.state().ensure_txid()
    }

    /// The present snapshot.
    pub fn snapshot(&self) -> Snapshot {
        self.state().snapshot.get()
    }

    /// Keeps alive what the present snapshot sees until [`TxnSession::unpin`] (open portals), and
    /// returns the snapshot.
    pub fn pin(&self) -> Snapshot {
        self.state().pin()
    }

    /// Gives a pinned snapshot up.
    pub fn unpin(&self, snapshot: &Snapshot) {
        self.state().unpin(snapshot)
    }

    /// Makes a pinned snapshot the present one, and returns the former.
    pub fn swap_snapshot(&self, snapshot: Snapshot) -> Snapshot {
        self.state().swap_snapshot(snapshot)
    }

    /// A session that only reads. As long as it exists, it sees what this one's present snapshot
    /// sees. It takes no part in the transaction, and must be dropped before the transaction's
    /// trees are.
    pub fn reader(&self) -> Result<TxnSession, Error> {
        let reader = self.engine().session()?;
        // Relaxed: information only.
        reader.set_label(self.state().slot().label.load(Ordering::Relaxed));
        reader.begin(Isolation::RepeatableRead, true);
        reader.swap_snapshot(self.snapshot());
        Ok(reader)
    }

    /// Whether one snapshot serves the whole transaction (repeatable read).
    pub fn keeps_snapshot(&self) -> bool {
        self.state().isolation.get() == Isolation::RepeatableRead
    }

    /// Whether a transaction committed after the present snapshot was taken.
    pub fn committed_later(&self, writer: u64) -> bool {
        self.state().committed_later(writer)
    }

    /// Whether a unique key of a row was changed between the version `seen` and the `newest` one
    /// under the same key. True also if it was changed back, or might have been changed under an
    /// explicit FOR UPDATE.
    ///
    /// # Errors
    /// Those of reading undo.
    pub fn keys_changed(&self, newest: Stamp, seen: Stamp) -> Result<bool, Error> {
        self.state().keys_changed_since(newest, seen)
    }

    /// Runs `body` with a snapshot of now, in repeatable read too. For conditions that must hold
    /// for all rows, and for definitions.
    pub fn with_newest<R>(&self, body: impl FnOnce() -> R) -> R {
        let state = self.state();
        let kept = state.pin();
        state.take_snapshot();
        let result = body();
        // The kept snapshot sees what the transaction has done meanwhile.
        state.swap_snapshot(Snapshot { txid: state.txid.get(), command: state.command.get(), ..kept });
        state.unpin(&kept);
        result
    }

    /// The limits of waits for locks, which the owner of the session's settings changes.
    pub fn wait_limits(&self) -> &Arc<WaitLimits> {
        &self.state().limits
    }

    /// Waits until everything this session has seen is on disk. Call it before a client gets any of
    /// it, within a transaction too.
    #[inline]
    pub fn wait_seen(&self) -> Result<(), Error> {
        let state = self.state();
        if state.has_seen_more() { state.wait_seen() } else { Ok(()) }
    }

    /// The newest commit that this session has seen, its own included.
    pub fn seen(&self) -> Lsn {
        self.state().seen.get()
    }

    /// Makes this session depend on another one's commit: [`TxnSession::wait_seen`] and a commit
    /// that waits for the disk wait for that commit too.
    pub fn depend_on(&self, commit: Lsn) {
        self.state().depend_on_commit(commit);
    }

    /// Reads the visible version of `key`, and puts its payload into `row`.
    pub fn get(&self, tree: &Tree, key: &[u8], row: &mut Vec<u8>) -> Result<Option<Stamp>, Error> {
        self.state().get(tree, key, row)
    }

    /// Scans the versions that the present snapshot sees.
    pub fn scan(&self, tree: &Tree, range: Range<'_>, direction: Direction) -> Scan {
        Scan::new(tree, range, direction, self.state().snapshot.get())
    }

    /// Inserts a row.
    pub fn insert(&self, tree: &Tree, key: &[u8], row: &[u8]) -> Result<InsertOutcome, Error> {
        self.state().insert(tree, key, row)
    }

    /// Replaces the row that was read as `seen`.
    pub fn update(&self, tree: &Tree, key: &[u8], seen: Stamp, row: &[u8]) -> Result<Outcome, Error> {
        self.state().update(tree, key, seen, row)
    }

    /// As [`TxnSession::update`], for an update that changes a unique key other than the tree's: it
    /// excludes FOR KEY SHARE.
    pub fn update_keys(&self, tree: &Tree, key: &[u8], seen: Stamp, row: &[u8]) -> Result<Outcome, Error> {
        self.state().update_keys(tree, key, seen, row)
    }

    /// Deletes the row that was read as `seen`.
    pub fn delete(&self, tree: &Tree, key: &[u8], seen: Stamp) -> Result<Outcome, Error> {
        self.state().delete(tree, key, seen, &[])
    }

    /// Deletes the newest version under a key, if there is one, also if the snapshot does not see
    /// it. It is for an index entry of a row that this transaction has just changed or deleted.
    /// Until its end no other transaction changes that entry.
    pub fn remove_entry(&self, tree: &Tree, key: &[u8]) -> Result<(), Error> {
        self.state().remove_entry(tree, key)
    }

    /// Deletes the row that was read as `seen` and that continues under another key. The caller
    /// inserts it there next, within the same command. Sessions that wait for the row follow it
    /// ([`TxnSession::lock_version`]).
    pub fn delete_moved(
        &self,
        tree: &Tree,
        key: &[u8],
        seen: Stamp,
        moved_to: &[u8],
    ) -> Result<Outcome, Error> {
        self.state().delete(tree, key, seen, moved_to)
    }

    /// The payload of an entry that was written once, by any transaction, deleted or not. The
    /// caller has the key from another row that it sees or has locked; that row's snapshot keeps
    /// the entry.
    pub fn get_written(
        &self,
        tree: &Tree,
        key: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<Option<Stamp>, Error> {
        self.state().get_written(tree, key, payload)
    }

    /// Whether another running transaction has written the row's newest version, or deleted the
    /// row.
    pub fn is_written_by_other(&self, tree: &Tree, key: &[u8]) -> Result<bool, Error> {
        self.state().is_written_by_other(tree, key)
    }

    /// Locks the newest version of a row and puts its payload into `row`.
    pub fn lock_row(
        &self,
        tree: &Tree,
        key: &[u8],
        lock: RowLock,
        wait: Wait,
        row: &mut Vec<u8>,
    ) -> Result<LockOutcome, Error> {
        self.state().lock_row(tree, key, lock, wait, row)
    }

    /// The newest version under a key, once no other running transaction has written it. Puts its
    /// payload into `row`. `None`: there is no row. Takes no lock. Repeatable read refuses a row
    /// that changed after the snapshot.
    pub fn await_newest(&self, tree: &Tree, key: &[u8], row: &mut Vec<u8>) -> Result<Option<Stamp>, Error> {
        self.state().await_newest(tree, key, row)
    }

    /// Locks the newest version of the row that was read as `seen`, and puts its payload into
    /// `row`. Follows a row whose key was changed, and puts its new key into `moved_to`, which
    /// otherwise stays empty. A deleted row is gone, even if another row has its key since.
    pub fn lock_version(
        &self,
        tree: &Tree,
        (key, seen): (&[u8], Stamp),
        (lock, wait): (RowLock, Wait),
        row: &mut Vec<u8>,
        moved_to: &mut Vec<u8>,
    ) -> Result<LockOutcome, Error> {
        self.state().lock_version(tree, (key, seen), (lock, wait), row, moved_to)
    }

    /// Locks a table until the transaction ends. False if the lock was not free and `wait` said not
    /// to queue.
    pub fn lock_table(&self, table: u32, lock: TableLock, wait: Wait) -> Result<bool, Error> {
        Ok(self.grant_table(table, lock, wait)? != TableGrant::Refused)
    }

    /// As [`TxnSession::lock_table`], for a caller that may give the lock up again.
    pub fn grant_table(&self, table: u32, lock: TableLock, wait: Wait) -> Result<TableGrant, Error> {
        self.state().lock_table(table, lock, wait)
    }

    /// Gives up a mode of a table's lock. [`TxnSession::grant_table`] must have returned it as new
    /// since the last savepoint.
    pub fn unlock_table(&self, table: u32, lock: TableLock) {
        self.state().unlock_mode(table, lock);
    }

    /// Whether this transaction holds the table in this mode or a higher one.
    pub fn holds_table(&self, table: u32, lock: TableLock) -> bool {
        self.state().holds_table(table, lock)
    }

    /// Takes an advisory lock, for the session or for the transaction. The session gives it up as
    /// often as it took it, or when it ends. The transaction holds it until it ends or goes back to
    /// an earlier savepoint. False if the lock was not free and `wait` said not to queue.
    pub fn lock_advisory(
        &self,
        key: AdvisoryKey,
        lock: AdvisoryLock,
        for_session: bool,
        wait: Wait,
    ) -> Result<bool, Error> {
        self.state().lock_advisory(key, lock, for_session, wait)
    }

    /// Gives up one of the session's holds of an advisory lock. False if the session has none in
    /// this mode.
    pub fn unlock_advisory(&self, key: AdvisoryKey, lock: AdvisoryLock) -> bool {
        self.state().unlock_advisory(key, lock)
    }

    /// Memory that the session keeps for its advisory locks, in bytes.
    pub fn advisory_bytes(&self) -> usize {
        self.state().advisory_bytes()
    }

    /// Gives up all of the session's holds of advisory locks.
    pub fn unlock_all_advisory(&self) {
        self.state().unlock_all_advisory();
    }
}

impl Drop for TxnSession {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        inner.abandon();
    }
}
