//! An open data folder: runtime, storage, transactions and catalogs of all databases in it, and the
//! door to sessions.
//!
//! What must hold:
//! 1. A database's shared catalog is replaced before the locks of the DDL that changed it are given
//!    up, so whoever then gets such a lock and compares generations sees the change.
//! 2. Numbers of trees and objects are handed out once in a folder's life: they go on above
//!    everything stored.
//! 3. A tree that no committed definition names is in the system tree's list of garbage, and is
//!    freed from there.

mod activity;
mod autovacuum;
mod check;
mod garbage;
mod given;
mod numbers;
mod relief;
mod settling;
pub(crate) mod system;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runtime::Runtime;
use runtime::hash::{HashMap, HashSet};
use runtime::interrupt::Interrupt;
use runtime::memory::RegionKind;
use sync::SpinLock;
use sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use txn::folder::{self, PAGE_SIZE};
use txn::{Engine, Isolation, StorageError, Store, TxnSession};

pub use activity::{Activity, State};
pub(crate) use activity::{Board, Seat};
pub use check::{CheckProgress, CheckReport};
pub(crate) use given::Given;
pub(crate) use settling::Settling;
use settling::Unsettled;

use crate::session::Session;
use catalog::{BOOTSTRAP_ROLE, Catalog, Change, DatabaseEntry, FIRST_USER_OID, Role, StoredObject};
use execution::from_txn;
use execution::row_numbers::RowNumbers;
use values::error::{SqlError, SqlState};

/// How to open a data folder.
#[derive(Debug, Clone)]
pub struct Options {
    /// Worker threads; None = one for each core.
    pub cores: Option<usize>,
    /// Pin workers to their cores.
    pub pin: bool,
    /// Bytes of page frames; None = 128 MiB.
    pub memory: Option<usize>,
    /// How files are read and written.
    pub file_io: runtime::FileIo,
    /// Sessions at one time.
    pub max_connections: usize,
    /// Time between two looks at which trees are to be vacuumed.
    pub autovacuum_pause: Duration,
    /// Change nothing in the folder: what recovery and sessions change lies in memory and in
    /// nameless temporary files.
    pub look_only: bool,
    /// The log is damaged at this position, and what follows is to be given up.
    pub discard_log_after: Option<u64>,
    /// What only the caller can say of the server, as settings to SHOW: `port`, `listen_addresses`,
    /// `unix_socket_directories`, `ssl`.
    pub given: Vec<(&'static str, String)>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cores: None,
            pin: true,
            memory: None,
            file_io: runtime::FileIo::Auto,
            max_connections: 1 << 14,
            autovacuum_pause: Duration::from_secs(1),
            look_only: false,
            discard_log_after: None,
            given: Vec::new(),
        }
    }
}

/// Why a data folder could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The runtime did not start.
    Runtime(std::io::Error),
    /// The storage could not be opened or recovered.
    Storage(StorageError),
    /// The system catalog could not be read.
    Catalog(SqlError),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpenError::Runtime(error) => write!(f, "the runtime did not start: {error}"),
            OpenError::Storage(error) => error.fmt(f),
            OpenError::Catalog(error) => write!(f, "the system catalog cannot be read: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<StorageError> for OpenError {
    fn from(error: StorageError) -> OpenError {
        OpenError::Storage(error)
    }
}

impl From<SqlError> for OpenError {
    fn from(error: SqlError) -> OpenError {
        OpenError::Catalog(error)
    }
}

/// An open data folder. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

/// One database's present definitions.
pub(crate) struct Definitions {
    /// Its OID.
    pub oid: u32,
    /// Equal to the catalog's generation; read by every statement, written at DDL.
    pub generation: AtomicU64,
    catalog: SpinLock<Arc<Catalog>>,
    unsettled: Unsettled,
    /// Nobody gets in any more: it is being dropped.
    closed: AtomicBool,
}

/// A database is closed to new sessions, until this is dropped.
pub(crate) struct Closing<'d>(Option<&'d Definitions>);

impl Closing<'_> {
    /// It stays closed.
    pub fn for_good(mut self) {
        self.0 = None;
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if let Some(definitions) = self.0 {
            definitions.closed.store(false, Ordering::Relaxed); // nothing comes with it
        }
    }
}

impl Definitions {
    fn new(catalog: Catalog) -> Arc<Definitions> {
        Arc::new(Definitions {
            oid: catalog.database.oid,
            generation: AtomicU64::new(catalog.generation),
            catalog: SpinLock::new(Arc::new(catalog)),
            unsettled: Unsettled::default(),
            closed: AtomicBool::new(false),
        })
    }

    /// The database's OID and name.
    pub fn entry(&self) -> DatabaseEntry {
        self.catalog.lock().database.clone()
    }

    /// Closes it to new sessions. Those that have got in are on the board by now.
    pub fn close(&self) -> Closing<'_> {
        self.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst); // before the look at the board, see `is_closed`
        Closing(Some(self))
    }

    /// Whether it is closed to a session that has taken its seat.
    pub fn is_closed(&self) -> bool {
        fence(Ordering::SeqCst); // after the seat was taken: one of the two sees the other
        self.closed.load(Ordering::Relaxed)
    }

    /// To be held from before definitions are published until their transaction has ended.
    pub fn settling(&self) -> Settling<'_> {
        // Under the catalog's lock: what is published later has a higher generation.
        let catalog = self.catalog.lock();
        self.unsettled.begin(catalog.generation + 1)
    }

    /// Whether a snapshot taken now includes the commits of all definitions up to this generation:
    /// else a statement would find new trees whose entries it does not see.
    #[inline]
    pub fn is_settled(&self, generation: u64) -> bool {
        self.unsettled.is_over(generation)
    }

    /// The present catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.lock())
    }

    /// Whether a plan of this generation is still good. Acquire: whoever sees the new number finds
    /// the new catalog.
    #[inline]
    pub fn is_current(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }

    /// Applies a transaction's changes to the newest catalog.
    pub fn publish(&self, change: impl FnOnce(&Catalog) -> Catalog) {
        let Ok(()) = self.try_publish(|catalog| Ok::<_, Infallible>(change(catalog)));
    }

    /// Applies a transaction's changes to the newest catalog, unless they fail.
    pub fn try_publish<E>(&self, change: impl FnOnce(&Catalog) -> Result<Catalog, E>) -> Result<(), E> {
        let mut catalog = self.catalog.lock();
        let next = change(&catalog)?;
        self.put(&mut catalog, next);
        Ok(())
    }

    /// Puts a catalog in place of the one it was made from; false when another one is there by now.
    pub fn replace(&self, base: &Arc<Catalog>, next: Catalog) -> bool {
        let mut catalog = self.catalog.lock();
        let is_there = Arc::ptr_eq(&catalog, base);
        if is_there {
            self.put(&mut catalog, next);
        }
        is_there
    }

    fn put(&self, place: &mut Arc<Catalog>, next: Catalog) {
        let generation = next.generation;
        *place = Arc::new(next);
        self.generation.store(generation, Ordering::Release); // pairs with is_current
    }
}

/// What all sessions share.
pub(crate) struct Shared {
    /// Tells folders of one process apart in core-local caches.
    pub instance: u64,
    pub runtime: Arc<Runtime>,
    pub engine: Arc<Engine>,
    pub board: Arc<Board>,
    /// Settings that say what the server is.
    given: SpinLock<Arc<Given>>,
    databases: SpinLock<Vec<Arc<Definitions>>>,
    next_oid: AtomicU32,
    next_tree: AtomicU32,
    pub row_numbers: RowNumbers,
    /// Trees that running transactions are making, or that are being freed.
    busy_trees: SpinLock<HashSet<u32>>,
    /// Dropped trees that damage keeps from being freed, and why.
    damaged_trees: SpinLock<HashMap<u32, SqlError>>,
    pub autovacuum: autovacuum::Autovacuum,
}

const DEFAULT_MEMORY: usize = 128 << 20;
const MINIMUM_FRAMES: usize = 256;

/// Bytes of page frames that this many cores need at least; a folder opened with fewer gets these.
#[must_use]
pub fn least_memory(cores: usize) -> usize {
    MINIMUM_FRAMES.max(folder::least_frames(cores)) * PAGE_SIZE
}

impl Database {
    /// Opens the folder, making it when it is empty, and recovers it as needed. Blocks; not to be
    /// called on a worker.
    pub fn open(path: &Path, options: Options) -> Result<Database, OpenError> {
        let start = runtime::Options {
            cores: options.cores,
            pin: options.pin,
            file_io: options.file_io,
            ..runtime::Options::default()
        };
        let runtime = Runtime::start(start).map_err(OpenError::Runtime)?;
        let opening = folder::Options {
            frames: (options.memory.unwrap_or(DEFAULT_MEMORY) / PAGE_SIZE).max(MINIMUM_FRAMES),
            look_only: options.look_only,
            discard_log_after: options.discard_log_after,
        };
        let opened =
            runtime.call(0, || open_shared(path, &runtime, opening, options.max_connections, options.given));
        match opened {
            Ok(shared) => {
                autovacuum::start(&shared, options.autovacuum_pause);
                Ok(Database { shared })
            }
            Err(error) => {
                runtime.shutdown();
                Err(error)
            }
        }
    }

    /// The runtime everything runs on.
    #[must_use]
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.shared.runtime
    }

    /// Bounds the memory that this process's sessions take together (`limit` bytes), where the
    /// allocator is [`runtime::account::Counting`]. Past it a session that asks for much gets
    /// 53200, and the statement of the session that holds most is stopped. So is it where the
    /// process has more than `resident` bytes resident, pages of files aside. Once in a process.
    ///
    /// # Errors
    /// When no thread can be had to watch it, or the system does not tell what is resident.
    pub fn bound_memory(&self, limit: u64, resident: u64) -> std::io::Result<()> {
        let mut relief = relief::Relief::new(&self.shared.board);
        runtime::account::watch(resident, move || relief.round())?;
        runtime::account::set_limit(limit);
        Ok(())
    }

    /// The store below, for tools that look inside.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        self.shared.engine.store()
    }

    /// The locks held and awaited, for tools that look inside.
    #[must_use]
    pub fn locks(&self) -> Vec<txn::LockInfo> {
        self.shared.engine.locks()
    }

    /// What was chosen at start, for the server's log.
    #[must_use]
    pub fn facts(&self) -> Vec<String> {
        let facts = self.shared.runtime.facts();
        let refused = facts.io_uring_refused.as_ref().map(|why| format!(" (io_uring refused: {why})"));
        let pool = self.store().pool();
        let memory = match pool.memory() {
            RegionKind::Huge => "huge pages",
            RegionKind::Transparent => "transparent huge pages",
            RegionKind::Ordinary => "ordinary pages",
        };
        let file_io = match facts.file_io {
            runtime::FileIo::IoUring => "io_uring",
            runtime::FileIo::Auto | runtime::FileIo::Threads => "threads",
        };
        let inheritance = self.store().inheritance();
        vec![
            format!("{} cores ({} pinned), NUMA nodes: {}", facts.cores, facts.pinned, facts.numa_nodes),
            format!("file I/O by {file_io}{}", refused.unwrap_or_default()),
            match facts.batched {
                0 => "each send and receive is a system call".to_owned(),
                batched => format!("sends and receives of many sessions go together on {batched} cores"),
            },
            format!("buffers: {} MiB in {memory}", (pool.frames() * PAGE_SIZE) >> 20),
            format!("recovery done, {} unfinished transactions undone", inheritance.losers),
        ]
    }

    /// The most sessions there may be.
    #[must_use]
    pub fn max_connections(&self) -> usize {
        self.shared.board.sessions()
    }

    /// The most bytes of log that an open transaction may keep from being let go; a session whose
    /// transaction keeps more is ended. Without a limit the log of one transaction can fill the
    /// disk.
    pub fn limit_retained_log(&self, bytes: u64) {
        let board = Arc::clone(&self.shared.board);
        let end = move |session| board.interrupt(session, runtime::interrupt::Reason::RetainedLog);
        self.shared.engine.limit_retained_log(bytes, end);
    }

    /// Shows other values of settings that say what the server is, to sessions that begin or reload
    /// their settings.
    pub fn show(&self, values: Vec<(&'static str, String)>) {
        let mut given = Given::clone(&self.shared.given());
        for (name, value) in values {
            match given.iter_mut().find(|(known, _)| *known == name) {
                Some((_, shown)) => *shown = value,
                None => given.push((name, value)),
            }
        }
        let before = std::mem::replace(&mut *self.shared.given.lock(), Arc::new(given));
        drop(before);
    }

    /// Whether a user of this name is a superuser, for whom some of the sessions are reserved.
    #[must_use]
    pub fn is_superuser(&self, user: &str) -> bool {
        user == BOOTSTRAP_NAME
    }

    /// What the sessions are doing.
    #[must_use]
    pub fn activity(&self) -> Vec<Activity> {
        self.shared.board.list()
    }

    /// A new session. To be called on a worker's fiber: the session belongs to that core.
    pub fn connect(
        &self,
        database: &str,
        user: &str,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Session, SqlError> {
        let definitions = self.shared.database(database).ok_or_else(|| no_database(database))?;
        Session::new(&self.shared, definitions, user, interrupt)
    }

    /// Interrupts the session of this number, as pg_backend_pid() tells it; false when there is
    /// none.
    pub fn interrupt(&self, session: u32, reason: runtime::interrupt::Reason) -> bool {
        self.shared.board.interrupt(session, reason)
    }

    /// Checkpoints, closes the files and stops the workers. Sessions must be gone. Does nothing the
    /// second time. Not to be called on a worker.
    pub fn shutdown(&self) -> Result<(), OpenError> {
        let shared = &self.shared;
        if shared.runtime.is_over() {
            return Ok(());
        }
        shared.runtime.drain();
        // A session that outlives this may write until the workers have ended: nobody else opens
        // the folder before.
        let folder = shared.engine.store().take_lock();
        let closed = shared.runtime.call(0, || {
            shared.autovacuum.close();
            shared.engine.close().map_err(from_txn)
        });
        shared.runtime.shutdown();
        drop(folder);
        closed.map_err(OpenError::Catalog)
    }
}

/// 3D000.
pub(crate) fn no_database(name: &str) -> SqlError {
    SqlError::new(SqlState::INVALID_CATALOG_NAME, format!("database \"{name}\" does not exist"))
}

fn open_shared(
    path: &Path,
    runtime: &Arc<Runtime>,
    options: folder::Options,
    max_connections: usize,
    mut given: Given,
) -> Result<Arc<Shared>, OpenError> {
    let new = !options.look_only && folder::is_vacant(path);
    let store = match new {
        true => folder::make(path, runtime, options, system::SYSTEM_TREE)?,
        false => folder::open(path, runtime, options)?,
    };
    given.extend(given::of(&store, path, max_connections));
    let engine = Engine::open(store).map_err(from_txn)?;
    let shared = Arc::new(Shared {
        instance: runtime::random::u64(),
        runtime: Arc::clone(runtime),
        engine,
        board: Arc::new(Board::new(max_connections)),
        given: SpinLock::new(Arc::new(given)),
        databases: SpinLock::new(Vec::new()),
        next_oid: AtomicU32::new(FIRST_USER_OID),
        next_tree: AtomicU32::new(system::SYSTEM_TREE + 1),
        row_numbers: RowNumbers::new(runtime::random::u64()),
        busy_trees: SpinLock::new(HashSet::default()),
        damaged_trees: SpinLock::new(HashMap::default()),
        autovacuum: autovacuum::Autovacuum::new(),
    });
    shared.load()?;
    if new {
        // From now on the folder is opened as it is, so the first definitions are on disk before.
        folder::finish(shared.engine.store(), path)?;
    }
    garbage::collect_in_background(&shared);
    let board = Arc::clone(&shared.board);
    let report = move |core, name: &str, lasted| board.report_held(core, name, lasted);
    let watched = shared.runtime.watch(Box::new(report));
    if let Err(error) = watched {
        log::warn!("no thread watches the cores: {error}");
    }
    Ok(shared)
}

/// The role that every folder begins with.
const BOOTSTRAP_NAME: &str = "postgres";
/// The databases every folder begins with.
const FIRST_DATABASES: [(u32, &str); 2] = [(catalog::TEMPLATE_DATABASE, "template1"), (5, "postgres")];

impl Shared {
    /// Settings that say what the server is.
    pub fn given(&self) -> Arc<Given> {
        Arc::clone(&self.given.lock())
    }

    /// Reads the definitions of all databases, making the first ones in a new folder.
    fn load(&self) -> Result<(), SqlError> {
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
                let object = StoredObject::decode(bytes).map_err(|error| {
                    SqlError::new(
                        SqlState::DATA_CORRUPTED,
                        format!("definition {key:?} is unreadable: {error:?}"),
                    )
                })?;
                changes.push(object.into_change());
            }
            let catalog =
                Catalog::new(entry.clone(), Arc::clone(&entries), Arc::clone(&roles)).with_changes(&changes);
            highest = highest.max(catalog.highest_oid());
            used.extend(catalog.sequences().map(|sequence| sequence.counter));
            self.note_trees(&changes);
            databases.push(Definitions::new(catalog));
        }
        self.next_oid.fetch_max(highest + 1, Ordering::Relaxed); // nobody else is here yet
        *self.databases.lock() = databases;
        // What a transaction made that was rolled back, or cut off.
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

    /// Adds a database to those of the folder.
    pub fn add_database(&self, entry: DatabaseEntry) {
        self.change_databases(|databases| {
            let roles = databases.first().map(|database| Arc::clone(&database.catalog.lock().roles));
            let roles = roles.unwrap_or_else(|| Arc::new([]));
            databases.push(Definitions::new(Catalog::new(entry, Arc::new([]), roles)));
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

    /// Runs a transaction of the engine's own: committed at once, durable with whatever commits
    /// next.
    pub fn internal<R>(&self, body: impl FnOnce(&TxnSession) -> Result<R, SqlError>) -> Result<R, SqlError> {
        let txn = self.engine.session().map_err(from_txn)?;
        txn.begin(Isolation::ReadCommitted, false);
        txn.statement_start().map_err(from_txn)?;
        match body(&txn) {
            Ok(result) => {
                txn.commit(false).map_err(from_txn)?;
                Ok(result)
            }
            Err(error) => {
                txn.rollback().map_err(from_txn)?;
                Err(error)
            }
        }
    }
}
