//! Data folders: how the floors above make, open and verify one.
//!
//! A folder is made in three steps. [`make`] begins it with an empty first tree,
//! [`crate::Engine::open`] serves transactions, which store the first definitions, and [`finish`]
//! names it. A crash before the last step leaves a folder that [`is_vacant`].

use std::path::Path;
use std::sync::Arc;

use runtime::Runtime;
use runtime::file::AlignedBuf;
use storage::btree::Tree;
use storage::recovery::Manner;
use storage::store::StoreOptions;
use storage::{Error, Lsn, PageNo, Store, pool, space};

pub use storage::page::PAGE_SIZE;

/// How to open a folder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Page frames, of [`PAGE_SIZE`] bytes each.
    pub frames: usize,
    /// Change nothing in the folder: changes stay in memory and in nameless temporary files.
    pub look_only: bool,
    /// The log is damaged at this position, and its rest is to be given up.
    pub discard_log_after: Option<u64>,
}

impl Options {
    fn of_store(self, runtime: &Runtime) -> StoreOptions {
        let Options { frames, look_only, discard_log_after } = self;
        let manner = Manner { look_only, discard_log_after: discard_log_after.map(Lsn) };
        StoreOptions { manner, ..StoreOptions::new(frames, runtime.worker_count()) }
    }
}

/// Page frames that a store on this many cores needs at least.
pub fn least_frames(cores: usize) -> usize {
    pool::FRAMES_MIN_PER_CORE * cores
}

/// Whether a folder may be made here: it is not there, or empty, or a crash cut off its making.
pub fn is_vacant(folder: &Path) -> bool {
    Store::is_vacant(folder)
}

/// Begins to make a folder with an empty first tree of this number. Must run in a fiber.
pub fn make(
    folder: &Path,
    runtime: &Arc<Runtime>,
    options: Options,
    first_tree: u32,
) -> Result<Arc<Store>, Error> {
    let store = Store::begin(folder, runtime, &options.of_store(runtime))?;
    Tree::create_first(&store, first_tree)?;
    Ok(store)
}

/// Makes everything written so far durable, and names the folder that [`make`] began.
pub fn finish(store: &Store, folder: &Path) -> Result<(), Error> {
    let wal = store.wal();
    wal.wait_durable(wal.position())?;
    Store::finish(folder)
}

/// Opens a folder and repeats its log; [`crate::Engine::open`] comes next. Must run in a fiber.
pub fn open(folder: &Path, runtime: &Arc<Runtime>, options: Options) -> Result<Arc<Store>, Error> {
    Store::open(folder, runtime, &options.of_store(runtime))
}

/// Whether a page is in use.
pub fn is_used(store: &Store, page: u32) -> Result<bool, Error> {
    store.space().is_used(PageNo(page))
}

/// Reads a page from its file past the pool and verifies its checksum and number; the fault in
/// words. `buffer` has [`PAGE_SIZE`] bytes.
pub fn verify_page(store: &Store, page: u32, buffer: &mut AlignedBuf) -> Result<(), String> {
    let (pool, page) = (store.pool(), PageNo(page));
    pool.file(page).read(page, buffer).map_err(|error| error.to_string())?;
    pool.verify(buffer, page).map_err(|damage| damage.what().to_owned())
}

/// Pages of the space map among the first `pages` pages.
pub fn map_pages(pages: u32) -> u64 {
    let mut last = None;
    let maps = (0..pages).map(|page| space::map_page_of(PageNo(page)).0);
    maps.filter(|map| last.replace(*map) != Some(*map)).count() as u64
}
