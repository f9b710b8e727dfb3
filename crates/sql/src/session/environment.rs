//! The session as functions see it: settings, names, time, sequences.
//!
//! What must hold: a function that runs within a statement changes no setting. It queues the change
//! for the end of the statement ([`Deferred`]).

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bumpalo::Bump;
use runtime::faults::Faults;
use runtime::hash::{HashMap, SeededMap};
use runtime::interrupt::Interrupt;
use runtime::wait_event::WaitEvent;
use runtime::workers::{WorkerCounts, WorkerUse};
use txn::folder::{LogState, PoolState, RegionUse};
use txn::{Lsn, TableLock, TxnSession, Wait};

use super::characteristics::{Characteristics, read_only_error};
use super::locks;
use super::plans::Planned;
use super::portal::Portal;
use super::prepared::PreparedStatements;
use super::settings::{SettingsTable, transaction_modes};
use crate::clock::clock;
use crate::shared::Shared;
use crate::shared::definitions::Definitions;
use catalog::pg_catalog::{Activity, Cursor, DatabaseCounts, Lock, Prepared, Setting, Show, System};
use catalog::{Catalog, Sequence};
use execution::client::Notice;
use execution::from_txn;
use expressions::functions;
use values::environment::Environment;
use values::error::{SqlError, SqlState};
use values::identifier;
use values::types::{Datum, Settings};

/// Work that a function queues for the end of its statement.
pub(crate) enum Deferred {
    /// set_config() queues its change, because settings do not change while the statement reads
    /// them. A failed statement drops it.
    Setting {
        /// Its name.
        name: String,
        /// Its new value; None: its default.
        value: Option<String>,
        /// The value as SHOW gives it once it is set.
        shown: String,
        /// Until the transaction ends.
        local: bool,
    },
    /// A notice for the client.
    Notice(Notice),
}

/// The session's state that expressions and functions can ask for.
pub(crate) struct SessionEnvironment {
    pub shared: Arc<Shared>,
    pub definitions: Arc<Definitions>,
    /// Its transactions.
    pub txn: TxnSession,
    /// The catalog as the transaction sees it.
    pub catalog: Arc<Catalog>,
    pub table: SettingsTable,
    /// The running transaction's, or the last one's.
    pub characteristics: Characteristics,
    /// The user that logged in.
    pub user: Arc<str>,
    pub session: u32,
    /// When the statement came.
    pub statement_time: i64,
    /// The named portals, cursors among them, whose names the client chooses.
    pub(super) portals: SeededMap<String, Portal>,
    /// The named prepared statements.
    pub(super) prepared: PreparedStatements,
    /// Actions that functions left for after the statement.
    pub deferred: RefCell<Vec<Deferred>>,
    /// State of a seeded random().
    seed: Cell<Option<u64>>,
    sequences: RefCell<Sequences>,
    /// The newest record of a sequence that the transaction depends on.
    record: Cell<Lsn>,
}

/// The session's memory of currval and lastval.
#[derive(Default)]
struct Sequences {
    current: HashMap<u32, i64>,
    last: Option<u32>,
}

impl SessionEnvironment {
    pub fn new(
        shared: &Arc<Shared>,
        definitions: Arc<Definitions>,
        txn: TxnSession,
        user: Arc<str>,
        (session, interrupt): (u32, &Arc<Interrupt>),
    ) -> SessionEnvironment {
        SessionEnvironment {
            shared: Arc::clone(shared),
            catalog: definitions.catalog(),
            definitions,
            table: SettingsTable::new(&user, &shared.read_only_settings(), (txn.wait_limits(), interrupt)),
            txn,
            characteristics: Characteristics::PLAIN,
            user,
            session,
            statement_time: 0,
            portals: SeededMap::default(),
            prepared: PreparedStatements::default(),
            deferred: RefCell::new(Vec::new()),
            seed: Cell::new(None),
            sequences: RefCell::new(Sequences::default()),
            record: Cell::new(Lsn::ZERO),
        }
    }

    /// A copy for a query that may go on after its statement. It has the present settings,
    /// definitions and snapshot.
    pub fn for_query(&self) -> Result<SessionEnvironment, SqlError> {
        Ok(SessionEnvironment {
            shared: Arc::clone(&self.shared),
            catalog: Arc::clone(&self.catalog),
            definitions: Arc::clone(&self.definitions),
            table: self.table.clone(),
            txn: self.txn.reader().map_err(from_txn)?,
            characteristics: self.characteristics,
            user: Arc::clone(&self.user),
            session: self.session,
            statement_time: self.statement_time,
            portals: SeededMap::default(),
            prepared: PreparedStatements::default(),
            deferred: RefCell::new(Vec::new()),
            seed: Cell::new(None),
            sequences: RefCell::new(Sequences::default()),
            record: Cell::new(Lsn::ZERO),
        })
    }

    /// Refuses `what` in a read-only transaction.
    pub(super) fn refuse_read_only(&self, what: &str) -> Result<(), SqlError> {
        if self.characteristics.read_only { Err(read_only_error(what)) } else { Ok(()) }
    }

    /// A setting's value as SHOW gives it.
    pub(super) fn shown(&self, name: &str) -> Result<&str, SqlError> {
        match self.characteristics.setting(SettingsTable::proper_name(name)) {
            Some(value) => Ok(value),
            None => self.table.get(name),
        }
    }

    /// Name and value of every setting.
    pub(super) fn all_shown(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let shown = |(name, value)| (name, self.characteristics.setting(name).unwrap_or(value));
        self.table.all().map(shown)
    }

    fn note_record(&self, record: Lsn) {
        self.record.set(self.record.get().max(record));
    }

    /// Makes the commit to come wait for the records of the sequences that the transaction used. As
    /// in PostgreSQL, rows with their numbers do not wait: that would take a write to disk for each
    /// 32 numbers of one statement.
    pub(super) fn depend_on_records(&self) {
        self.txn.depend_on(self.record.replace(Lsn::ZERO));
    }

    /// DISCARD SEQUENCES: forgets currval and lastval.
    pub fn discard_sequences(&self) {
        *self.sequences.borrow_mut() = Sequences::default();
    }

    /// DISCARD ALL: forgets currval and a seed, and gives advisory locks up.
    pub fn discard(&mut self) {
        self.txn.unlock_all_advisory();
        self.discard_sequences();
        self.seed.set(None);
    }

    /// Queues work for the end of the statement.
    pub fn defer(&self, what: Deferred) {
        self.deferred.borrow_mut().push(what);
    }

    /// Runs a function of the session's own, if there is one of this name.
    fn own_function<'a>(
        &self,
        name: &str,
        arguments: &[Datum<'a>],
        arena: &'a Bump,
    ) -> Option<Result<Datum<'a>, SqlError>> {
        self.administer(name, arguments, arena)
            .or_else(|| self.advisory(name, arguments))
            .or_else(|| self.size(name, arguments))
    }

    fn sequence(&self, oid: u32) -> Result<&Arc<Sequence>, SqlError> {
        self.catalog.sequence(oid).ok_or_else(|| no_sequence(&self.catalog, oid))
    }

    /// Locks a sequence until the transaction ends, so that no session changes or drops it, and
    /// calls `body` with its newest definition. The lock waits for a session that changes the
    /// sequence. Even a statement that began before that change uses the new definition.
    fn with_locked<R>(
        &self,
        oid: u32,
        body: impl FnOnce(&Sequence) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        self.txn.lock_table(oid, TableLock::RowExclusive, Wait::Block).map_err(from_txn)?;
        let newest = self.definitions.is_current(self.catalog.generation);
        // Only this transaction's own catalog has a sequence that it made or changed. It holds that
        // sequence's stronger lock.
        if newest || self.txn.holds_table(oid, TableLock::ShareRowExclusive) {
            return body(self.sequence(oid)?);
        }
        let catalog = self.definitions.catalog();
        body(catalog.sequence(oid).ok_or_else(|| no_sequence(&catalog, oid))?)
    }
}

/// PostgreSQL's error for an OID that is no sequence's. It also serves a name whose sequence was
/// dropped since.
fn no_sequence(catalog: &Catalog, oid: u32) -> SqlError {
    let Some((_, name)) = catalog.relation_name(oid) else {
        return SqlError::new(SqlState::INTERNAL_ERROR, format!("could not open relation with OID {oid}"));
    };
    let kind = if catalog.table(oid).is_some() { "tables" } else { "indexes" };
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, format!("cannot open relation \"{name}\""))
        .with_detail(format!("This operation is not supported for {kind}."))
}

/// A relation's name as regclass output gives it.
fn class_name(catalog: &Catalog, search_path: &[String], oid: u32) -> Option<String> {
    let (schema, name) = catalog.relation_name(oid)?;
    let found = catalog.relation(search_path, None, name);
    Some(match found.is_some_and(|found| found.oid() == oid) {
        true => identifier::quoted(name),
        false => identifier::qualified(catalog.schema_name(schema), name),
    })
}

/// A schema's name as regnamespace output gives it.
fn schema_name(catalog: &Catalog, oid: u32) -> Option<String> {
    catalog.schema_by_oid(oid).map(|schema| identifier::quoted(&schema.name))
}

/// A role's name as regrole output gives it.
fn role_name(catalog: &Catalog, oid: u32) -> Option<String> {
    catalog.roles.iter().find(|role| role.oid == oid).map(|role| identifier::quoted(&role.name))
}

/// The parts of a session that a thread beside the core needs to write values.
pub(super) struct Writing {
    settings: Settings,
    catalog: Arc<Catalog>,
    search_path: Arc<[String]>,
}

impl SessionEnvironment {
    /// How the session writes values now.
    pub(super) fn writing(&self) -> Writing {
        Writing {
            settings: self.table.formats.clone(),
            catalog: Arc::clone(&self.catalog),
            search_path: Arc::clone(&self.table.search_path),
        }
    }
}

impl Environment for Writing {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn random(&self) -> u64 {
        0
    }

    fn class_name(&self, oid: u32) -> Option<String> {
        class_name(&self.catalog, &self.search_path, oid)
    }

    fn schema_name(&self, oid: u32) -> Option<String> {
        schema_name(&self.catalog, oid)
    }

    fn function_name(&self, oid: u32) -> Option<&'static str> {
        functions::name_by_oid(oid)
    }

    fn role_name(&self, oid: u32) -> Option<String> {
        role_name(&self.catalog, oid)
    }
}

impl Environment for SessionEnvironment {
    fn settings(&self) -> &Settings {
        &self.table.formats
    }

    fn statement_time(&self) -> i64 {
        self.statement_time
    }

    fn clock_time(&self) -> i64 {
        clock()
    }

    fn random(&self) -> u64 {
        match self.seed.get() {
            None => runtime::random::u64(),
            Some(state) => {
                // SplitMix64 is enough: a seeded session must only repeat its numbers.
                let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                self.seed.set(Some(state));
                let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
        }
    }

    fn set_seed(&self, seed: f64) {
        self.seed.set(Some(seed.to_bits()));
    }

    fn setting(&self, name: &str) -> Option<String> {
        let proper = SettingsTable::proper_name(name);
        let set_before = self.deferred.borrow().iter().rev().find_map(|deferred| match deferred {
            Deferred::Setting { name, shown, .. } if name == proper => Some(shown.clone()),
            _ => None,
        });
        set_before.or_else(|| self.shown(name).ok().map(str::to_owned))
    }

    fn set_setting(&self, name: &str, value: Option<&str>, local: bool) -> Result<String, SqlError> {
        let value = value.map(|value| self.table.value_within(name, value)).transpose()?;
        let shown = match value {
            // The end of the statement decides whether the transaction may still change these.
            Some(value) if transaction_modes(name, Some(value))?.is_some() => value.to_owned(),
            _ => self.table.shown_once_set(name, value)?,
        };
        let (name, value) = (SettingsTable::proper_name(name).to_owned(), value.map(str::to_owned));
        self.defer(Deferred::Setting { name, value, shown: shown.clone(), local });
        Ok(shown)
    }

    fn current_user(&self) -> String {
        self.table.current_user().to_owned()
    }

    fn session_user(&self) -> String {
        self.table.session_user().to_owned()
    }

    fn current_database(&self) -> String {
        self.catalog.database.name.clone()
    }

    fn current_schema(&self) -> Option<String> {
        self.catalog.creation_schema(&self.table.search_path).map(|schema| schema.name.clone())
    }

    fn current_schemas(&self, implicit: bool) -> Vec<String> {
        let path = &self.table.search_path;
        let first =
            (implicit && !path.iter().any(|name| name == "pg_catalog")).then(|| "pg_catalog".to_owned());
        let there = path.iter().filter(|name| self.catalog.schema(name).is_some()).cloned();
        first.into_iter().chain(there).collect()
    }

    fn backend_pid(&self) -> i32 {
        self.session as i32
    }

    fn class_oid(&self, names: &[String]) -> Option<u32> {
        self.catalog.relation_of(&self.table.search_path, names).map(|relation| relation.oid())
    }

    fn type_oid(&self, name: &str) -> Result<u32, SqlError> {
        query::bind::named_type(name).map(|type_| type_.oid)
    }

    fn class_name(&self, oid: u32) -> Option<String> {
        class_name(&self.catalog, &self.table.search_path, oid)
    }

    fn schema_oid(&self, name: &str) -> Option<u32> {
        self.catalog.schema(name).map(|schema| schema.oid)
    }

    fn schema_name(&self, oid: u32) -> Option<String> {
        schema_name(&self.catalog, oid)
    }

    fn function_oid(&self, name: &str) -> Option<u32> {
        functions::oid_by_name(name)
    }

    fn function_name(&self, oid: u32) -> Option<&'static str> {
        functions::name_by_oid(oid)
    }

    fn role_oid(&self, name: &str) -> Option<u32> {
        self.catalog.roles.iter().find(|role| role.name == name).map(|role| role.oid)
    }

    fn role_name(&self, oid: u32) -> Option<String> {
        role_name(&self.catalog, oid)
    }

    fn sequence_next(&self, oid: u32) -> Result<i64, SqlError> {
        let (value, record) = self.with_locked(oid, |sequence| {
            self.refuse_read_only("nextval()")?;
            self.shared.sequence_next(sequence)
        })?;
        self.note_record(record);
        let mut sequences = self.sequences.borrow_mut();
        sequences.current.insert(oid, value);
        sequences.last = Some(oid);
        Ok(value)
    }

    fn sequence_current(&self, oid: u32) -> Result<i64, SqlError> {
        self.with_locked(oid, |sequence| {
            self.sequences.borrow().current.get(&oid).copied().ok_or_else(|| {
                SqlError::new(
                    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                    format!("currval of sequence \"{}\" is not yet defined in this session", sequence.name),
                )
            })
        })
    }

    fn sequence_last(&self) -> Result<i64, SqlError> {
        let sequences = self.sequences.borrow();
        let last = sequences.last.filter(|oid| self.catalog.sequence(*oid).is_some());
        last.and_then(|oid| sequences.current.get(&oid).copied()).ok_or_else(|| {
            SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "lastval is not yet defined in this session",
            )
        })
    }

    fn sequence_set(&self, oid: u32, value: i64, called: bool) -> Result<i64, SqlError> {
        let record = self.with_locked(oid, |sequence| {
            self.refuse_read_only("setval()")?;
            self.shared.sequence_set(sequence, value, called)
        })?;
        self.note_record(record);
        if called {
            self.sequences.borrow_mut().current.insert(oid, value);
        }
        Ok(value)
    }

    fn catalog_function<'a>(
        &self,
        name: &str,
        arguments: &[Datum<'a>],
        arena: &'a Bump,
    ) -> Result<Datum<'a>, SqlError> {
        if let Some(done) = self.own_function(name, arguments, arena) {
            return done;
        }
        catalog::pg_catalog::function(self, &self.catalog, name, arguments, arena)
    }
}

impl System for SessionEnvironment {
    fn table_rows(&self, table: u32) -> f64 {
        self.catalog.statistics(table).map_or(-1.0, |statistics| statistics.rows)
    }

    fn settings(&self) -> Vec<Setting> {
        self.table.described(|name| self.characteristics.setting(name))
    }

    fn activity(&self) -> Vec<Activity> {
        let sessions = self.shared.activity.list();
        let name = |oid: u32| {
            let entry = self.catalog.databases.iter().find(|entry| entry.oid == oid);
            entry.map_or_else(String::new, |entry| entry.name.clone())
        };
        let time = |time: i64| (time != 0).then_some(time);
        let activity = |seen: crate::activity::Activity| {
            // A session that has ended since has no row.
            let user = self.shared.activity.user(seen.session)?;
            Some(Activity {
                pid: seen.session as i32,
                database: (seen.database, name(seen.database)),
                user: (self.role_oid(&user), user.to_string()),
                application: seen.application,
                state: seen.state.as_str(),
                query: seen.query,
                started: (seen.started, time(seen.transaction), time(seen.statement)),
                changed: seen.changed,
                waits: seen.wait_event.map(WaitEvent::names),
            })
        };
        sessions.into_iter().filter_map(activity).collect()
    }

    fn cursors(&self) -> Vec<Cursor> {
        let named =
            self.portals.iter().filter_map(|(name, portal)| Some((name, portal, portal.planned.as_ref()?)));
        let mut portals: Vec<_> = named.collect();
        portals.sort_by_key(|(_, portal, _)| portal.number);
        let cursor = |(name, portal, planned): (&String, &Portal, &Arc<Planned>)| Cursor {
            name: name.clone(),
            statement: planned.text.to_string(),
            holdable: portal.held,
            scrollable: portal.scrollable,
            created: portal.created,
        };
        portals.into_iter().map(cursor).collect()
    }

    fn prepared(&self) -> Vec<Prepared> {
        self.prepared.list()
    }

    fn locks(&self) -> Vec<Lock> {
        locks::list(&self.shared, &self.catalog)
    }

    fn page_faults(&self) -> Vec<Faults> {
        self.shared.runtime.page_faults()
    }

    fn memory(&self) -> Vec<RegionUse> {
        self.shared.engine.folder().regions()
    }

    fn lock_profile(&self) -> Vec<sync::profile::Row> {
        sync::profile::rows()
    }

    fn wait_history(&self, show: &mut Show<'_>) -> Result<(), SqlError> {
        self.shared.wait_history.samples(show)
    }

    fn database_counts(&self) -> Vec<DatabaseCounts> {
        self.shared.database_counts()
    }

    fn buffers(&self) -> Option<PoolState> {
        Some(self.shared.engine.folder().buffers())
    }

    fn log(&self) -> Option<LogState> {
        Some(self.shared.engine.folder().log())
    }

    fn workers(&self) -> Vec<WorkerUse> {
        self.shared.runtime.workers_in_use()
    }

    fn worker_counts(&self) -> Vec<WorkerCounts> {
        self.shared.runtime.worker_counts()
    }

    fn sequence_value(&self, sequence: u32) -> Option<i64> {
        let sequence = self.sequence(sequence).ok()?;
        let (value, called) = self.shared.counter(sequence).ok()?.last_value();
        called.then_some(value)
    }
}

impl execution::RunningSession for SessionEnvironment {
    fn work_mem(&self) -> usize {
        self.table.work_mem
    }

    fn maintenance_work_mem(&self) -> usize {
        self.table.maintenance_work_mem
    }

    /// Runs before the client gets the rows. Other transactions release their rows before their
    /// commits are on disk. Until then a crash would make untrue what the client has read. As with
    /// a commit, `synchronous_commit` decides whether the session waits.
    #[inline]
    fn before_showing(&self) -> Result<(), SqlError> {
        if self.table.synchronous { self.txn.wait_seen().map_err(from_txn) } else { Ok(()) }
    }
}
