//! An open data folder: starts the runtime, opens and recovers the folder, and connects sessions.
//!
//! [`Database::open`] starts the runtime, the folder with its recovery, the engine, the definitions
//! and the background work, in this order. [`Database::shutdown`] takes the other way.
//!
//! What must hold:
//!
//! 1. The definitions are loaded before garbage collection, autovacuum or a session begins. `load`
//!    fixes the next OID and the next tree number by stores that nothing orders.
//! 2. A new folder gets its mark of creation once its first definitions are stored. A start makes a
//!    folder without the mark anew.
//! 3. With `look_only` the start neither makes nor finishes a folder.
//! 4. An open that fails stops the workers again.
//! 5. The lock on the folder outlives the last worker. A session that outlives the shutdown may
//!    write until the workers have ended.
//! 6. [`Database::open`], [`Database::shutdown`] and [`Database::check`] wait for a worker, so no
//!    worker may call them.

mod analyze;
mod check;
mod relief;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use catalog::pg_catalog::DatabaseCounts;
use runtime::Runtime;
use runtime::interrupt::Interrupt;
use runtime::memory::HugePages;
use txn::folder::{self, PAGE_SIZE};
use txn::{Engine, Folder, StorageError};

pub use check::{CheckProgress, CheckReport};

use crate::activity::{Activity, ActivitySummary};
use crate::session::Session;
use crate::shared::read_only::{self, ReadOnlySettings};
use crate::shared::{BOOTSTRAP_NAME, Shared, autovacuum, garbage, no_database, system};
use execution::from_txn;
use values::error::SqlError;

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
    /// The pause between two autovacuum rounds.
    pub autovacuum_pause: Duration,
    /// Whether tables are analysed by themselves.
    pub autoanalyze: bool,
    /// The pause between two rounds of autoanalyze.
    pub autoanalyze_pause: Duration,
    /// Change nothing in the folder. Changes by recovery and sessions stay in memory and in
    /// nameless temporary files.
    pub look_only: bool,
    /// The position at which the log is damaged; recovery gives up everything behind it.
    pub discard_log_after: Option<u64>,
    /// Frames that the clock sweep claims at a time; `None` chooses by NUMA nodes, cores and
    /// memory.
    pub sweep_batch: Option<usize>,
    /// Whether to ask for huge pages for the page frames.
    pub huge_pages: HugePages,
    /// Read-only settings that only the caller knows, for SHOW: `port`, `listen_addresses`,
    /// `unix_socket_directories`, `ssl`.
    pub read_only_settings: Vec<(&'static str, String)>,
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
            autoanalyze: true,
            autoanalyze_pause: Duration::from_secs(60),
            look_only: false,
            discard_log_after: None,
            sweep_batch: None,
            huge_pages: HugePages::Try,
            read_only_settings: Vec::new(),
        }
    }
}

/// Why a data folder could not be opened.
#[derive(Debug)]
pub enum OpenError {
    /// `ALLCORE_STOP` names a stop point that does not exist.
    StopPoint(runtime::stop::UnknownPoint),
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
            OpenError::StopPoint(error) => error.fmt(f),
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
    pub(crate) shared: Arc<Shared>,
}

const DEFAULT_MEMORY: usize = 128 << 20;
const MINIMUM_FRAMES: usize = 256;

/// Bytes of page frames that this many cores need at least; a folder opened with fewer gets these.
#[must_use]
pub fn least_memory(cores: usize) -> usize {
    MINIMUM_FRAMES.max(folder::least_frames(cores)) * PAGE_SIZE
}

/// Page frames in so many bytes.
fn frames(memory: usize) -> usize {
    (memory / PAGE_SIZE).max(MINIMUM_FRAMES)
}

/// The huge pages of 2 MiB that so much memory of page frames lacks, if it may be in no others.
#[must_use]
pub fn lacks_huge_pages(memory: usize) -> Option<usize> {
    folder::lacks_huge_pages(frames(memory))
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
        runtime::stop::refuse_unknown(&crate::stop_points()).map_err(OpenError::StopPoint)?;
        let runtime = Runtime::start(start).map_err(OpenError::Runtime)?;
        let opening = folder::Options {
            frames: frames(options.memory.unwrap_or(DEFAULT_MEMORY)),
            look_only: options.look_only,
            discard_log_after: options.discard_log_after,
            sweep_batch: options.sweep_batch,
            huge_pages: options.huge_pages,
        };
        let opened = runtime.call(0, || {
            open_shared(path, &runtime, opening, options.max_connections, options.read_only_settings)
        });
        match opened {
            Ok(shared) => {
                let analyze =
                    options.autoanalyze.then_some((options.autoanalyze_pause, analyze::analyze as _));
                autovacuum::start(&shared, options.autovacuum_pause, analyze);
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

    /// Bounds the memory of this process's sessions together to `limit` bytes, if the allocator is
    /// [`runtime::account::Counting`]. Beyond it a session that asks for much gets 53200, and the
    /// watch stops the statement of the session that holds most. The same happens when the process
    /// has more than `resident` bytes resident, pages of files aside. To be called once in a
    /// process.
    ///
    /// # Errors
    /// When no thread can be had to watch it, or the system does not tell what is resident.
    pub fn bound_memory(&self, limit: u64, resident: u64) -> std::io::Result<()> {
        let mut relief = relief::Relief::new(&self.shared.activity);
        runtime::account::watch(resident, move || relief.round())?;
        runtime::account::set_limit(limit);
        Ok(())
    }

    /// The folder below, for tools that look inside.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        self.shared.engine.folder()
    }

    /// Touches all memory of the page frames, so that no session does later. Calls `progress` with
    /// the touched bytes now and then; false gives up. Blocks; not to be called on a worker.
    pub fn preload(&self, progress: &mut dyn FnMut(usize) -> bool) {
        self.folder().preload(progress);
    }

    /// All locks that sessions hold or wait for, for tools that look inside.
    #[must_use]
    pub fn locks(&self) -> Vec<txn::LockInfo> {
        self.shared.engine.locks()
    }

    /// Lines for the server's log: the cores, the way of file I/O and the memory that the start
    /// chose.
    #[must_use]
    pub fn facts(&self) -> Vec<String> {
        let facts = self.shared.runtime.facts();
        let refused = facts.io_uring_refused.as_ref().map(|why| format!(" (io_uring refused: {why})"));
        let (pool, memory) = self.folder().pool();
        let locked = match self.folder().locked() {
            Ok(()) => "locked in memory".to_owned(),
            Err(reason) => format!("not locked in memory: {reason}"),
        };
        let file_io = match facts.file_io {
            runtime::FileIo::IoUring => "io_uring",
            runtime::FileIo::Auto | runtime::FileIo::Threads => "threads",
        };
        vec![
            format!("{} cores ({} pinned), NUMA nodes: {}", facts.cores, facts.pinned, facts.numa_nodes),
            format!("file I/O by {file_io}{}", refused.unwrap_or_default()),
            match facts.batched {
                0 => "each send and receive is a system call".to_owned(),
                batched => format!("sends and receives of many sessions go together on {batched} cores"),
            },
            format!("buffers: {} MiB in {}, {locked}", pool >> 20, memory.name()),
            format!("frames that the clock sweep claims at a time: {}", self.folder().sweep_batch()),
            format!("recovery done, {} unfinished transactions undone", self.folder().losers()),
        ]
    }

    /// The most sessions there may be.
    #[must_use]
    pub fn max_connections(&self) -> usize {
        self.shared.activity.sessions()
    }

    /// Limits the bytes of log that an open transaction may keep from being released. The server
    /// ends a session whose transaction keeps more. Without a limit, one transaction can fill the
    /// disk with log.
    pub fn limit_retained_log(&self, bytes: u64) {
        let activity = Arc::clone(&self.shared.activity);
        let end = move |session| activity.interrupt(session, runtime::interrupt::Reason::RetainedLog);
        self.shared.engine.limit_retained_log(bytes, end);
    }

    /// Replaces values of read-only settings, for sessions that begin or reload their settings.
    pub fn show(&self, values: Vec<(&'static str, String)>) {
        let mut settings = ReadOnlySettings::clone(&self.shared.read_only_settings());
        for (name, value) in values {
            match settings.iter_mut().find(|(known, _)| *known == name) {
                Some((_, shown)) => *shown = value,
                None => settings.push((name, value)),
            }
        }
        self.shared.set_read_only_settings(settings);
    }

    /// Whether some of the sessions are reserved for this user. Every role is a superuser, so the
    /// reserve is for the role `postgres` alone.
    #[must_use]
    pub fn has_reserve(&self, user: &str) -> bool {
        user == BOOTSTRAP_NAME
    }

    /// Sessions and ended transactions by database.
    #[must_use]
    pub fn counts(&self) -> Vec<DatabaseCounts> {
        self.shared.database_counts()
    }

    /// The rows of the activity table.
    #[must_use]
    pub fn activity(&self) -> Vec<Activity> {
        self.shared.activity.list()
    }

    /// The activity table in short.
    #[must_use]
    pub fn activity_summary(&self) -> ActivitySummary {
        self.shared.activity.summary()
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

    /// Interrupts the session of this number, which pg_backend_pid() returns. False if there is
    /// none.
    pub fn interrupt(&self, session: u32, reason: runtime::interrupt::Reason) -> bool {
        self.shared.activity.interrupt(session, reason)
    }

    /// Checkpoints, closes the files and stops the workers. Sessions must be gone. Does nothing the
    /// second time. Not to be called on a worker.
    pub fn shutdown(&self) -> Result<(), OpenError> {
        let shared = &self.shared;
        if shared.runtime.is_over() {
            return Ok(());
        }
        shared.runtime.drain();
        // A session that outlives this call may write until the workers have ended, so the lock on
        // the folder stays until then.
        let lock = shared.engine.folder().take_lock();
        let closed = shared.runtime.call(0, || {
            shared.autovacuum.close();
            shared.engine.close().map_err(from_txn)
        });
        shared.runtime.shutdown();
        drop(lock);
        closed.map_err(OpenError::Catalog)
    }
}

fn open_shared(
    path: &Path,
    runtime: &Arc<Runtime>,
    options: folder::Options,
    max_connections: usize,
    mut read_only: ReadOnlySettings,
) -> Result<Arc<Shared>, OpenError> {
    let new = !options.look_only && folder::is_vacant(path);
    let folder = match new {
        true => folder::make(path, runtime, options, system::SYSTEM_TREE)?,
        false => folder::open(path, runtime, options)?,
    };
    read_only.extend(read_only::of(&folder, path, max_connections, options.huge_pages));
    let engine = Engine::open(folder).map_err(from_txn)?;
    let shared = Shared::new(runtime, engine, max_connections, read_only);
    shared.load()?;
    if new {
        // A folder without its mark of creation is made anew, so the first definitions reach the
        // disk before the mark.
        shared.engine.folder().finish(path)?;
    }
    garbage::collect_in_background(&shared);
    let activity = Arc::clone(&shared.activity);
    let report = move |core, name: &str, lasted| activity.report_held(core, name, lasted);
    let watched = shared.runtime.watch(Box::new(report));
    if let Err(error) = watched {
        log::warn!("no thread watches the cores: {error}");
    }
    Ok(shared)
}
