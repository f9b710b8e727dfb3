//! The state of the running system that system relations show, beyond the catalog.

use txn::AdvisoryKey;

/// The running system, as far as system relations show it. Everything has an empty default.
pub trait System {
    /// Rows of a table now.
    fn table_rows(&self, _table: u32) -> f64 {
        -1.0
    }
    /// Pages of a tree now.
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
    /// The locks that are held or waited for, for pg_locks.
    fn locks(&self) -> Vec<Lock> {
        Vec::new()
    }
    /// The last value of a sequence, if it has given one.
    fn sequence_value(&self, _sequence: u32) -> Option<i64> {
        None
    }
}

/// A row of pg_settings.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, a number in `unit` where that is there.
    pub value: String,
    /// `ms`, `s`, `B`, `kB`, `8kB` or `MB`.
    pub unit: Option<&'static str>,
    /// `bool`, `integer`, `real`, `string` or `enum`.
    pub kind: &'static str,
    /// PostgreSQL's word for who may change it and when.
    pub context: &'static str,
    /// `default`, `client` or `session`.
    pub source: &'static str,
    /// The least and the largest value.
    pub range: Option<(String, String)>,
    /// The words it takes.
    pub words: Option<Vec<&'static str>>,
    /// Its value where nobody sets it.
    pub boot: String,
    /// The value that RESET gives it.
    pub reset: String,
}

/// A row of pg_stat_activity.
#[derive(Debug, Clone)]
pub struct Activity {
    /// The session's number.
    pub pid: i32,
    /// Its database's OID and name.
    pub database: (u32, String),
    /// Its user.
    pub user: String,
    /// `application_name`.
    pub application: String,
    /// `active`, `idle`, `idle in transaction` or `idle in transaction (aborted)`.
    pub state: &'static str,
    /// The present or last statement.
    pub query: String,
    /// Times in microseconds since 2000-01-01 UTC: session, transaction and statement begun.
    pub started: (i64, Option<i64>, Option<i64>),
    /// When its state last changed.
    pub changed: i64,
    /// Its wait event: type and name.
    pub waits: Option<(&'static str, &'static str)>,
}

/// A row of pg_cursors.
#[derive(Debug, Clone)]
pub struct Cursor {
    /// Its name.
    pub name: String,
    /// The text that made it.
    pub statement: String,
    /// It outlives its transaction.
    pub holdable: bool,
    /// FETCH may move it backward.
    pub scrollable: bool,
    /// When it was made, in microseconds since 2000-01-01 UTC.
    pub created: i64,
}

/// A row of pg_prepared_statements.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// Its name.
    pub name: String,
    /// The text that made it.
    pub statement: String,
    /// When it was made, in microseconds since 2000-01-01 UTC.
    pub created: i64,
    /// The types of its parameters, by OID.
    pub parameters: Vec<u32>,
    /// The types of its columns, where it gives rows.
    pub results: Option<Vec<u32>>,
    /// PREPARE made it, not a message of the extended protocol.
    pub by_command: bool,
}

/// The locked object of a row of pg_locks.
#[derive(Debug, Clone, Copy)]
pub enum Locked {
    /// A table, index or sequence, by its OID.
    Relation(u32),
    /// A row of the relation of this OID, 0 for one of another database.
    Row(u32),
    /// An object of a class that is no relation, by their OIDs.
    Object(u32, u32),
    /// The end of a transaction.
    Transaction(u64),
    /// An advisory lock.
    Advisory(AdvisoryKey),
}

/// A row of pg_locks.
#[derive(Debug, Clone)]
pub struct Lock {
    /// The session's number, None for the engine's own.
    pub pid: Option<i32>,
    /// The OID of the session's database, where that is known.
    pub database: Option<u32>,
    /// The locked object.
    pub on: Locked,
    /// The mode, as PostgreSQL names it.
    pub mode: &'static str,
    /// Whether it is held; false means that the session waits for it.
    pub granted: bool,
    /// Held without an entry in the table of locks.
    pub fast_path: bool,
}
