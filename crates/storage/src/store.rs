//! The store: a data folder with its pool, log and space map, opened and closed as one.
//!
//! The folder holds `ALLCORE` (the format's version), `lock` (held while the store is open),
//! `control` and `log/` (the log's), `pages` and `temp`. The format file is named `ALLCORE.new`
//! until the folder is complete, so that a start makes an unfinished folder anew.
//!
//! A start: [`Store::open`] finds the log's end and repeats history. Then [`Store::recover`] undoes
//! uncommitted work with the help of the crate above and takes a checkpoint. Only then may anything
//! else change the store. An end: [`Store::close`] writes everything and takes a last checkpoint.
//! The next start recovers a store that was not closed.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use runtime::Runtime;
use runtime::file::{self, File, FileLock, OpenOptions};
use runtime::memory::{self, HugePages, Policy};
use sync::SpinLock;

use crate::checkpoint::{self, Checkpointer};
use crate::datafile::{DataFile, Opening};
use crate::error::{FormatProblem, IoContext};
use crate::format::{FORMAT, LOG_FOLDER};
use crate::log::{Wal, WalOptions};
use crate::page::Lsn;
use crate::pool::{self, PageLog, Pool, PoolOptions, RegionUse};
use crate::recovery::{Manner, Recovery, UndoHandler, crew};
use crate::space::Space;
use crate::{Error, control, log, node, space};

const FORMAT_FILE: &str = "ALLCORE";
/// The name of the format file until the store is complete.
const DRAFT_FILE: &str = "ALLCORE.new";
const LOCK_FILE: &str = "lock";
const PAGES_FILE: &str = "pages";
const TEMPORARY_FILE: &str = "temp";
/// The most bytes read of the format file.
const FORMAT_BYTES_MAX: usize = 64;

/// Sizes of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Frames of the pool, 8 KiB each.
    pub frames: usize,
    /// Frames the clock sweep claims at a time; `None` chooses by nodes, cores and frames.
    pub sweep_batch: Option<usize>,
    /// Whether to ask for huge pages.
    pub huge_pages: HugePages,
    /// The log's sizes.
    pub wal: WalOptions,
    /// How to open a folder that exists.
    pub manner: Manner,
}

impl StoreOptions {
    /// Default options for a pool of `frames` frames on `cores` cores.
    pub fn new(frames: usize, cores: usize) -> StoreOptions {
        StoreOptions {
            frames,
            sweep_batch: None,
            huge_pages: HugePages::Try,
            wal: WalOptions::new(cores),
            manner: Manner::default(),
        }
    }

    fn of_log(&self) -> WalOptions {
        WalOptions { huge_pages: self.huge_pages, ..self.wal }
    }

    fn pool(&self) -> PoolOptions {
        PoolOptions {
            frames: self.frames,
            cores: self.wal.cores,
            sweep_batch: self.sweep_batch,
            huge_pages: self.huge_pages,
        }
    }
}

/// Facts from the store's last life for the crate above.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inheritance {
    /// The highest transaction number in the log that was read. `info` has earlier ones.
    pub highest_txn: u64,
    /// The values of the crate above from the last checkpoint.
    pub info: Vec<u8>,
    /// The number of transactions that [`Store::recover`] has to undo.
    pub losers: usize,
}

/// An open data folder.
pub struct Store {
    /// Pages in memory.
    pub(crate) pool: Arc<Pool>,
    /// The write-ahead log.
    pub(crate) wal: Arc<Wal>,
    /// The pages in use.
    pub(crate) space: Space,
    /// The runtime it runs on.
    pub(crate) runtime: Arc<Runtime>,
    /// Why frames, headers and the log's ring are not locked in memory, if they are not.
    locked: Result<(), String>,
    /// The memory policy of the log's ring.
    ring_policy: Policy,
    inheritance: Inheritance,
    /// The start in progress, until `recover` has ended it.
    recovery: SpinLock<Option<Recovery>>,
    checkpointer: SpinLock<Option<Arc<Checkpointer>>>,
    /// The folder's lock, released when the store is closed or dropped.
    lock: SpinLock<Option<FileLock>>,
}

impl Store {
    /// Makes a new store in `folder`, which must be vacant. Call it in a fiber.
    pub fn create(
        folder: &Path,
        runtime: &Arc<Runtime>,
        options: &StoreOptions,
    ) -> Result<Arc<Store>, Error> {
        let store = Store::begin(folder, runtime, options)?;
        Store::finish(folder).inspect_err(|_| store.pool.stop_writers())?;
        Ok(store)
    }

    /// Whether a store may be made in `folder`: it does not exist, or is empty, or holds a store
    /// whose making a crash cut off.
    pub fn is_vacant(folder: &Path) -> bool {
        let found = match file::list(folder) {
            Ok(found) => found,
            // An unreadable folder may hold a store. A file in its place is found when the folder
            // is made.
            Err(error) => return matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        let is = |path: &Path, name: &str| path.file_name().is_some_and(|found| found == name);
        let has = |name| found.iter().any(|path| is(path, name));
        !has(FORMAT_FILE) && (has(DRAFT_FILE) || found.iter().all(|path| is(path, LOCK_FILE)))
    }

    /// Begins to make a store. The folder stays vacant until [`Store::finish`], so the remains of a
    /// crash or a full disk are in nobody's way. Call it in a fiber.
    pub fn begin(folder: &Path, runtime: &Arc<Runtime>, options: &StoreOptions) -> Result<Arc<Store>, Error> {
        file::create_dir(folder).during("making the data folder")?;
        let vacant = || Store::is_vacant(folder).then_some(()).ok_or(Error::Format(FormatProblem::NotEmpty));
        vacant()?;
        let lock = lock(folder, false)?;
        // Another process may have made a store meanwhile.
        vacant()?;
        clear_draft(folder)?;
        write_draft(folder)?;
        let wal = Wal::create(folder, options.of_log())?;
        let pages = DataFile::open(&folder.join(PAGES_FILE), Opening::New)?;
        #[cfg(variants)]
        runtime::replaced::measure(&folder.join(PAGES_FILE)).during("opening the pages to measure them")?;
        let temporary = DataFile::open(&folder.join(TEMPORARY_FILE), Opening::Empty)?;
        let (pool, ring_policy) = make_pool(options, runtime, (pages, temporary), &wal)?;
        let locked = lock_memory(&pool, &wal);
        pool.start_writers(runtime);
        let made = Space::create(&pool, &wal).and_then(|space| {
            checkpoint::run(&wal, &*pool)?;
            Ok(space)
        });
        let space = made.inspect_err(|_| pool.stop_writers())?;
        Ok(Arc::new(Store {
            pool,
            wal,
            space,
            runtime: Arc::clone(runtime),
            locked,
            ring_policy,
            inheritance: Inheritance::default(),
            recovery: SpinLock::new(&"recovery", None),
            checkpointer: SpinLock::new(&"checkpointer", None),
            lock: SpinLock::new(&"file lock", lock),
        }))
    }

    /// Completes the store that [`Store::begin`] began: all its files are durable.
    pub fn finish(folder: &Path) -> Result<(), Error> {
        file::rename(&folder.join(DRAFT_FILE), &folder.join(FORMAT_FILE)).during("naming the format file")?;
        file::sync_dir(folder).during("syncing the data folder")
    }

    /// Opens the store in `folder` and redoes its log. Call it in a fiber, then [`Store::recover`].
    /// With [`Manner::look_only`] the folder stays as it is: changes by recovery and by the caller
    /// lie in memory and in files without names.
    pub fn open(folder: &Path, runtime: &Arc<Runtime>, options: &StoreOptions) -> Result<Arc<Store>, Error> {
        check_format(folder)?;
        let look_only = options.manner.look_only;
        let lock = lock(folder, look_only)?;
        let (recovery, control_file) = Recovery::analyse(folder, options.manner)?;
        let (wal, opening, temporary) = match look_only {
            false => (recovery.resume(control_file, options.of_log())?, Opening::Existing, Opening::Empty),
            true => {
                (recovery.rehearse(control_file, options.of_log())?, Opening::Overlaid, Opening::Nameless)
            }
        };
        let pages = DataFile::open(&folder.join(PAGES_FILE), opening)?;
        #[cfg(variants)]
        runtime::replaced::measure(&folder.join(PAGES_FILE)).during("opening the pages to measure them")?;
        let temporary = DataFile::open(&folder.join(TEMPORARY_FILE), temporary)?;
        let (pool, ring_policy) = make_pool(options, runtime, (pages, temporary), &wal)?;
        let locked = lock_memory(&pool, &wal);
        pool.start_writers(runtime);
        let redone = crew::redo(&recovery, runtime, &pool, redo_op)
            .and_then(|()| recovery.renounce(&pool, &wal))
            .and_then(|()| {
                pool.bind_to_log();
                Space::open(&pool, &wal)
            });
        let space = redone.inspect_err(|_| pool.stop_writers())?;
        let inheritance = Inheritance {
            highest_txn: recovery.highest_txn(),
            info: recovery.control().info.clone(),
            losers: recovery.losers(),
        };
        Ok(Arc::new(Store {
            pool,
            wal,
            space,
            runtime: Arc::clone(runtime),
            locked,
            ring_policy,
            inheritance,
            recovery: SpinLock::new(&"recovery", Some(recovery)),
            checkpointer: SpinLock::new(&"checkpointer", None),
            lock: SpinLock::new(&"file lock", lock),
        }))
    }

    /// Pages in memory.
    #[inline]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The regions of memory of pages and of the log, as they are now. It asks the kernel about
    /// each page in use, which takes some milliseconds a gigabyte; it has safe points.
    pub fn regions(&self) -> Vec<RegionUse> {
        let (ring, used, present) = self.wal.memory();
        let (kind, reserved) = (ring.kind(), ring.len());
        let locked = self.locked.is_ok();
        let mut regions = self.pool.regions(locked);
        let policy = self.ring_policy;
        regions.push(RegionUse { name: "log", kind, locked, policy, reserved, used, present });
        regions
    }

    /// Whether frames, headers and the log's ring stay in memory once they are touched, or why not.
    pub fn locked(&self) -> Result<(), &str> {
        self.locked.as_ref().copied().map_err(String::as_str)
    }

    /// Touches all memory of the pool and of the log's ring; see [`Pool::preload`].
    pub fn preload(&self, progress: &mut dyn FnMut(usize) -> bool) {
        self.wal.preload();
        self.pool.preload(progress);
    }

    /// The write-ahead log.
    #[inline]
    pub fn wal(&self) -> &Arc<Wal> {
        &self.wal
    }

    /// The pages in use.
    #[inline]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The runtime it runs on.
    #[inline]
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Facts from the last life.
    pub fn inheritance(&self) -> &Inheritance {
        &self.inheritance
    }

    /// Ends the start: undoes uncommitted work, takes a checkpoint if the log held anything, and
    /// starts the background checkpoints. Once, after `create` or `open`, in a fiber.
    pub fn recover(&self, handler: &mut dyn UndoHandler) -> Result<(), Error> {
        let recovery = self.recovery.lock().take();
        if let Some(recovery) = recovery {
            recovery.undo(&self.wal, handler)?;
            checkpoint::run(&self.wal, &*self.pool)?;
        }
        let checkpointer = Checkpointer::start(&self.wal, &self.pool);
        let before = self.checkpointer.lock().replace(checkpointer);
        debug_assert!(before.is_none(), "a store is recovered once");
        Ok(())
    }

    /// Takes a checkpoint now, at full speed; returns its redo position.
    pub fn checkpoint(&self) -> Result<Lsn, Error> {
        checkpoint::run(&self.wal, &*self.pool)
    }

    /// Stops the background fibers and writes nothing. The folder is then as after a crash: the
    /// next start recovers. For a process that cannot write any more, and for tests of recovery. In
    /// a fiber.
    pub fn abandon(&self) {
        let checkpointer = self.checkpointer.lock().take();
        if let Some(checkpointer) = checkpointer {
            checkpointer.stop();
        }
        self.pool.stop_writers();
    }

    /// Takes the folder's lock, so that the caller can hold it longer than [`Store::close`] does;
    /// None when it was released.
    pub fn take_lock(&self) -> Option<FileLock> {
        self.lock.lock().take()
    }

    /// Writes everything, stops the background fibers and releases the folder, so that it can be
    /// opened again. Nobody may use the store any more. In a fiber.
    pub fn close(&self) -> Result<(), Error> {
        let checkpointer = self.checkpointer.lock().take();
        // A store that was never recovered stays as it is, for the next start.
        let written = match checkpointer {
            Some(checkpointer) => {
                checkpointer.stop();
                checkpoint::run_last(&self.wal, &*self.pool).map(|_| ())
            }
            None => Ok(()),
        };
        self.pool.stop_writers();
        #[cfg(variants)]
        self.pool.views.report();
        drop(self.take_lock());
        written
    }
}

/// Makes the pool, and spreads the log's ring over the NUMA nodes where it can.
fn make_pool(
    options: &StoreOptions,
    runtime: &Runtime,
    (pages, temporary): (DataFile, DataFile),
    wal: &Arc<Wal>,
) -> Result<(Arc<Pool>, Policy), Error> {
    // All cores fill the log's ring. Its helper may have touched some pages by now: they move.
    let (ring, ..) = wal.memory();
    let workers = runtime.workers();
    let [is_spread] = memory::interleave(workers.shared_memory(), "the log's latest bytes", [ring]);
    let log = Arc::clone(wal) as Arc<dyn PageLog>;
    Ok((Pool::new(options.pool(), workers, pages, temporary, log)?, pool::policy(workers, is_spread)))
}

/// Keeps frames, headers and the log's ring from being swapped out: all of them, or none.
fn lock_memory(pool: &Pool, wal: &Wal) -> Result<(), String> {
    #[cfg(variants)]
    if variants::chosen::is_stock(variants::chosen::Row::PinnedMemory) {
        return Err("the variant pinned-memory=stock locks no memory".to_owned());
    }
    let [frames, headers] = pool.memory_regions();
    memory::lock(&[frames, headers, wal.memory().0])
}

/// The folder's lock; `None` where a look finds no lock file.
fn lock(folder: &Path, look_only: bool) -> Result<Option<FileLock>, Error> {
    let path = folder.join(LOCK_FILE);
    let locked = if look_only { file::lock_existing(&path) } else { file::lock_exclusive(&path).map(Some) };
    match locked {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(Error::Format(FormatProblem::InUse))
        }
        locked => locked.during("locking the data folder"),
    }
}

/// Removes the remains of a store whose making was cut off. The draft of the format file proves
/// that they are nothing else.
fn clear_draft(folder: &Path) -> Result<(), Error> {
    let gone = |path: &Path| match file::remove(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    if !file::exists(&folder.join(DRAFT_FILE)).during("looking for the format file")? {
        return Ok(());
    }
    let segments = file::list(&folder.join(LOG_FOLDER)).unwrap_or_default();
    let files = [control::NAME, log::durable::NAME, PAGES_FILE, TEMPORARY_FILE].map(|name| folder.join(name));
    for path in segments.iter().chain(&files) {
        gone(path).during("removing what an unfinished start has left")?;
    }
    Ok(())
}

fn write_draft(folder: &Path) -> Result<(), Error> {
    let options = OpenOptions { create: true, truncate: true, ..OpenOptions::default() };
    let format = File::open(&folder.join(DRAFT_FILE), options).during("making the format file")?;
    format.write_at(FORMAT.as_bytes(), 0).during("writing the format file")?;
    format.sync_data().during("syncing the format file")?;
    file::sync_dir(folder).during("syncing the data folder")
}

fn check_format(folder: &Path) -> Result<(), Error> {
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let format = match File::open(&folder.join(FORMAT_FILE), options) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::Format(FormatProblem::NotAStore));
        }
        opened => opened.during("opening the format file")?,
    };
    let mut content = [0; FORMAT_BYTES_MAX];
    let length = format.read_some_at(&mut content, 0).during("reading the format file")?;
    if &content[..length] == FORMAT.as_bytes() {
        return Ok(());
    }
    let found = String::from_utf8_lossy(&content[..length]).trim().to_owned();
    Err(Error::Format(FormatProblem::Version { found, read: FORMAT.trim().to_owned() }))
}

/// Applies a logged op to a page, whichever module it belongs to.
pub(crate) fn redo_op(op: u8, payload: &[u8], page: &mut [u8]) -> Result<(), &'static str> {
    let applied = if op <= space::OP_LAST {
        space::redo(op, payload, page)
    } else {
        node::redo::redo(op, payload, page)
    };
    if applied { Ok(()) } else { Err("an operation of the log doesn't fit the page") }
}

#[cfg(test)]
mod tests;
