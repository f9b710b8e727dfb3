//! A store and an engine in a folder of their own, and short helpers for tests.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod aside;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runtime::memory::HugePages;
use runtime::{Options, Runtime, fiber, time};
use storage::btree::Tree;
use storage::log::WalOptions;
use storage::space::SYSTEM_ROOT;
use storage::store::{Store, StoreOptions};
use txn::{Engine, InsertOutcome, Isolation, Outcome, Stamp, TxnSession};

pub const CORES: usize = 2;
/// Time after which a wait in these tests counts as a hang.
const HANG_AFTER: Duration = Duration::from_secs(120);

/// A test's runtime, data folder and engine.
pub struct Bench {
    pub runtime: Arc<Runtime>,
    folder: PathBuf,
    engine: Option<Arc<Engine>>,
}

pub fn options(frames: usize) -> StoreOptions {
    let wal = WalOptions { segment_bytes: 1 << 22, ring_bytes: 1 << 22, ..WalOptions::new(CORES) };
    StoreOptions { huge_pages: HugePages::Off, wal, ..StoreOptions::new(frames, CORES) }
}

pub fn table() -> Tree {
    Tree::new(1, SYSTEM_ROOT)
}

pub fn start_runtime() -> Arc<Runtime> {
    let options = Options { cores: Some(CORES), pin: false, ..Options::default() };
    Runtime::start(options).expect("the runtime starts")
}

pub fn test_folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("allcore-txn-{name}-{}", std::process::id()))
}

/// Makes or opens the store in `folder`. A new store gets one empty table.
pub fn open_engine(runtime: &Arc<Runtime>, folder: &std::path::Path, frames: usize) -> Arc<Engine> {
    runtime.call(0, || {
        let new = !folder.join("ALLCORE").exists();
        let opened = match new {
            true => Store::create(folder, runtime, &options(frames)),
            false => Store::open(folder, runtime, &options(frames)),
        };
        let engine = Engine::open(opened.expect("the store opens").into()).expect("the engine opens");
        if new {
            Tree::create_first(&store_of(&engine), 1).expect("the first tree");
        }
        engine
    })
}

/// The store under an engine.
pub fn store_of(engine: &Engine) -> Arc<Store> {
    engine.folder().into()
}

impl Bench {
    pub fn new(name: &str) -> Bench {
        Bench::with_frames(name, 1024)
    }

    pub fn with_frames(name: &str, frames: usize) -> Bench {
        let folder = test_folder(name);
        let _ = std::fs::remove_dir_all(&folder);
        let runtime = start_runtime();
        let engine = open_engine(&runtime, &folder, frames);
        Bench { runtime, folder, engine: Some(engine) }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        self.engine.as_ref().expect("open")
    }

    /// Runs `body` in a fiber of core 0.
    pub fn run<R: Send>(&self, body: impl FnOnce(&Arc<Engine>) -> R + Send) -> R {
        self.runtime.call(0, || body(self.engine()))
    }

    /// Closes the store and opens it again.
    pub fn reopen(&mut self) {
        let engine = self.engine.take().expect("open");
        self.runtime.call(0, || engine.close().expect("closes"));
        drop(engine);
        self.engine = Some(open_engine(&self.runtime, &self.folder, 1024));
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            self.runtime.call(0, || {
                let _ = engine.close();
            });
        }
        self.runtime.shutdown();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Lets other fibers run until `condition` holds.
pub fn until(mut condition: impl FnMut() -> bool) {
    let start = time::precise();
    while !condition() {
        assert!(time::precise() - start < HANG_AFTER.as_nanos() as u64, "waited in vain");
        fiber::sleep(Duration::from_millis(1));
    }
}

/// Short forms of a session's calls.
pub trait Short {
    fn start(&self, isolation: Isolation);
    fn read(&self, key: &str) -> Option<String>;
    fn stamp(&self, key: &str) -> Option<Stamp>;
    fn put(&self, key: &str, row: &str) -> InsertOutcome;
    fn set(&self, key: &str, row: &str) -> Outcome;
    fn remove(&self, key: &str) -> Outcome;
    fn all(&self) -> Vec<(String, String)>;
    /// Runs `body` as the only statement of a transaction.
    fn alone<R>(&self, body: impl FnOnce() -> R) -> R;
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

impl Short for TxnSession {
    fn start(&self, isolation: Isolation) {
        self.begin(isolation, false);
        self.statement_start().expect("starts");
    }

    fn read(&self, key: &str) -> Option<String> {
        let mut row = Vec::new();
        self.get(&table(), key.as_bytes(), &mut row).expect("reads").map(|_| text(&row))
    }

    fn stamp(&self, key: &str) -> Option<Stamp> {
        self.get(&table(), key.as_bytes(), &mut Vec::new()).expect("reads")
    }

    fn put(&self, key: &str, row: &str) -> InsertOutcome {
        self.insert(&table(), key.as_bytes(), row.as_bytes()).expect("inserts")
    }

    fn set(&self, key: &str, row: &str) -> Outcome {
        let seen = self.stamp(key).expect("is there");
        self.update(&table(), key.as_bytes(), seen, row.as_bytes()).expect("updates")
    }

    fn remove(&self, key: &str) -> Outcome {
        let seen = self.stamp(key).expect("is there");
        self.delete(&table(), key.as_bytes(), seen).expect("deletes")
    }

    fn all(&self) -> Vec<(String, String)> {
        let mut scan = self.scan(&table(), txn::Range::ALL, txn::Direction::Forward);
        let mut all = Vec::new();
        while let Some(entry) = scan.next(self).expect("scans").map(|(key, row, _)| (text(key), text(row))) {
            all.push(entry);
        }
        all
    }

    fn alone<R>(&self, body: impl FnOnce() -> R) -> R {
        self.start(Isolation::ReadCommitted);
        let result = body();
        self.commit(true).expect("commits");
        result
    }
}
