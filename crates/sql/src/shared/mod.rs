//! The state that the sessions of an open data folder share: the engine, the definitions of all
//! databases, numbers, the activity table and autovacuum.
//!
//! What must hold:
//! 1. A database's shared catalog is replaced before the locks of the DDL that changed it are given
//!    up. So a session that then gets such a lock and compares generations sees the change.
//! 2. Numbers of trees and objects are given out once in a folder's life: a start continues above
//!    all stored numbers.
//! 3. A tree that no committed definition names is in the system tree's list of garbage, and is
//!    freed from there.

pub(crate) mod autoanalyze;
pub(crate) mod autovacuum;
pub(crate) mod definitions;
pub(crate) mod garbage;
mod numbers;
pub(crate) mod read_only;
pub(crate) mod system;
mod visibility;
pub(crate) mod wait_history;

use std::sync::Arc;

use runtime::Runtime;
use runtime::hash::{HashMap, HashSet};
use sync::atomic::{AtomicU32, Ordering};
use sync::{ShardedCounter, SpinLock};
use txn::{Engine, Isolation, Lsn, TxnSession};

use crate::activity::ActivityTable;
use autovacuum::Autovacuum;
use catalog::pg_catalog::DatabaseCounts;
use catalog::{
    BOOTSTRAP_ROLE, Catalog, Change, DatabaseEntry, DecodeError, FIRST_USER_OID, Role, StoredObject,
};
use definitions::Definitions;
use execution::from_txn;
use execution::row_numbers::RowNumbers;
use read_only::ReadOnlySettings;
use values::error::{SqlError, SqlState};
use wait_history::WaitHistory;

/// The state that all sessions share.
pub(crate) struct Shared {
    /// Distinguishes the folders of one process in core-local caches.
    pub instance: u64,
    pub runtime: Arc<Runtime>,
    pub engine: Arc<Engine>,
    pub activity: Arc<ActivityTable>,
    /// The read-only settings.
    read_only: SpinLock<Arc<ReadOnlySettings>>,
    databases: SpinLock<Vec<Arc<Definitions>>>,
    next_oid: AtomicU32,
    next_tree: AtomicU32,
    pub row_numbers: RowNumbers,
    /// Trees that running transactions are making, or that are being freed.
    busy_trees: SpinLock<HashSet<u32>>,
    /// Dropped trees that damage keeps from being freed, and why.
    damaged_trees: SpinLock<HashMap<u32, SqlError>>,
    pub autovacuum: Autovacuum,
    /// See [`wait_history`].
    pub wait_history: WaitHistory,
}

/// 3D000.
pub(crate) fn no_database(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))
}

/// The error for a stored definition that cannot be read. `key` is its key in the system tree's
/// area of definitions.
fn unreadable(database: &str, key: &[u8], error: DecodeError) -> SqlError {
    let kind = match key.get(4) {
        Some(1) => "schema",
        Some(2) => "table",
        Some(3) => "sequence",
        _ => "statistics",
    };
    let oid = key.last_chunk().map_or(0, |oid| u32::from_be_bytes(*oid));
    let message = format!("the definition of {kind} {oid} in database \"{database}\" {error}");
    SqlError::new(SqlState::DATA_CORRUPTED, message)
}

/// The role that every folder begins with.
pub(crate) const BOOTSTRAP_NAME: &str = "postgres";
/// The databases every folder begins with.
const FIRST_DATABASES: [(u32, &str); 2] = [(catalog::TEMPLATE_DATABASE, "template1"), (5, "postgres")];

impl Shared {
    /// The shared state of an engine that has just been opened, which sessions cannot use before
    /// [`Shared::load`].
    pub fn new(
        runtime: &Arc<Runtime>,
        engine: Arc<Engine>,
        max_connections: usize,
        read_only: ReadOnlySettings,
    ) -> Arc<Shared> {
        Arc::new(Shared {
            instance: runtime::random::u64(),
            runtime: Arc::clone(runtime),
            engine,
            activity: Arc::new(ActivityTable::new(max_connections)),
            read_only: SpinLock::new(&"read-only settings", Arc::new(read_only)),
            databases: SpinLock::new(&"databases", Vec::new()),
            next_oid: AtomicU32::new(FIRST_USER_OID),
            next_tree: AtomicU32::new(system::SYSTEM_TREE + 1),
            row_numbers: RowNumbers::new(runtime::random::u64()),
            busy_trees: SpinLock::new(&"busy trees", HashSet::default()),
            damaged_trees: SpinLock::new(&"damaged trees", HashMap::default()),
            autovacuum: Autovacuum::new(),
            wait_history: WaitHistory::new(),
        })
    }

    /// Replaces the read-only settings, for sessions that begin or reload theirs.
    pub fn set_read_only_settings(&self, settings: ReadOnlySettings) {
        let before = std::mem::replace(&mut *self.read_only.lock(), Arc::new(settings));
        drop(before);
    }

    /// The settings that describe the server.
    pub fn read_only_settings(&self) -> Arc<ReadOnlySettings> {
        Arc::clone(&self.read_only.lock())
    }

    /// Reads the definitions of all databases, making the first ones in a new folder.
    pub fn load(&self) -> Result<(), SqlError> {
        let (entries, objects, sequences) = self.internal(|txn| {
            let mut entries = system::list(txn, system::DATABASES, &[])?;
            if entries.is_empty() {
                for (oid, name) in FIRST_DATABASES {
                    system::put(txn, system::DATABASES, &oid.to_be_bytes(), Some(name.as_bytes()))?;
                }
                entries = system::list(txn, system::DATABASES, &[])?;
            }
            let objects = system::list(txn, system::OBJECTS, &[])?;
            for area in [system::MADE, system::DROPPED] {
                for (key, _) in system::list(txn, area, &[])? {
                    self.note_tree(key.first_chunk().map_or(0, |id| u32::from_be_bytes(*id)));
                }
            }
            Ok((entries, objects, system::list(txn, system::SEQUENCES, &[])?))
        })?;
        let entries: Arc<[DatabaseEntry]> = entries
            .into_iter()
            .filter_map(|(key, name)| {
                let oid = u32::from_be_bytes(*key.first_chunk()?);
                Some(DatabaseEntry { oid, name: String::from_utf8(name).ok()? })
            })
            .collect();
        let role =
            Role { oid: BOOTSTRAP_ROLE, name: BOOTSTRAP_NAME.to_owned(), superuser: true, login: true };
        let roles: Arc<[Role]> = Arc::new([role]);
        let mut databases = Vec::with_capacity(entries.len());
        let mut highest = entries.iter().map(|entry| entry.oid).max().unwrap_or(0);
        let counters: Vec<u32> = sequences
            .iter()
            .filter_map(|(key, _)| key.first_chunk().map(|oid| u32::from_be_bytes(*oid)))
            .collect();
        highest = highest.max(counters.iter().copied().max().unwrap_or(0));
        let mut used = HashSet::default();
        for entry in entries.iter() {
            let mut changes = Vec::new();
            for (key, bytes) in objects.iter().filter(|(key, _)| key.starts_with(&entry.oid.to_be_bytes())) {
                let object =
                    StoredObject::decode(bytes).map_err(|error| unreadable(&entry.name, key, error))?;
                changes.push(object.into_change());
            }
            let catalog =
                Catalog::new(entry.clone(), Arc::clone(&entries), Arc::clone(&roles)).with_changes(&changes);
            highest = highest.max(catalog.highest_oid());
            used.extend(catalog.sequences().map(|sequence| sequence.counter));
            self.note_trees(&changes);
            databases.push(Definitions::new(catalog, self.runtime.worker_count()));
        }
        self.next_oid.fetch_max(highest + 1, Ordering::Relaxed); // nobody else is here yet
        *self.databases.lock() = databases;
        // Counters of sequences whose transaction was rolled back, or ended by a crash.
        let unused: Vec<u32> = counters.into_iter().filter(|counter| !used.contains(counter)).collect();
        self.remove_counters(&unused)
    }

    /// New trees are numbered above the ones there are.
    fn note_trees(&self, changes: &[Change]) {
        for change in changes {
            if let Change::PutTable(table) = change {
                self.note_tree(table.trees().map(|tree| tree.id).max().unwrap_or(0));
            }
        }
    }

    fn note_tree(&self, id: u32) {
        self.next_tree.fetch_max(id + 1, Ordering::Relaxed); // while nobody else is here yet
    }

    /// A database by name.
    pub fn database(&self, name: &str) -> Option<Arc<Definitions>> {
        let databases = self.databases.lock();
        databases.iter().find(|database| database.catalog.lock().database.name == name).cloned()
    }

    /// All databases.
    pub fn databases(&self) -> Vec<Arc<Definitions>> {
        self.databases.lock().clone()
    }

    /// Sessions and ended transactions by database.
    pub fn database_counts(&self) -> Vec<DatabaseCounts> {
        let sessions = self.activity.databases();
        let of = |database: &Arc<Definitions>| {
            let DatabaseEntry { oid, name } = database.entry();
            let count = |counter: &ShardedCounter| counter.sum().max(0) as u64;
            DatabaseCounts {
                database: (oid, name),
                sessions: sessions.iter().filter(|database| **database == oid).count(),
                begun: count(&database.begun),
                committed: count(&database.committed),
                rolled_back: count(&database.rolled_back),
            }
        };
        self.databases().iter().map(of).collect()
    }

    /// Adds a database to those of the folder.
    pub fn add_database(&self, entry: DatabaseEntry) {
        self.change_databases(|databases| {
            let roles = databases.first().map(|database| Arc::clone(&database.catalog.lock().roles));
            let roles = roles.unwrap_or_else(|| Arc::new([]));
            let catalog = Catalog::new(entry, Arc::new([]), roles);
            databases.push(Definitions::new(catalog, self.runtime.worker_count()));
        });
    }

    /// Takes a database off those of the folder.
    pub fn remove_database(&self, oid: u32) {
        self.change_databases(|databases| databases.retain(|database| database.oid != oid));
    }

    /// Changes the list of databases and tells each of them.
    fn change_databases(&self, change: impl FnOnce(&mut Vec<Arc<Definitions>>)) {
        let mut databases = self.databases.lock();
        change(&mut databases);
        let entries: Arc<[DatabaseEntry]> = databases.iter().map(|database| database.entry()).collect();
        for database in databases.iter() {
            database.publish(|catalog| catalog.with_shared(Arc::clone(&entries), Arc::clone(&catalog.roles)));
        }
    }

    /// A new object's OID.
    pub fn new_oid(&self) -> u32 {
        self.next_oid.fetch_add(1, Ordering::Relaxed) // only uniqueness counts
    }

    /// A new tree's number.
    pub fn new_tree_id(&self) -> u32 {
        self.next_tree.fetch_add(1, Ordering::Relaxed) // only uniqueness counts
    }

    /// Runs a transaction of the engine's own. It commits at once and becomes durable with the next
    /// commit that waits. So a change that a client hears of needs such a commit after it, or
    /// [`Shared::internal_durable`].
    pub fn internal<R>(&self, body: impl FnOnce(&TxnSession) -> Result<R, SqlError>) -> Result<R, SqlError> {
        self.internal_noted(false, body).map(|(result, _)| result)
    }

    /// As [`Shared::internal`], but returns only once the transaction is on disk.
    pub fn internal_durable<R>(
        &self,
        body: impl FnOnce(&TxnSession) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        self.internal_noted(true, body).map(|(result, _)| result)
    }

    /// As [`Shared::internal`], and also returns the log's position that must be on disk for the
    /// transaction to be durable. With `sync` it is.
    fn internal_noted<R>(
        &self,
        sync: bool,
        body: impl FnOnce(&TxnSession) -> Result<R, SqlError>,
    ) -> Result<(R, Lsn), SqlError> {
        let txn = self.engine.session().map_err(from_txn)?;
        txn.begin(Isolation::ReadCommitted, false);
        txn.statement_start().map_err(from_txn)?;
        match body(&txn) {
            Ok(result) => {
                txn.commit(sync).map_err(from_txn)?;
                Ok((result, txn.seen()))
            }
            Err(error) => {
                txn.rollback().map_err(from_txn)?;
                Err(error)
            }
        }
    }
}
