//! Tests of the B+-tree: nodes alone, trees against a map, many cores at once, crashes, and damage.

mod build;
mod crash;
mod damage;
mod sample;
mod speed;
mod stress;
mod tree;

use std::path::PathBuf;
use std::sync::Arc;
use sync::atomic::{AtomicU64, Ordering};

use runtime::memory::HugePages;
use runtime::{Options, Runtime};

use super::{Action, EntryChange, Near, Tree};
use crate::log::{TxnLink, WalOptions};
use crate::recovery::UndoHandler;
use crate::store::StoreOptions;
use crate::{Error, Lsn, Store};

/// The tree's number in these tests.
const TREE: u32 = 9;

/// A test's data folder and runtime.
struct Bench {
    runtime: Arc<Runtime>,
    folder: PathBuf,
    options: StoreOptions,
}

/// An undo handler for tests without transactions.
struct NothingToUndo;

impl UndoHandler for NothingToUndo {
    fn undo(&mut self, txn: u64, _: Lsn, _: &[u8], _: Lsn, _: Lsn) -> Result<Lsn, Error> {
        panic!("transaction {txn} was never begun")
    }
}

impl Bench {
    fn new(cores: usize, frames: usize) -> Bench {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("allcore-btree-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let runtime =
            Runtime::start(Options { cores: Some(cores), pin: false, ..Options::default() }).unwrap();
        let wal = WalOptions { segment_bytes: 4 << 20, ..WalOptions::new(cores) };
        let options = StoreOptions { huge_pages: HugePages::Off, wal, ..StoreOptions::new(frames, cores) };
        Bench { runtime, folder, options }
    }

    fn create(&self) -> (Arc<Store>, Tree) {
        self.runtime.call(0, || {
            let store = Store::create(&self.folder, &self.runtime, &self.options).unwrap();
            store.recover(&mut NothingToUndo).unwrap();
            let tree = Tree::create_at(&store, TREE, store.space.claim().unwrap()).unwrap();
            (store, tree)
        })
    }

    fn open(&self) -> Arc<Store> {
        self.runtime.call(0, || {
            let store = Store::open(&self.folder, &self.runtime, &self.options).unwrap();
            store.recover(&mut NothingToUndo).unwrap();
            store
        })
    }

    fn run<R: Send>(&self, store: &Arc<Store>, body: impl FnOnce(&Store) -> R + Send) -> R {
        self.runtime.call(0, || body(store))
    }

    fn close(&self, store: Arc<Store>) {
        self.run(&store, |store| store.close().unwrap());
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.runtime.shutdown();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Inserts or replaces an entry and remembers the old value.
struct Put<'a> {
    value: &'a [u8],
    before: Option<Vec<u8>>,
    lsn: Lsn,
}

impl EntryChange for Put<'_> {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        Action::Put
    }

    fn value_len(&self) -> usize {
        self.value.len()
    }

    fn apply(&mut self, present: Option<&[u8]>, value: &mut [u8], _: &mut Vec<u8>) -> TxnLink {
        self.before = present.map(<[u8]>::to_vec);
        value.copy_from_slice(self.value);
        TxnLink::NONE
    }

    fn logged(&mut self, lsn: Lsn) {
        self.lsn = lsn;
    }
}

/// Removes an entry and remembers its value.
struct Take {
    before: Option<Vec<u8>>,
    lsn: Lsn,
}

impl EntryChange for Take {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        Action::Remove
    }

    fn value_len(&self) -> usize {
        0
    }

    fn apply(&mut self, present: Option<&[u8]>, value: &mut [u8], _: &mut Vec<u8>) -> TxnLink {
        assert!(value.is_empty());
        self.before = present.map(<[u8]>::to_vec);
        TxnLink::NONE
    }

    fn logged(&mut self, lsn: Lsn) {
        self.lsn = lsn;
    }
}

fn put(store: &Store, tree: Tree, key: &[u8], value: &[u8]) -> (Option<Vec<u8>>, Lsn) {
    put_near(store, tree, &mut Near::default(), key, value)
}

fn put_near(store: &Store, tree: Tree, near: &mut Near, key: &[u8], value: &[u8]) -> (Option<Vec<u8>>, Lsn) {
    let mut change = Put { value, before: None, lsn: Lsn::ZERO };
    tree.change_near(store, key, near, &mut change).unwrap();
    (change.before, change.lsn)
}

fn take(store: &Store, tree: Tree, key: &[u8]) -> (Option<Vec<u8>>, Lsn) {
    take_near(store, tree, &mut Near::default(), key)
}

fn take_near(store: &Store, tree: Tree, near: &mut Near, key: &[u8]) -> (Option<Vec<u8>>, Lsn) {
    let mut change = Take { before: None, lsn: Lsn::ZERO };
    tree.change_near(store, key, near, &mut change).unwrap();
    (change.before, change.lsn)
}

/// The entries in order, read forward.
fn scan(store: &Store, tree: Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = super::Cursor::new(tree);
    let mut entries = Vec::new();
    while let Some((key, value)) = cursor.next(store).unwrap() {
        entries.push((key.to_vec(), value.to_vec()));
    }
    entries
}

/// The entries in order, read backward.
fn scan_back(store: &Store, tree: Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = super::Cursor::new(tree);
    let mut entries = Vec::new();
    cursor.seek_end(store).unwrap();
    while let Some((key, value)) = cursor.prev(store).unwrap() {
        entries.push((key.to_vec(), value.to_vec()));
    }
    entries.reverse();
    entries
}

fn assert_sound(store: &Store, tree: Tree) -> super::Report {
    let report = tree.check(store).unwrap();
    assert_eq!(report.problems, []);
    report
}

/// Random numbers that a seed repeats.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
