//! The view of the running system that system relations show beyond the catalog.
//!
//! The layers above implement [`System`]; the catalog only reads it.

use runtime::faults::Faults;
use runtime::workers::{WorkerCounts, WorkerUse};
use txn::AdvisoryKey;
use txn::folder::{LogState, PoolState, RegionUse};
use values::error::SqlError;

/// The running system as system relations show it. Every method has an empty default.
pub trait System {
    /// The current number of rows of a table.
    fn table_rows(&self, _table: u32) -> f64 {
        -1.0
    }
    /// The current number of pages of a tree.
    fn tree_pages(&self, _tree: u32) -> i32 {
        0
    }
    /// The settings, for pg_settings.
    fn settings(&self) -> Vec<Setting> {
        Vec::new()
    }
    /// The sessions, for pg_stat_activity.
    fn activity(&self) -> Vec<Activity> {
        Vec::new()
    }
    /// The session's cursors, for pg_cursors.
    fn cursors(&self) -> Vec<Cursor> {
        Vec::new()
    }
    /// The session's prepared statements, for pg_prepared_statements.
    fn prepared(&self) -> Vec<Prepared> {
        Vec::new()
    }
    /// Locks that sessions hold or wait for, for pg_locks.
    fn locks(&self) -> Vec<Lock> {
        Vec::new()
    }
    /// Page faults by thread, for allcore_page_faults.
    fn page_faults(&self) -> Vec<Faults> {
        Vec::new()
    }
    /// The buffers' regions of memory, for allcore_memory.
    fn memory(&self) -> Vec<RegionUse> {
        Vec::new()
    }
    /// The counts of the lock profiler, for allcore_lock_profile.
    fn lock_profile(&self) -> Vec<sync::profile::Row> {
        Vec::new()
    }
    /// Shows samples of what sessions waited for, oldest first, for allcore_wait_history.
    fn wait_history(&self, _show: &mut Show<'_>) -> Result<(), SqlError> {
        Ok(())
    }
    /// Sessions and transactions by database, for pg_stat_database.
    fn database_counts(&self) -> Vec<DatabaseCounts> {
        Vec::new()
    }
    /// The page pool, for allcore_buffers.
    fn buffers(&self) -> Option<PoolState> {
        None
    }
    /// The log, for allcore_log.
    fn log(&self) -> Option<LogState> {
        None
    }
    /// The workers, for allcore_workers.
    fn workers(&self) -> Vec<WorkerUse> {
        Vec::new()
    }
    /// Hardware and software counters of the workers, for allcore_counters.
    fn worker_counts(&self) -> Vec<WorkerCounts> {
        Vec::new()
    }
    /// The last value of a sequence; None before the first.
    fn sequence_value(&self, _sequence: u32) -> Option<i64> {
        None
    }
}

/// The part of a row of pg_stat_database that is counted.
#[derive(Debug, Clone)]
pub struct DatabaseCounts {
    /// The database's OID and name.
    pub database: (u32, String),
    /// Its sessions.
    pub sessions: usize,
    /// Sessions that began since the server started.
    pub begun: u64,
    /// Transactions that were committed since the server started.
    pub committed: u64,
    /// Transactions that were rolled back.
    pub rolled_back: u64,
}

/// A row of pg_settings.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value; a number in `unit` if it has a unit.
    pub value: String,
    /// `ms`, `s`, `B`, `kB`, `8kB` or `MB`.
    pub unit: Option<&'static str>,
    /// `bool`, `integer`, `real`, `string` or `enum`.
    pub kind: &'static str,
    /// The users and times allowed to change it, in PostgreSQL's words (pg_settings.context).
    pub context: &'static str,
    /// `default`, `client` or `session`.
    pub source: &'static str,
    /// The smallest and the largest value.
    pub range: Option<(String, String)>,
    /// The words it accepts.
    pub words: Option<Vec<&'static str>>,
    /// Its value when nothing sets it.
    pub boot: String,
    /// The value after RESET.
    pub reset: String,
}

/// A row of pg_stat_activity.
#[derive(Debug, Clone)]
pub struct Activity {
    /// The session's number.
    pub pid: i32,
    /// Its database's OID and name.
    pub database: (u32, String),
    /// The user that it logged in as: the role's OID, if `pg_roles` has that role, and the name.
    pub user: (Option<u32>, String),
    /// `application_name`.
    pub application: String,
    /// `active`, `idle`, `idle in transaction` or `idle in transaction (aborted)`.
    pub state: &'static str,
    /// The current or last statement.
    pub query: String,
    /// Times in microseconds since 2000-01-01 UTC at which the session, its transaction and its
    /// statement began.
    pub started: (i64, Option<i64>, Option<i64>),
    /// The time of the last change of its state, in the same unit.
    pub changed: i64,
    /// The wait event's type and name.
    pub waits: Option<(&'static str, &'static str)>,
}

/// Takes one sample after the other.
pub type Show<'a> = dyn FnMut(&WaitSample) -> Result<(), SqlError> + 'a;

/// A row of allcore_wait_history: one session at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitSample {
    /// The moment, in microseconds since 2000-01-01 UTC.
    pub time: i64,
    /// The session's number.
    pub pid: i32,
    /// The wait event's type and name; None while the session ran.
    pub waits: Option<(&'static str, &'static str)>,
    /// As [`Activity::state`].
    pub state: &'static str,
    /// The time at which its statement began, in the same unit.
    pub statement: Option<i64>,
    /// The beginning of its statement.
    pub query: String,
}

/// A row of pg_cursors.
#[derive(Debug, Clone)]
pub struct Cursor {
    /// Its name.
    pub name: String,
    /// The statement that declared it.
    pub statement: String,
    /// Whether it outlives its transaction.
    pub holdable: bool,
    /// Whether FETCH may move it backward.
    pub scrollable: bool,
    /// The time of its creation, in microseconds since 2000-01-01 UTC.
    pub created: i64,
}

/// A row of pg_prepared_statements.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Its name.
    pub name: String,
    /// The statement that prepared it.
    pub statement: String,
    /// The time of its creation, in microseconds since 2000-01-01 UTC.
    pub created: i64,
    /// The types of its parameters, by OID.
    pub parameters: Vec<u32>,
    /// The types of its columns, if it returns rows.
    pub results: Option<Vec<u32>>,
    /// Whether PREPARE made it, not a message of the extended protocol.
    pub by_command: bool,
}

/// The object that a row of pg_locks is about.
#[derive(Debug, Clone, Copy)]
pub enum Locked {
    /// A table, index or sequence, by its OID.
    Relation(u32),
    /// A row of the relation with this OID; 0 for a relation of another database.
    Row(u32),
    /// An object that is no relation: the OIDs of its class and of itself.
    Object(u32, u32),
    /// The end of a transaction.
    Transaction(u64),
    /// An advisory lock.
    Advisory(AdvisoryKey),
}

/// A row of pg_locks.
#[derive(Debug, Clone)]
pub struct Lock {
    /// The session's number; None for a lock of the engine itself.
    pub pid: Option<i32>,
    /// The OID of the session's database, if known.
    pub database: Option<u32>,
    /// The locked object.
    pub on: Locked,
    /// The mode, as PostgreSQL names it.
    pub mode: &'static str,
    /// Whether the session holds the lock; false while it waits.
    pub granted: bool,
    /// Whether the lock has no entry in the lock table.
    pub fast_path: bool,
}
