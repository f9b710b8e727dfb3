//! A spool returns its bytes in order, and its pages when it goes.

use std::fs;

use runtime::memory::HugePages;
use runtime::{Options, Runtime};

use super::*;
use crate::log::WalOptions;
use crate::recovery::UndoHandler;
use crate::store::StoreOptions;
use crate::{Lsn, page};

struct NothingToUndo;

impl UndoHandler for NothingToUndo {
    fn undo(&mut self, txn: u64, _: Lsn, _: &[u8], _: Lsn, _: Lsn) -> Result<Lsn, Error> {
        panic!("transaction {txn} was never begun")
    }
}

/// Runs `body` on a worker with a new store of few frames, and checks that every page came back.
fn with_store(name: &str, body: impl FnOnce(&Arc<Store>) + Send) {
    with_closed_store(name, |store| {
        body(store);
        let (pages, free) = store.space.temporary_pages();
        assert_eq!(pages, free, "every page was given back");
    });
}

/// Runs `body` on a worker with a new store of few frames, closes the store, and returns the result
/// of `body`.
fn with_closed_store<R: Send>(name: &str, body: impl FnOnce(&Arc<Store>) -> R + Send) -> R {
    let folder = std::env::temp_dir().join(format!("allcore-spool-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let runtime = Runtime::start(Options { cores: Some(2), pin: false, ..Options::default() }).unwrap();
    let wal = WalOptions { segment_bytes: 1 << 20, ring_bytes: 1 << 20, ..WalOptions::new(2) };
    let options = StoreOptions { huge_pages: HugePages::Off, wal, ..StoreOptions::new(128, 2) };
    let result = runtime.call(0, || {
        let store = Store::create(&folder, &runtime, &options).unwrap();
        store.recover(&mut NothingToUndo).unwrap();
        let result = body(&store);
        store.close().unwrap();
        result
    });
    runtime.shutdown();
    let _ = fs::remove_dir_all(&folder);
    result
}

/// The byte at a place of a spool in these tests.
fn byte(at: u64) -> u8 {
    (at % 251) as u8
}

fn fill(store: &Arc<Store>, spool: &mut Spool, bytes: u64, step: u64) {
    while spool.len() < bytes {
        let at = spool.len();
        let end = bytes.min(at + step);
        spool.append(store, |tail| tail.extend((at..end).map(byte))).unwrap();
    }
}

#[test]
fn a_small_spool_uses_no_page() {
    with_store("small", |store| {
        let mut spool = Spool::new(100_000);
        fill(store, &mut spool, 100_000, 999);
        assert!(!spool.is_spilled());
        assert_eq!(store.space.temporary_pages(), (0, 0));
        let mut reader = SpoolReader::default();
        assert!(reader.read(&spool, 100_000).unwrap().iter().copied().eq((0..100_000).map(byte)));
        assert!(reader.read(&spool, 1).is_err());
        fill(store, &mut spool, 100_001, 1);
        assert!(spool.is_spilled());
    });
}

#[test]
fn a_spool_returns_the_bytes_it_was_given() {
    with_store("read", |store| {
        // More pages than the pool has frames, so that pages go to disk and come back.
        let bytes = 300 * page::PAGE_SIZE as u64;
        for (bound, step, seal) in [(0, 700, false), (50_000, 20_011, false), (0, 100, true)] {
            let mut spool = Spool::new(bound);
            fill(store, &mut spool, bytes, step);
            if seal {
                spool.seal(store).unwrap();
            }
            let mut reader = SpoolReader::default();
            for (at, len) in [(0, 10), (PIECE as u64 - 5, 10), (100_000, 60_000), (bytes - 3, 3)] {
                reader.seek(at);
                let read = reader.read(&spool, len as usize).unwrap();
                assert!(read.iter().copied().eq((at..at + len).map(byte)), "{len} from {at}");
            }
            assert!(reader.read(&spool, 1).is_err());
            reader.seek(0);
            while reader.at() + 1000 <= bytes {
                let at = reader.at();
                let read = reader.read(&spool, 1000).unwrap();
                assert!(read.iter().copied().eq((at..at + 1000).map(byte)), "from {at}");
                spool.release_before(reader.at());
            }
            reader.seek(0);
            assert!(reader.read(&spool, 1).is_err(), "given back");
        }
    });
}

#[test]
fn an_emptied_spool_keeps_as_much_in_memory_as_a_new_one() {
    with_store("emptied", |store| {
        let mut spool = Spool::new(100_000);
        fill(store, &mut spool, 200_000, 999);
        assert!(spool.is_spilled());
        spool.clear();
        fill(store, &mut spool, 100_000, 999);
        assert!(!spool.is_spilled(), "it spilled once and does ever after");
        let mut reader = SpoolReader::default();
        assert!(reader.read(&spool, 100_000).unwrap().iter().copied().eq((0..100_000).map(byte)));
    });
}

#[test]
fn a_spool_gives_its_pages_back_wherever_it_is_dropped() {
    let other = Runtime::start(Options { cores: Some(4), pin: false, ..Options::default() }).unwrap();
    with_store("anywhere", |store| {
        let spools: Vec<Spool> = (0..3)
            .map(|_| {
                let mut spool = Spool::new(0);
                fill(store, &mut spool, 100_000, 999);
                spool
            })
            .collect();
        // The drop happens on no worker, on a core of that number in another runtime, and on a core
        // that this store lacks.
        std::thread::scope(|scope| {
            let mut spools = spools.into_iter();
            let first = spools.next();
            scope.spawn(move || drop(first));
            for (core, spool) in [1, 3].into_iter().zip(spools) {
                let other = &other;
                scope.spawn(move || other.call(core, || drop(spool)));
            }
        });
        let free = || {
            let (pages, free) = store.space.temporary_pages();
            pages == free
        };
        let begun = runtime::time::precise();
        while !free() {
            assert!(runtime::time::precise() - begun < 60_000_000_000, "pages stay in use");
            runtime::fiber::yield_now();
        }
    });
    other.shutdown();
}

#[test]
fn a_spool_may_outlive_its_store() {
    let other = Runtime::start(Options { cores: Some(4), pin: false, ..Options::default() }).unwrap();
    let (store, mut spools) = with_closed_store("outlives", |store| {
        let spools: Vec<Spool> = (0..2)
            .map(|_| {
                let mut spool = Spool::new(0);
                fill(store, &mut spool, 100_000, 999);
                spool
            })
            .collect();
        (Arc::downgrade(store), spools)
    });
    other.call(3, || drop(spools.pop()));
    assert_eq!(store.strong_count(), 1, "what nobody takes any more keeps the store");
    drop(spools);
    assert_eq!(store.strong_count(), 0, "what nobody takes any more keeps the store");
    other.shutdown();
}
