//! Making, opening and closing stores, and the space map across restarts.

use crate::log::Share;
use std::fs;
use std::path::PathBuf;

use runtime::Options;

use super::*;
use crate::log::TxnLink;
use crate::page::{self, PageKind, PageNo};
use crate::pool::Restart;
use crate::space::{OP_MAP_SET, PAGES_PER_MAP, SYSTEM_ROOT, map_page_of};

/// A test's data folder and runtime.
struct Bench {
    runtime: Arc<Runtime>,
    folder: PathBuf,
}

/// An undo handler for tests without transactions.
struct NothingToUndo;

impl UndoHandler for NothingToUndo {
    fn undo(&mut self, txn: u64, _: Lsn, _: &[u8], _: Lsn, _: Lsn) -> Result<Lsn, Error> {
        panic!("transaction {txn} was never begun")
    }
}

fn options() -> StoreOptions {
    let wal = WalOptions { segment_bytes: 1 << 20, ring_bytes: 1 << 20, ..WalOptions::new(2) };
    StoreOptions { huge_pages: HugePages::Off, wal, ..StoreOptions::new(256, 2) }
}

impl Bench {
    fn new(name: &str) -> Bench {
        let folder = std::env::temp_dir().join(format!("allcore-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let runtime = Runtime::start(Options { cores: Some(2), pin: false, ..Options::default() }).unwrap();
        Bench { runtime, folder }
    }

    fn create(&self) -> Result<Arc<Store>, Error> {
        self.runtime.call(0, || Store::create(&self.folder, &self.runtime, &options()))
    }

    fn open(&self) -> Result<Arc<Store>, Error> {
        self.runtime.call(0, || Store::open(&self.folder, &self.runtime, &options()))
    }

    fn run<R: Send>(&self, store: &Arc<Store>, body: impl FnOnce(&Store) -> R + Send) -> R {
        self.runtime.call(0, || body(store))
    }

    fn recover(&self, store: &Arc<Store>) {
        self.run(store, |store| store.recover(&mut NothingToUndo).unwrap());
    }

    fn close(&self, store: Arc<Store>) {
        self.run(&store, |store| store.close().unwrap());
    }

    /// Leaves the store as a crash would: it loses everything that is not on disk.
    fn crash(&self, store: Arc<Store>) {
        self.run(&store, Store::abandon);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.runtime.shutdown();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Puts a page into use as a structure change does; returns its number.
fn make_page(store: &Store, content: u8) -> PageNo {
    let page_no = store.space.claim().unwrap();
    let (map_page, bit) = map_page_of(page_no);
    let map_page = store.pool.pin(map_page).unwrap();
    let mut map = loop {
        store.pool.reserve(1).unwrap();
        store.wal.ensure(100).unwrap();
        match map_page.lock() {
            Ok(map) if store.pool.has_reserve(1) => break map,
            Ok(_) | Err(Restart) => sync::park::yield_now(),
        }
    };
    let mut page = store.pool.create(page_no, PageKind::Leaf, 9, 0);
    page.bytes_mut()[page::HEADER_SIZE..].fill(content);
    store.space.mark_used(&mut map, bit);
    let mut change = store.wal.change();
    change.page(&mut page, 0, &[]);
    change.page(&mut map, OP_MAP_SET, &[&bit.to_le_bytes()]);
    change.commit(TxnLink::NONE);
    page_no
}

fn content(store: &Store, page_no: PageNo) -> u8 {
    store.pool.pin(page_no).unwrap().lock_yielding().bytes()[4000]
}

#[test]
fn a_closed_store_comes_back_whole() {
    let bench = Bench::new("close");
    let store = bench.create().unwrap();
    bench.recover(&store);
    let pages =
        bench.run(&store, |store| (0..300).map(|index| make_page(store, index as u8)).collect::<Vec<_>>());
    let free_before = bench.run(&store, |store| store.space.pages());
    bench.close(store);
    let store = bench.open().unwrap();
    bench.recover(&store);
    assert_eq!(store.inheritance().losers, 0);
    bench.run(&store, |store| {
        assert_eq!(store.space.pages(), free_before);
        for (index, &page_no) in pages.iter().enumerate() {
            assert_eq!(content(store, page_no), index as u8);
            assert!(store.space.is_used(page_no).unwrap());
        }
    });
    bench.close(store);
}

#[test]
fn durable_pages_survive_a_crash_and_claims_do_not() {
    let bench = Bench::new("crash");
    let store = bench.create().unwrap();
    bench.recover(&store);
    let (kept, freed, claimed) = bench.run(&store, |store| {
        let kept: Vec<PageNo> = (0..100).map(|_| make_page(store, 7)).collect();
        let freed: Vec<PageNo> = (0..50).map(|_| make_page(store, 8)).collect();
        store.space.free(&freed).unwrap();
        let claimed = store.space.claim().unwrap();
        store.wal.wait_durable(store.wal.position()).unwrap();
        (kept, freed, claimed)
    });
    bench.crash(store);
    let store = bench.open().unwrap();
    bench.recover(&store);
    bench.run(&store, |store| {
        for &page_no in &kept {
            assert_eq!(content(store, page_no), 7);
            assert!(store.space.is_used(page_no).unwrap());
        }
        assert!(!store.space.is_used(claimed).unwrap());
        assert!(freed.iter().all(|&page_no| !store.space.is_used(page_no).unwrap()));
        // Each number is claimed once, and none is in use already.
        let (pages, free) = store.space.pages();
        let claim = |_| store.space.claim_for(Share::Reserved).unwrap();
        let mut fresh: Vec<PageNo> = (0..free).map(claim).collect();
        assert_eq!(store.space.pages(), (pages, 0), "the file had room");
        fresh.extend(&kept);
        fresh.extend([PageNo(0), PageNo(1), SYSTEM_ROOT]);
        fresh.sort_unstable();
        assert_eq!(fresh, (0..pages).map(PageNo).collect::<Vec<_>>());
    });
    bench.close(store);
}

#[test]
fn temporary_pages_come_and_go() {
    let bench = Bench::new("temporary");
    let store = bench.create().unwrap();
    bench.recover(&store);
    bench.run(&store, |store| {
        let pages: Vec<PageNo> = (0..1000)
            .map(|index| {
                let page_no = store.space.claim_temporary().unwrap();
                store.pool.reserve(1).unwrap();
                let mut page = store.pool.create(page_no, PageKind::Undo, 0, 0);
                page.bytes_mut()[4000] = index as u8;
                page_no
            })
            .collect();
        for (index, &page_no) in pages.iter().enumerate() {
            assert_eq!(content(store, page_no), index as u8);
        }
        let (total, free) = store.space.temporary_pages();
        pages.iter().for_each(|&page_no| store.space.free_temporary(page_no));
        assert_eq!(store.space.temporary_pages(), (total, free + 1000));
    });
    bench.close(store);
    let store = bench.open().unwrap();
    assert_eq!(store.space.temporary_pages(), (0, 0));
    bench.crash(store);
}

fn refused(result: Result<Arc<Store>, Error>) -> FormatProblem {
    match result {
        Err(Error::Format(problem)) => problem,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("opened"),
    }
}

#[test]
fn a_creation_that_was_cut_off_begins_anew() {
    let bench = Bench::new("cut-off");
    let (format, draft) = (bench.folder.join(FORMAT_FILE), bench.folder.join(DRAFT_FILE));
    for gone in ["", PAGES_FILE, TEMPORARY_FILE, log::durable::NAME, control::NAME] {
        let store = bench.create().unwrap();
        assert_eq!(refused(bench.create()), FormatProblem::NotEmpty);
        bench.recover(&store);
        bench.close(store);
        assert!(format.exists() && !draft.exists());
        // A crash before the end of the making leaves this.
        fs::rename(&format, &draft).unwrap();
        if !gone.is_empty() {
            fs::remove_file(bench.folder.join(gone)).unwrap();
        }
        assert_eq!(refused(bench.open()), FormatProblem::NotAStore);
    }
    fs::remove_file(&draft).unwrap();
    assert_eq!(refused(bench.create()), FormatProblem::NotEmpty);
}

#[test]
fn folders_that_are_no_store_are_refused() {
    let bench = Bench::new("refused");
    assert_eq!(refused(bench.open()), FormatProblem::NotAStore);
    let store = bench.create().unwrap();
    assert_eq!(refused(bench.create()), FormatProblem::NotEmpty);
    assert_eq!(refused(bench.open()), FormatProblem::InUse);
    bench.recover(&store);
    bench.close(store);
    fs::write(bench.folder.join(FORMAT_FILE), "allcore 99\n").unwrap();
    assert_eq!(
        refused(bench.open()),
        FormatProblem::Version { found: "allcore 99".to_owned(), read: FORMAT.trim().to_owned() }
    );
}

#[test]
fn a_second_group_begins_with_its_map() {
    let bench = Bench::new("groups");
    let store = bench.create().unwrap();
    bench.recover(&store);
    bench.close(store);
    // The file has grown into the second group as if the process had died then: no map is there
    // yet. (A hole: it takes no room.)
    let file = fs::OpenOptions::new().write(true).open(bench.folder.join(PAGES_FILE)).unwrap();
    file.set_len(PageNo(PAGES_PER_MAP + 10).offset()).unwrap();
    drop(file);
    let store = bench.open().unwrap();
    bench.recover(&store);
    let last = bench.run(&store, |store| {
        assert_eq!(store.space.pages(), (PAGES_PER_MAP, PAGES_PER_MAP - 3), "the first group alone");
        (0..PAGES_PER_MAP - 3).for_each(|_| assert!(store.space.claim().unwrap().0 < PAGES_PER_MAP));
        let (first, second) = (make_page(store, 5), make_page(store, 6));
        assert_eq!((first, second), (PageNo(PAGES_PER_MAP), PageNo(PAGES_PER_MAP + 2)));
        second
    });
    bench.run(&store, |store| store.wal.wait_durable(store.wal.position()).unwrap());
    bench.crash(store);
    let store = bench.open().unwrap();
    bench.recover(&store);
    bench.run(&store, |store| {
        assert_eq!(content(store, last), 6);
        assert!(store.space.is_used(last).unwrap() && !store.space.is_used(PageNo(last.0 + 1)).unwrap());
        // A number claimed and not used before the crash is free again.
        assert!(store.space.pages().1 > PAGES_PER_MAP - 10);
    });
    bench.close(store);
}
