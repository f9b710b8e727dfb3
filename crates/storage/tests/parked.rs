//! One fiber parks at a stop point of the pool, the space map or a tree, and others want the same
//! meanwhile.
//!
//! Stop points belong to the process, so one test runs at a time ([`alone`]).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtime::memory::HugePages;
use runtime::stop;
use runtime::{Options, Runtime};
use storage::btree::{Action, Cursor, EntryChange, Report, Tree};
use storage::datafile::{DataFile, Opening};
use storage::log::{TxnLink, WalOptions};
use storage::page::{HEADER_SIZE, PAGE_SIZE};
use storage::pool::{FRAMES_MIN_PER_CORE, PageLog, PoolOptions};
use storage::recovery::UndoHandler;
use storage::store::StoreOptions;
use storage::{Error, Lsn, PageKind, PageMut, PageNo, Pool, Store};
use sync::atomic::{AtomicBool, AtomicU64, Ordering};

const CORES: usize = 2;
/// A wait longer than this counts as a hang.
const LONG: Duration = Duration::from_secs(60);

/// Holds off other tests; no point stays armed after it.
struct Alone(#[allow(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Drop for Alone {
    fn drop(&mut self) {
        stop::clear();
    }
}

fn alone() -> Alone {
    static TURN: Mutex<()> = Mutex::new(());
    Alone(TURN.lock().unwrap_or_else(PoisonError::into_inner))
}

fn until(what: &str, ready: impl Fn() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < LONG, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Arms the point so that the `nth` fiber to reach it parks there.
fn park_at(point: &str, nth: u64) {
    stop::clear();
    stop::arm(point, stop::Action::Park, Some(nth));
}

/// A fiber that runs beside the test, and whether it has ended.
struct Aside<R> {
    outcome: Arc<Mutex<Option<R>>>,
}

impl<R: Send + 'static> Aside<R> {
    fn start(machine: &Runtime, core: usize, body: impl FnOnce() -> R + Send + 'static) -> Aside<R> {
        let outcome = Arc::new(Mutex::new(None));
        let end = Arc::clone(&outcome);
        machine.spawn(core, move || *end.lock().unwrap() = Some(body()));
        Aside { outcome }
    }

    fn is_done(&self) -> bool {
        self.outcome.lock().unwrap().is_some()
    }

    fn end(self) -> R {
        until("a fiber's end", || self.is_done());
        self.outcome.lock().unwrap().take().unwrap()
    }
}

/// Returns once every fiber that was started on the core has run until it parked or ended.
fn settle(machine: &Runtime, core: usize) {
    (0..3).for_each(|_| machine.call(core, runtime::fiber::yield_now));
}

/// A log that is only a position. A wait makes it durable at once.
#[derive(Default)]
struct NoLog(AtomicU64);

impl PageLog for NoLog {
    fn position(&self) -> Lsn {
        Lsn(self.0.load(Ordering::Acquire))
    }

    fn durable(&self) -> Lsn {
        self.position()
    }

    fn wait_durable(&self, _: Lsn) -> Result<(), Error> {
        Ok(())
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("allcore-parked-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn machine() -> Arc<Runtime> {
    Runtime::start(Options { cores: Some(CORES), pin: false, ..Options::default() }).unwrap()
}

/// A pool of the fewest frames, without page writers: only a fiber that needs a frame evicts.
struct Pages {
    machine: Arc<Runtime>,
    pool: Arc<Pool>,
    log: Arc<NoLog>,
    /// Declared last, so that the folder is removed after the pool has closed its files.
    _folder: Folder,
}

impl Pages {
    fn new(name: &str) -> Pages {
        let folder = Folder::new(name);
        std::fs::create_dir_all(&folder.0).unwrap();
        let machine = machine();
        let log = Arc::new(NoLog::default());
        let pool = machine.call(0, || {
            let file = |name: &str| {
                let file = DataFile::open(&folder.0.join(name), Opening::New).unwrap();
                file.grow(512).unwrap();
                file
            };
            let (frames, huge_pages) = (FRAMES_MIN_PER_CORE * CORES, HugePages::Off);
            let options = PoolOptions { frames, cores: CORES, sweep_batch: None, huge_pages };
            let log = Arc::clone(&log) as Arc<dyn PageLog>;
            Pool::new(options, machine.workers(), file("pages"), file("temp"), log).unwrap()
        });
        Pages { machine, pool, log, _folder: folder }
    }

    /// Makes a page that holds its own number everywhere.
    fn make(&self, number: u32) {
        self.machine.call(0, || {
            self.pool.reserve(1).unwrap();
            let mut page = self.pool.create(PageNo(number), PageKind::Leaf, 1, 0);
            fill(&mut page, u64::from(number), &self.log);
        });
    }

    fn flush(&self) {
        self.machine.call(1, || self.pool.flush_before(Lsn::MAX).unwrap());
    }

    fn is_resident(&self, number: u32) -> bool {
        self.machine.call(1, || self.pool.get(PageNo(number)).is_ok())
    }

    fn read(&self, core: usize, number: u32) -> u64 {
        self.machine.call(core, || read_evicting(&self.pool, number))
    }

    fn change(&self, number: u32, value: u64) {
        self.machine.call(1, || {
            let pinned = self.pool.pin(PageNo(number)).unwrap();
            fill(&mut pinned.lock_yielding(), value, &self.log);
        });
    }

    /// All frames can hold a page at once: none was lost, none belongs to two.
    fn end(self, pages: u32) {
        self.machine.call(0, || {
            let pins: Vec<_> = (0..pages).map_while(|number| self.pool.pin(PageNo(number)).ok()).collect();
            assert_eq!(pins.len(), self.pool.frames(), "a frame is lost, or used twice");
            drop(pins);
            self.pool.stop_writers();
        });
        self.machine.shutdown();
    }
}

fn fill(page: &mut PageMut<'_>, value: u64, log: &NoLog) {
    let bytes = page.bytes_mut();
    bytes[HEADER_SIZE..].as_chunks_mut::<8>().0.iter_mut().for_each(|word| *word = value.to_le_bytes());
    page.set_lsn(Lsn(log.0.fetch_add(100, Ordering::AcqRel) + 100));
}

/// The one value in all words of a page, read as readers do.
fn read(pool: &Pool, number: u32) -> u64 {
    let mut copy = vec![0; PAGE_SIZE];
    loop {
        match pool.get(PageNo(number)) {
            Ok(page) => {
                page.bytes().copy_all(&mut copy);
                if page.validate().is_ok() {
                    let words = copy[HEADER_SIZE..].as_chunks::<8>().0;
                    assert!(words.iter().all(|word| word == &words[0]), "page {number} is torn");
                    return u64::from_le_bytes(words[0]);
                }
            }
            Err(miss) => pool.resolve(PageNo(number), miss).unwrap(),
        }
    }
}

/// As [`read`], without page writers: a fiber that finds no frame sweeps once more, until pages
/// count as unused.
fn read_evicting(pool: &Pool, number: u32) -> u64 {
    while pool.get(PageNo(number)).is_err() {
        pool.load_ahead(&[PageNo(number)]);
        runtime::fiber::yield_now();
    }
    read(pool, number)
}

/// A pool full of clean pages, with page 0 on disk only. A fiber loads page 0 and parks while it
/// takes a frame for it.
fn evicting(name: &str, point: &str, nth: u64) -> (Pages, u32, Aside<u64>) {
    let pages = Pages::new(name);
    pages.make(0);
    pages.flush();
    pages.machine.call(0, || pages.pool.discard(PageNo(0)));
    let last = pages.pool.frames() as u32;
    (1..=last).for_each(|number| pages.make(number));
    pages.flush();
    park_at(point, nth);
    let pool = Arc::clone(&pages.pool);
    let loading = Aside::start(&pages.machine, 0, move || read_evicting(&pool, 0));
    until("an eviction", || stop::hits(point) >= nth);
    (pages, last, loading)
}

#[test]
fn a_page_changed_after_it_was_chosen_is_not_evicted() {
    let _alone = alone();
    for written in [false, true] {
        let (pages, last, loading) = evicting("chosen", "storage.evict.chosen", 1);
        // All are resident: a fiber chose one of them.
        for number in 1..=last {
            assert!(pages.is_resident(number), "page {number} went before its frame was taken");
            pages.change(number, u64::from(number) + 1000);
        }
        if written {
            // The page is clean again, but its state is not the chosen one.
            pages.flush();
        }
        assert!(!loading.is_done());
        let evicted = pages.pool.statistics().evictions;
        stop::release("storage.evict.chosen");
        pages.pool.start_writers(&pages.machine);
        assert_eq!(loading.end(), 0);
        assert!(pages.pool.statistics().evictions > evicted);
        for number in 1..=last {
            assert_eq!(pages.read(1, number), u64::from(number) + 1000, "page {number} lost its change");
        }
        pages.end(last + 1);
    }
}

#[test]
fn a_page_wanted_while_its_frame_is_given_up_is_read_again() {
    let _alone = alone();
    let (pages, last, loading) = evicting("given-up", "storage.evict.before_free", 1);
    let gone: Vec<u32> = (1..=last).filter(|&number| !pages.is_resident(number)).collect();
    assert_eq!(gone.len(), 1, "one page gave its frame up: {gone:?}");
    let loads = pages.pool.statistics().loads;
    // The frame belongs to nobody yet, so the read must find another one.
    assert_eq!(pages.read(1, gone[0]), u64::from(gone[0]));
    assert_eq!(pages.pool.statistics().loads, loads + 1);
    pages.change(gone[0], 77);
    assert!(!loading.is_done());
    stop::release("storage.evict.before_free");
    assert_eq!(loading.end(), 0);
    pages.pool.start_writers(&pages.machine);
    for number in 1..=last {
        let expected = if number == gone[0] { 77 } else { u64::from(number) };
        assert_eq!(pages.read(1, number), expected);
    }
    pages.end(last + 1);
}

#[test]
fn a_fiber_that_wants_a_page_waits_for_its_read_under_way() {
    let _alone = alone();
    for ahead in [false, true] {
        let pages = Pages::new("read");
        pages.make(9);
        pages.flush();
        pages.machine.call(0, || pages.pool.discard(PageNo(9)));
        park_at("storage.load.read", 1);
        let before = pages.pool.statistics();
        let reader = |core, ahead| {
            let pool = Arc::clone(&pages.pool);
            Aside::start(&pages.machine, core, move || {
                if ahead {
                    pool.load_ahead(&[PageNo(9)]);
                }
                read(&pool, 9)
            })
        };
        let first = reader(0, ahead);
        until("a read", || stop::hits("storage.load.read") == 1);
        let others = [reader(1, false), reader(1, true), reader(1, false)];
        settle(&pages.machine, 1);
        assert!(!pages.is_resident(9), "what is being read is nobody's yet");
        assert!(!first.is_done() && !others.iter().any(Aside::is_done));
        stop::release("storage.load.read");
        assert_eq!(first.end(), 9);
        others.into_iter().for_each(|other| assert_eq!(other.end(), 9));
        let after = pages.pool.statistics();
        assert_eq!((after.reads - before.reads, after.loads - before.loads), (1, 1), "one read serves all");
        pages.machine.shutdown();
    }
}

/// No fiber parks here, but a stop point makes the disk fail now and then.
#[test]
fn pages_that_cannot_be_written_or_read_are_lost_to_nobody() {
    let _alone = alone();
    let pages = Pages::new("refused");
    let frames = pages.pool.frames() as u32;
    pages.pool.start_writers(&pages.machine);
    (0..=frames).for_each(|number| pages.make(number));
    stop::arm_all("storage.pages.write=fail:5").unwrap();
    let refused = pages.machine.call(0, || pages.pool.flush_before(Lsn::MAX));
    assert!(matches!(refused, Err(Error::Io(_))), "{refused:?}");
    assert!(pages.pool.statistics().write_failures > 0);
    stop::clear();
    pages.flush();
    pages.machine.call(0, || (0..=frames).for_each(|number| pages.pool.discard(PageNo(number))));
    stop::arm_all("storage.pages.read=fail:5@2").unwrap();
    for number in 0..=frames {
        let loaded = pages.machine.call(0, || pages.pool.load(PageNo(number)));
        assert_eq!(loaded.is_err(), number == 1, "{loaded:?}");
        assert!(number != 1 || matches!(loaded, Err(Error::Io(_))), "{loaded:?}");
        assert_eq!(pages.read(0, number), u64::from(number));
    }
    pages.end(frames + 1);
}

/// An undo handler for a test without transactions.
struct NothingToUndo;

impl UndoHandler for NothingToUndo {
    fn undo(&mut self, txn: u64, _: Lsn, _: &[u8], _: Lsn, _: Lsn) -> Result<Lsn, Error> {
        panic!("transaction {txn} was never begun")
    }
}

const TREE: u32 = 1;

fn options(cores: usize) -> StoreOptions {
    let wal = WalOptions { segment_bytes: 1 << 20, ..WalOptions::new(cores) };
    StoreOptions { huge_pages: HugePages::Off, wal, ..StoreOptions::new(256, cores) }
}

/// The store as a crash would leave it now, recovered: the tree's report, and the number of pages
/// in use that are not the tree's. Pages are copied first, so that the log is not behind them.
fn crashed(folder: &Folder, tree: Tree) -> (Report, u64) {
    let copy = Folder::new("crashed");
    std::fs::create_dir_all(copy.0.join("log")).unwrap();
    for name in ["pages", "ALLCORE", "control"] {
        std::fs::copy(folder.0.join(name), copy.0.join(name)).unwrap();
    }
    for segment in std::fs::read_dir(folder.0.join("log")).unwrap().flatten() {
        std::fs::copy(segment.path(), copy.0.join("log").join(segment.file_name())).unwrap();
    }
    let machine = Runtime::start(Options { cores: Some(1), pin: false, ..Options::default() }).unwrap();
    let found = machine.call(0, || {
        let store = Store::open(&copy.0, &machine, &options(1)).unwrap();
        store.recover(&mut NothingToUndo).unwrap();
        look_around(&store, tree);
        let report = tree.check(&store).unwrap();
        let (pages, free) = store.space().pages();
        store.close().unwrap();
        (report.clone(), u64::from(pages - free) - report.pages)
    });
    machine.shutdown();
    found
}

fn make_store(folder: &Folder, machine: &Arc<Runtime>) -> (Arc<Store>, Tree) {
    machine.call(0, || {
        let store = Store::create(&folder.0, machine, &options(CORES)).unwrap();
        let tree = Tree::create_first(&store, TREE).unwrap();
        store.recover(&mut NothingToUndo).unwrap();
        (store, tree)
    })
}

#[test]
fn a_fiber_that_needs_pages_waits_for_the_growth_under_way() {
    const CLAIMS: usize = 300;
    let _alone = alone();
    let folder = Folder::new("growth");
    let machine = machine();
    let (store, _) = make_store(&folder, &machine);
    park_at("storage.space.grown", 1);
    let claims = |core| {
        let store = Arc::clone(&store);
        Aside::start(&machine, core, move || (0..CLAIMS).map(|_| store.space().claim().unwrap().0).collect())
    };
    let first: Aside<Vec<u32>> = claims(0);
    until("a growth", || stop::hits("storage.space.grown") == 1);
    let others: Vec<Aside<Vec<u32>>> = vec![claims(1), claims(1), claims(0)];
    settle(&machine, 1);
    settle(&machine, 0);
    assert!(!first.is_done() && !others.iter().any(Aside::is_done));
    assert_eq!(stop::hits("storage.space.grown"), 1, "two grow the file at once");
    stop::release("storage.space.grown");
    let mut numbers = first.end();
    others.into_iter().for_each(|other| numbers.extend(other.end()));
    let end = machine.call(0, || store.space().pages().0);
    assert!(numbers.iter().all(|&number| number < end));
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 4 * CLAIMS, "a number was given out twice");
    machine.call(0, || store.close().unwrap());
    machine.shutdown();
}

/// Puts an entry, or removes it.
struct Change(Option<Vec<u8>>);

impl EntryChange for Change {
    fn decide(&mut self, _: Option<&[u8]>) -> Action {
        if self.0.is_some() { Action::Put } else { Action::Remove }
    }

    fn value_len(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::len)
    }

    fn apply(&mut self, _: Option<&[u8]>, value: &mut [u8], _: &mut Vec<u8>) -> TxnLink {
        if let Some(new) = &self.0 {
            value.copy_from_slice(new);
        }
        TxnLink::NONE
    }

    fn logged(&mut self, _: Lsn) {}
}

/// Keys that stay, far from one another, among keys that come and go.
const KEYS: u64 = 400;
const STAYS: u64 = 80;

fn value_of(key: u64) -> Vec<u8> {
    vec![key as u8; 1000]
}

/// Makes the tree grow to many leaves and shrink to one.
fn grow_and_shrink(store: &Store, tree: Tree) {
    for there in [true, false] {
        for key in (0..KEYS).filter(|key| !key.is_multiple_of(STAYS)) {
            tree.change(store, &key.to_be_bytes(), &mut Change(there.then(|| value_of(key)))).unwrap();
        }
    }
}

/// Checks that every key that stays is found by itself and in both directions, once and in order,
/// whatever else is there.
fn look_around(store: &Store, tree: Tree) {
    let stays: Vec<u64> = (0..KEYS).step_by(STAYS as usize).collect();
    let mut value = Vec::new();
    for key in &stays {
        assert!(tree.get_into(store, &key.to_be_bytes(), &mut value).unwrap(), "{key} is always there");
        assert_eq!(value, value_of(*key));
    }
    for forward in [true, false] {
        let mut cursor = Cursor::new(tree);
        if !forward {
            cursor.seek_end(store).unwrap();
        }
        let mut seen: Vec<u64> = Vec::new();
        while let Some((key, value)) =
            if forward { cursor.next(store).unwrap() } else { cursor.prev(store).unwrap() }
        {
            let key = u64::from_be_bytes(key.try_into().unwrap());
            assert_eq!(value, value_of(key), "the value of {key}");
            seen.push(key);
        }
        if !forward {
            seen.reverse();
        }
        assert!(seen.is_sorted_by(|one, other| one < other), "out of order: {seen:?}");
        assert!(stays.iter().all(|key| seen.contains(key)), "one that stays is missing: {seen:?}");
    }
}

#[test]
fn a_structure_change_keeps_readers_waiting_and_outlives_a_crash() {
    let _alone = alone();
    let folder = Folder::new("shape");
    let machine = machine();
    let (store, tree) = make_store(&folder, &machine);
    machine.call(0, || {
        for key in (0..KEYS).step_by(STAYS as usize) {
            tree.change(&store, &key.to_be_bytes(), &mut Change(Some(value_of(key)))).unwrap();
        }
    });
    let pages = || machine.call(1, || tree.check(&store).unwrap().pages);
    assert_eq!(pages(), 1);
    let log_to_disk = || machine.call(1, || store.wal().wait_durable(store.wal().position()).unwrap());
    log_to_disk();
    let others = crashed(&folder, tree).1;
    for (point, nth) in [
        ("btree.split.latched", 1),
        ("btree.split.latched", 9),
        ("btree.split.logged", 5),
        ("btree.root_split.logged", 1),
        ("btree.merge.latched", 1),
        ("btree.merge.latched", 20),
        ("btree.merge.logged", 1),
        ("btree.merge.logged", 20),
        ("btree.collapse.logged", 1),
    ] {
        park_at(point, nth);
        let (changed, looked) = (Arc::clone(&store), Arc::clone(&store));
        let change = Aside::start(&machine, 0, move || grow_and_shrink(&changed, tree));
        until(point, || stop::hits(point) == nth);
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        let look = Aside::start(&machine, 1, move || {
            look_around(&looked, tree);
            seen.store(true, Ordering::Release);
        });
        settle(&machine, 1);
        // The root is latched at each of these points: no reader passes it with its old content.
        assert!(!done.load(Ordering::Acquire) && !change.is_done(), "{point}@{nth}");
        // After a crash at this moment, with all log on disk, the change is whole or undone. Every
        // page in use belongs to the tree.
        log_to_disk();
        let (report, used) = crashed(&folder, tree);
        assert_eq!((report.problems, used), (vec![], others), "{point}@{nth}");
        stop::release(point);
        look.end();
        change.end();
        let report = machine.call(1, || tree.check(&store).unwrap());
        assert_eq!(
            (report.problems, report.pages, report.entries),
            (vec![], 1, KEYS / STAYS),
            "{point}@{nth}"
        );
    }
    machine.call(0, || store.close().unwrap());
    machine.shutdown();
}

/// A fiber that reaches a point lets all others run first. So orders occur that are rare otherwise.
#[test]
fn readers_and_writers_of_a_tree_agree_wherever_fibers_yield() {
    let _alone = alone();
    let folder = Folder::new("yields");
    let machine = machine();
    let (store, tree) = make_store(&folder, &machine);
    machine.call(0, || {
        for key in (0..KEYS).step_by(STAYS as usize) {
            tree.change(&store, &key.to_be_bytes(), &mut Change(Some(value_of(key)))).unwrap();
        }
    });
    stop::clear();
    let points = [
        "btree.split.latched",
        "btree.split.logged",
        "btree.root_split.logged",
        "btree.merge.latched",
        "btree.merge.logged",
        "btree.collapse.logged",
        "storage.evict.chosen",
        "storage.evict.before_free",
        "storage.evict.before_write",
        "storage.writer.after_write",
        "storage.load.read",
        "storage.space.grown",
        "log.flush.before_write",
        "log.flush.after_write",
    ];
    stop::arm_all(&points.map(|point| format!("{point}=yield")).join(";")).unwrap();
    let fibers: Vec<Aside<()>> = (0..6)
        .map(|fiber| {
            let store = Arc::clone(&store);
            Aside::start(&machine, fiber % CORES, move || {
                for _ in 0..3 {
                    match fiber {
                        0..2 => grow_and_shrink(&store, tree),
                        2..4 => look_around(&store, tree),
                        _ => assert!(store.checkpoint().unwrap() > Lsn::ZERO),
                    }
                }
            })
        })
        .collect();
    fibers.into_iter().for_each(Aside::end);
    for point in ["btree.root_split.logged", "btree.merge.logged", "btree.collapse.logged"] {
        assert!(stop::hits(point) > 0, "{point} was not reached");
    }
    let report = machine.call(1, || tree.check(&store).unwrap());
    // A merge gives up at an obstacle, so the number of pages left is not fixed.
    assert_eq!((report.problems, report.entries), (vec![], KEYS / STAYS));
    machine.call(0, || store.close().unwrap());
    machine.shutdown();
}
