//! Data folders: how the layers above make, open and verify one.
//!
//! [`Folder`] is an open one. Its store stays inside this crate. The layers above pass the handle
//! on, and call what has a function here, in [`crate::trees`] or in [`crate::spool`].
//!
//! A folder is made in three steps. [`make`] begins it with an empty first tree.
//! [`crate::Engine::open`] serves transactions, which store the first definitions.
//! [`Folder::finish`] names it. A crash before the last step leaves a folder that [`is_vacant`].

use std::path::Path;
use std::sync::Arc;

use runtime::Runtime;
use runtime::file::{AlignedBuf, FileLock};
use runtime::memory::{HugePages, RegionKind};
use storage::btree::Tree;
use storage::recovery::Manner;
use storage::store::StoreOptions;
use storage::{Error, Lsn, PageNo, Store, pool, space};

pub use storage::log::LogState;
pub use storage::page::PAGE_SIZE;
pub use storage::pool::{PoolState, RegionUse};

/// How to open a folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Page frames, of [`PAGE_SIZE`] bytes each.
    pub frames: usize,
    /// Change nothing in the folder: changes stay in memory and in nameless temporary files.
    pub look_only: bool,
    /// The log is damaged at this position, and its rest is to be given up.
    pub discard_log_after: Option<u64>,
    /// Frames that the clock sweep claims at a time; `None` chooses by NUMA nodes, cores and
    /// frames.
    pub sweep_batch: Option<usize>,
    /// Whether to ask for huge pages.
    pub huge_pages: HugePages,
}

impl Options {
    fn of_store(self, runtime: &Runtime) -> StoreOptions {
        let Options { frames, look_only, discard_log_after, sweep_batch, huge_pages } = self;
        let manner = Manner { look_only, discard_log_after: discard_log_after.map(Lsn) };
        StoreOptions { manner, sweep_batch, huge_pages, ..StoreOptions::new(frames, runtime.worker_count()) }
    }
}

/// Page frames that a store on this many cores needs at least.
pub fn least_frames(cores: usize) -> usize {
    pool::FRAMES_MIN_PER_CORE * cores
}

/// The huge pages of 2 MiB that buffers of so many frames lack, if they may be in no others.
pub fn lacks_huge_pages(frames: usize) -> Option<usize> {
    pool::lacks_huge_pages(frames)
}

/// Whether a folder may be made here: it is not there, or empty, or a crash cut off its making.
pub fn is_vacant(folder: &Path) -> bool {
    Store::is_vacant(folder)
}

/// An open data folder. Clones are handles of the same one.
#[derive(Clone)]
pub struct Folder(pub(crate) Arc<Store>);

impl From<Arc<Store>> for Folder {
    fn from(store: Arc<Store>) -> Folder {
        Folder(store)
    }
}

/// For code that names storage's type itself, as tests do.
impl From<&Folder> for Arc<Store> {
    fn from(folder: &Folder) -> Arc<Store> {
        Arc::clone(&folder.0)
    }
}

/// Begins to make a folder with an empty first tree of this number. Must run in a fiber.
pub fn make(
    folder: &Path,
    runtime: &Arc<Runtime>,
    options: Options,
    first_tree: u32,
) -> Result<Folder, Error> {
    let store = Store::begin(folder, runtime, &options.of_store(runtime))?;
    Tree::create_first(&store, first_tree)?;
    Ok(Folder(store))
}

/// Opens a folder and repeats its log; [`crate::Engine::open`] comes next. Must run in a fiber.
pub fn open(folder: &Path, runtime: &Arc<Runtime>, options: Options) -> Result<Folder, Error> {
    Store::open(folder, runtime, &options.of_store(runtime)).map(Folder)
}

impl Folder {
    /// Makes everything written so far durable, and names the folder that [`make`] began at `path`.
    pub fn finish(&self, path: &Path) -> Result<(), Error> {
        let wal = self.0.wal();
        wal.wait_durable(wal.position())?;
        Store::finish(path)
    }

    /// The runtime that the folder's store works on.
    #[inline]
    pub fn runtime(&self) -> &Arc<Runtime> {
        self.0.runtime()
    }

    /// Bytes of the page pool, and the kind of memory it has.
    pub fn pool(&self) -> (usize, RegionKind) {
        (self.0.pool().frames() * PAGE_SIZE, self.0.pool().memory())
    }

    /// Whether the page pool and the log's ring stay in memory once they are touched, or why not.
    pub fn locked(&self) -> Result<(), &str> {
        self.0.locked()
    }

    /// The regions of memory of pages and of the log. It has safe points.
    pub fn regions(&self) -> Vec<RegionUse> {
        self.0.regions()
    }

    /// Touches all memory of the page pool and of the log's ring. Calls `progress` with the touched
    /// bytes of frames now and then; false gives up. Blocks, so not to be called on a worker.
    pub fn preload(&self, progress: &mut dyn FnMut(usize) -> bool) {
        self.0.preload(&mut |frames| progress(frames * PAGE_SIZE));
    }

    /// Frames that the clock sweep claims at a time.
    pub fn sweep_batch(&self) -> usize {
        self.0.pool().sweep_batch()
    }

    /// Pages that were evicted from the pool since the folder was opened.
    pub fn evictions(&self) -> u64 {
        self.0.pool().statistics().evictions
    }

    /// The page pool as it is now.
    pub fn buffers(&self) -> PoolState {
        self.0.pool().state(self.0.runtime().workers())
    }

    /// The log as it is now.
    pub fn log(&self) -> LogState {
        self.0.wal().state()
    }

    /// Bytes of a segment of the log, and of log after which a checkpoint begins.
    pub fn log_bytes(&self) -> (u64, u64) {
        let options = self.0.wal().options();
        (options.segment_bytes, options.checkpoint_bytes)
    }

    /// Unfinished transactions that the start found and undoes.
    pub fn losers(&self) -> usize {
        self.0.inheritance().losers
    }

    /// Takes a checkpoint now, at full speed. Parks.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.0.checkpoint().map(drop)
    }

    /// Takes the lock that keeps others from opening the folder, so that the caller can hold it
    /// longer than the engine does. `None` where it was taken before.
    pub fn take_lock(&self) -> Option<FileLock> {
        self.0.take_lock()
    }

    /// Pages of the file, and how many of them are free.
    pub fn pages(&self) -> (u32, u32) {
        self.0.space().pages()
    }

    /// Pages of the temporary file, and how many of them are free.
    pub fn temporary_pages(&self) -> (u32, u32) {
        self.0.space().temporary_pages()
    }

    /// Whether a page is in use.
    pub fn is_used(&self, page: u32) -> Result<bool, Error> {
        self.0.space().is_used(PageNo(page))
    }

    /// Reads a page from its file past the pool and verifies its checksum and number; the fault in
    /// words. `buffer` has [`PAGE_SIZE`] bytes.
    pub fn verify_page(&self, page: u32, buffer: &mut AlignedBuf) -> Result<(), String> {
        let (pool, page) = (self.0.pool(), PageNo(page));
        pool.file(page).read(page, buffer).map_err(|error| error.to_string())?;
        pool.verify(buffer, page).map_err(|damage| damage.what().to_owned())
    }
}

/// Pages of the space map among the first `pages` pages.
pub fn map_pages(pages: u32) -> u64 {
    let mut last = None;
    let maps = (0..pages).map(|page| space::map_page_of(PageNo(page)).0);
    maps.filter(|map| last.replace(*map) != Some(*map)).count() as u64
}
