//! One session's transactions: the surface the executor works on.
#![allow(unused_variables, dead_code)]

pub mod scan;

use std::sync::Arc;
use std::time::Duration;

use storage::Lsn;
use storage::btree::Tree;

use crate::{Engine, Error, Stamp};

/// What a transaction may miss of others' changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// Each statement sees what was committed when it began.
    #[default]
    ReadCommitted,
    /// The whole transaction sees what was committed when its first statement began.
    RepeatableRead,
}

/// What a reader sees: commits up to `csn`, and its own changes of earlier commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Commits whose record ends at or before this are seen.
    pub csn: Lsn,
    /// What was on disk when it was taken: what is seen beyond makes the reader depend on it.
    pub durable: Lsn,
    /// The transaction's own number, 0 while it has none.
    pub txid: u64,
    /// Own changes of commands before this one are seen.
    pub command: u32,
}

/// What became of an update or a delete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Done.
    Done,
    /// Another transaction committed a newer version than the one that was read: look again (read committed). The row
    /// stays locked for this transaction, so that nobody comes between.
    Changed,
    /// The row is there no more.
    Gone,
    /// This same transaction changed the row after it was read, in this command.
    SelfChanged,
}

/// What became of an insert.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertOutcome {
    /// Done.
    Done,
    /// There is a live entry with that key.
    Duplicate,
}

/// What became of a request for a row lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockOutcome {
    /// Locked; the caller's buffer holds the newest row, of this version.
    Locked(Stamp),
    /// There is no such row any more.
    Gone,
    /// Somebody holds it ([`Wait::Skip`]).
    Skipped,
}

/// Strength of a row lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum RowLock {
    /// FOR KEY SHARE: the row may be changed but not deleted.
    KeyShare,
    /// FOR SHARE: the row stays as it is.
    Share,
    /// FOR NO KEY UPDATE: what an update takes.
    NoKeyUpdate,
    /// FOR UPDATE: what a delete takes.
    Update,
}

/// What to do when a lock isn't free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Queue for it.
    Block,
    /// Fail with [`Error::LockNotAvailable`].
    NoWait,
    /// Leave the row out.
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

/// Names a savepoint of the running transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SavepointId(u64);

/// One session's access to the engine. All calls are made on the session's own core, inside a fiber; dropping it rolls an
/// open transaction back.
pub struct TxnSession {
    engine: Arc<Engine>,
}

impl TxnSession {
    /// Begins a transaction.
    pub fn begin(&self, isolation: Isolation, read_only: bool) {
        todo!()
    }
    /// Begins a statement: the next command, and in read committed a new snapshot.
    pub fn statement_start(&self) -> Result<(), Error> {
        todo!()
    }
    /// Ends a statement: its snapshot is given up (read committed).
    pub fn statement_end(&self) {
        todo!()
    }
    /// Makes this command's own changes visible to what follows in the same statement.
    pub fn next_command(&self) {
        todo!()
    }
    /// Commits. With `sync`, returns once the transaction and all it depends on is on disk.
    pub fn commit(&self, sync: bool) -> Result<(), Error> {
        todo!()
    }
    /// Takes everything back.
    pub fn rollback(&self) -> Result<(), Error> {
        todo!()
    }
    /// Marks a point to go back to: costs nothing.
    pub fn savepoint(&self) -> SavepointId {
        todo!()
    }
    /// Takes back what was done since the savepoint, which stays.
    pub fn rollback_to(&self, savepoint: SavepointId) -> Result<(), Error> {
        todo!()
    }
    /// Forgets the savepoint and those after it.
    pub fn release(&self, savepoint: SavepointId) -> Result<(), Error> {
        todo!()
    }
    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        todo!()
    }
    /// Whether the open transaction has changed anything.
    pub fn has_changes(&self) -> bool {
        todo!()
    }
    /// The transaction's number, assigned now if it has none yet.
    pub fn txid(&self) -> Result<u64, Error> {
        todo!()
    }
    /// The present snapshot.
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }
    /// Keeps what the present snapshot sees until [`TxnSession::unpin`] (open portals), and gives it.
    pub fn pin(&self) -> Snapshot {
        todo!()
    }
    /// Gives a pinned snapshot up.
    pub fn unpin(&self, snapshot: &Snapshot) {
        todo!()
    }
    /// Makes a pinned snapshot the present one; gives the former.
    pub fn swap_snapshot(&self, snapshot: Snapshot) -> Snapshot {
        todo!()
    }
    /// `lock_timeout`; zero is none.
    pub fn set_lock_timeout(&self, limit: Duration) {
        todo!()
    }
    /// Waits until everything this session has seen is on disk: before a reply that shows it, outside of a transaction.
    pub fn wait_seen(&self) -> Result<(), Error> {
        todo!()
    }
    /// The visible version of `key`: its payload is put into `row`.
    pub fn get(&self, tree: &Tree, key: &[u8], row: &mut Vec<u8>) -> Result<Option<Stamp>, Error> {
        todo!()
    }
    /// A scan of the visible versions by the present snapshot.
    pub fn scan(&self, tree: &Tree, range: Range<'_>, direction: Direction) -> Scan {
        todo!()
    }
    /// Inserts a row.
    pub fn insert(&self, tree: &Tree, key: &[u8], row: &[u8]) -> Result<InsertOutcome, Error> {
        todo!()
    }
    /// Replaces the row that was read as `seen`.
    pub fn update(&self, tree: &Tree, key: &[u8], seen: Stamp, row: &[u8]) -> Result<Outcome, Error> {
        todo!()
    }
    /// Deletes the row that was read as `seen`.
    pub fn delete(&self, tree: &Tree, key: &[u8], seen: Stamp) -> Result<Outcome, Error> {
        todo!()
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
        todo!()
    }
    /// Locks a table until the transaction ends.
    pub fn lock_table(&self, table: u32, lock: TableLock, wait: Wait) -> Result<bool, Error> {
        todo!()
    }
}

pub use scan::{Direction, Range, Scan};
