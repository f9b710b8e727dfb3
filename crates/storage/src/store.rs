//! The store: a data folder with its pool, log and space map, opened and closed as one.
//!
//! In the folder: `ALLCORE` (the format's version; named so last when the folder is made, and `ALLCORE.new` before, so that
//! a folder whose making was cut short is made anew), `lock` (held while it is open), `control` and `log/` (the log's), `pages`, `temp`.
//!
//! A start: [`Store::open`] finds the log's end and repeats history, then [`Store::recover`] undoes, with the help of
//! the room above, what was never committed, and takes a checkpoint. Only then may anything else change the store.
//! An end: [`Store::close`] writes everything and takes a last checkpoint. A store that isn't closed is recovered.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use runtime::Runtime;
use runtime::file::{self, File, FileLock, OpenOptions};
use runtime::memory::HugePages;
use sync::SpinLock;

use crate::checkpoint::{self, Checkpointer};
use crate::datafile::{DataFile, Opening};
use crate::error::{FormatProblem, IoContext};
use crate::format::{FORMAT, LOG_FOLDER};
use crate::log::{Wal, WalOptions};
use crate::page::Lsn;
use crate::pool::{PageLog, Pool, PoolOptions};
use crate::recovery::{Manner, Recovery, UndoHandler, crew};
use crate::space::Space;
use crate::{Error, control, log, node, space};

const FORMAT_FILE: &str = "ALLCORE";
/// The name of the format file until the store is made.
const DRAFT_FILE: &str = "ALLCORE.new";
const LOCK_FILE: &str = "lock";
const PAGES_FILE: &str = "pages";
const TEMPORARY_FILE: &str = "temp";
/// Longest content of the format file that is looked at.
const FORMAT_BYTES_MAX: usize = 64;

/// Sizes of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Frames of the pool, 8 KiB each.
    pub frames: usize,
    /// Frames the clock sweep claims at a time; `None` chooses by frames and cores.
    pub sweep_batch: Option<usize>,
    /// Whether to ask for huge pages.
    pub huge_pages: HugePages,
    /// The log's sizes.
    pub wal: WalOptions,
    /// How a folder that exists is opened.
    pub manner: Manner,
}

impl StoreOptions {
    /// What a store on `cores` has if nothing but the size of its pool is asked for.
    pub fn new(frames: usize, cores: usize) -> StoreOptions {
        StoreOptions {
            frames,
            sweep_batch: None,
            huge_pages: HugePages::Try,
            wal: WalOptions::new(cores),
            manner: Manner::default(),
        }
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

/// What the store's last life left to the room above.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Inheritance {
    /// The highest transaction number in the log that was read; earlier ones are known from `info`.
    pub highest_txn: u64,
    /// The last checkpoint's values of the room above.
    pub info: Vec<u8>,
    /// Transactions that [`Store::recover`] has to undo.
    pub losers: usize,
}

/// An open data folder.
pub struct Store {
    /// Pages in memory.
    pub(crate) pool: Arc<Pool>,
    /// The write-ahead log.
    pub(crate) wal: Arc<Wal>,
    /// Which pages are in use.
    pub(crate) space: Space,
    /// The machine it runs on.
    pub(crate) runtime: Arc<Runtime>,
    inheritance: Inheritance,
    /// The start in progress, until `recover` has ended it.
    recovery: SpinLock<Option<Recovery>>,
    checkpointer: SpinLock<Option<Arc<Checkpointer>>>,
    /// Given back when the store is closed or dropped.
    lock: SpinLock<Option<FileLock>>,
}

impl Store {
    /// Makes a new store in `folder`, which must be vacant. To be called in a fiber.
    pub fn create(
        folder: &Path,
        runtime: &Arc<Runtime>,
        options: &StoreOptions,
    ) -> Result<Arc<Store>, Error> {
        let store = Store::begin(folder, runtime, options)?;
        Store::finish(folder).inspect_err(|_| store.pool.stop_writers())?;
        Ok(store)
    }

    /// Whether a store may be made in `folder`: it is not there, or empty, or a crash cut off the making of one.
    pub fn is_vacant(folder: &Path) -> bool {
        let found = match file::list(folder) {
            Ok(found) => found,
            // A folder that cannot be read may hold a store; a file in its place is found when the folder is made.
            Err(error) => return matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        let is = |path: &Path, name: &str| path.file_name().is_some_and(|found| found == name);
        let has = |name| found.iter().any(|path| is(path, name));
        !has(FORMAT_FILE) && (has(DRAFT_FILE) || found.iter().all(|path| is(path, LOCK_FILE)))
    }

    /// Begins to make a store: the folder stays vacant until [`Store::finish`], so that what a crash or a full disk leaves of
    /// it is in nobody's way. To be called in a fiber.
    pub fn begin(folder: &Path, runtime: &Arc<Runtime>, options: &StoreOptions) -> Result<Arc<Store>, Error> {
        file::create_dir(folder).during("making the data folder")?;
        let vacant = || Store::is_vacant(folder).then_some(()).ok_or(Error::Format(FormatProblem::NotEmpty));
        vacant()?;
        let lock = lock(folder, false)?;
        // Another process may have made one meanwhile.
        vacant()?;
        clear_draft(folder)?;
        write_draft(folder)?;
        let wal = Wal::create(folder, options.wal)?;
        let pages = DataFile::open(&folder.join(PAGES_FILE), Opening::New)?;
        let temporary = DataFile::open(&folder.join(TEMPORARY_FILE), Opening::Empty)?;
        let pool = make_pool(options, (pages, temporary), &wal)?;
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
            inheritance: Inheritance::default(),
            recovery: SpinLock::new(None),
            checkpointer: SpinLock::new(None),
            lock: SpinLock::new(lock),
        }))
    }

    /// The store that [`Store::begin`] began is made, and all that belongs to it is durable.
    pub fn finish(folder: &Path) -> Result<(), Error> {
        file::rename(&folder.join(DRAFT_FILE), &folder.join(FORMAT_FILE)).during("naming the format file")?;
        file::sync_dir(folder).during("syncing the data folder")
    }

    /// Opens the store in `folder` and repeats what its log says. [`Store::recover`] comes next. To be called in a fiber.
    /// With [`Manner::look_only`] the folder stays as it is: what recovery and the caller change lies in memory and in files
    /// without names.
    pub fn open(folder: &Path, runtime: &Arc<Runtime>, options: &StoreOptions) -> Result<Arc<Store>, Error> {
        check_format(folder)?;
        let look_only = options.manner.look_only;
        let lock = lock(folder, look_only)?;
        let (recovery, control_file) = Recovery::analyse(folder, options.manner)?;
        let (wal, opening, temporary) = match look_only {
            false => (recovery.resume(control_file, options.wal)?, Opening::Existing, Opening::Empty),
            true => (recovery.rehearse(control_file, options.wal)?, Opening::Overlaid, Opening::Nameless),
        };
        let pages = DataFile::open(&folder.join(PAGES_FILE), opening)?;
        let temporary = DataFile::open(&folder.join(TEMPORARY_FILE), temporary)?;
        let pool = make_pool(options, (pages, temporary), &wal)?;
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
            inheritance,
            recovery: SpinLock::new(Some(recovery)),
            checkpointer: SpinLock::new(None),
            lock: SpinLock::new(lock),
        }))
    }

    /// Pages in memory.
    #[inline]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The write-ahead log.
    #[inline]
    pub fn wal(&self) -> &Arc<Wal> {
        &self.wal
    }

    /// Which pages are in use.
    #[inline]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The machine it runs on.
    #[inline]
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// What the last life left.
    pub fn inheritance(&self) -> &Inheritance {
        &self.inheritance
    }

    /// Ends the start: undoes what was never committed, takes a checkpoint if anything was found in the log, and takes
    /// checkpoints in the background from then on. Once, after `create` or `open`, in a fiber.
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

    /// Takes a checkpoint now, as fast as it goes; gives its redo position.
    pub fn checkpoint(&self) -> Result<Lsn, Error> {
        checkpoint::run(&self.wal, &*self.pool)
    }

    /// Stops what runs in the background and writes nothing, which leaves the folder as a crash would: the next start
    /// recovers. For a process that can't write any more, and for tests of recovery. In a fiber.
    pub fn abandon(&self) {
        let checkpointer = self.checkpointer.lock().take();
        if let Some(checkpointer) = checkpointer {
            checkpointer.stop();
        }
        self.pool.stop_writers();
    }

    /// The folder's lock, for who wants to keep it longer than [`Store::close`] does; none when it was given up.
    pub fn take_lock(&self) -> Option<FileLock> {
        self.lock.lock().take()
    }

    /// Writes everything, stops what runs in the background and gives the folder up, so that it can be opened again.
    /// Nobody may use the store any more. In a fiber.
    pub fn close(&self) -> Result<(), Error> {
        let checkpointer = self.checkpointer.lock().take();
        // A store that was never recovered is left as it is, for the next start.
        let written = match checkpointer {
            Some(checkpointer) => {
                checkpointer.stop();
                checkpoint::run_last(&self.wal, &*self.pool).map(|_| ())
            }
            None => Ok(()),
        };
        self.pool.stop_writers();
        drop(self.take_lock());
        written
    }
}

fn make_pool(
    options: &StoreOptions,
    (pages, temporary): (DataFile, DataFile),
    wal: &Arc<Wal>,
) -> Result<Arc<Pool>, Error> {
    Pool::new(options.pool(), pages, temporary, Arc::clone(wal) as Arc<dyn PageLog>)
}

/// The folder's lock; `None` where looking finds no lock file.
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

/// Removes what the making of a store has left that was cut off; the draft of the format file vouches that it is nothing else.
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
fn redo_op(op: u8, payload: &[u8], page: &mut [u8]) -> Result<(), &'static str> {
    let applied = if op <= space::OP_LAST {
        space::redo(op, payload, page)
    } else {
        node::redo::redo(op, payload, page)
    };
    if applied { Ok(()) } else { Err("an operation of the log doesn't fit the page") }
}

#[cfg(test)]
mod tests;
